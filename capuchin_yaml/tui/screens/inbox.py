"""The inbox: every waiting item of all conversations, read whole and answered on purpose."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from capuchin_yaml.items import Item
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.bars import status_row
from capuchin_yaml.tui.draw.clock import clock_time
from capuchin_yaml.tui.draw.item import item_line, question_line
from capuchin_yaml.tui.draw.rows import Piece, Row, row, wrap
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.answers import Answer
from capuchin_yaml.tui.model.verdict import told
from capuchin_yaml.tui.notices import Question
from capuchin_yaml.tui.screens.answering import Answering
from capuchin_yaml.tui.screens.bulk import Bulk
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.screens.showing import Showing
from capuchin_yaml.tui.typeahead import take_keys
from capuchin_yaml.tui.widgets.item_detail import ItemDetail
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList


class InboxScreen(Frame):
    """List and detail. Moving in the list shows an item; answering takes opening it first."""

    CSS_PATH = "inbox.tcss"
    PANES = ("#tabs", "#filter", "#items", "#pane", "#facts", "#detail", "#keys")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f2", "back", "back", id="inbox.back"),
        Binding("g", "go", "go to the talk", id="inbox.go"),
        Binding("v", "exact", "laid out, form, exact text", id="inbox.exact"),
        Binding("e", "edit", "change the arguments", id="inbox.edit", priority=True),
        Binding("x", "drop_edit", "drop your changes", id="inbox.drop_edit"),
        Binding("b", "grants", "allowed beforehand", id="inbox.grants"),
        Binding("t", "decided", "what was decided", id="inbox.decided"),
        Binding("slash", "filter", "filter", id="inbox.filter", priority=True),
        Binding("u", "order", "another order", id="inbox.order"),
        Binding("z", "put_off", "not now", id="inbox.put_off"),
        Binding("m", "mark", "mark", id="inbox.mark"),
        Binding("asterisk", "invert", "invert the marks", id="inbox.invert"),
        Binding("shift+d,D", "deny_marked", "deny the marked", id="inbox.deny_marked"),
        Binding("n", "step(1)", "next", id="inbox.next"),
        Binding("p", "step(-1)", "previous", id="inbox.previous"),
        Binding("tab,right", "detail", "to the detail", show=False, id="inbox.detail"),
        Binding("shift+tab,left", "list", "to the list", show=False, id="inbox.list"),
    ]

    def __init__(self, focus_item: str = "") -> None:
        super().__init__()
        self._focus_item = focus_item
        """What to start at, until the list has shown it."""
        self._attached: set[str] = set()
        self.showing = Showing(self)
        self._answering = Answering(self)
        self.bulk = Bulk(self)

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Lines(id="tabs")
                yield Input(placeholder="filter · Esc clears", id="filter", compact=True)
                yield PickList(id="items")
            with Vertical(id="pane"):
                yield Lines(id="facts")
                yield ItemDetail(self.capuchin.guard, self.capuchin.event_clock, id="detail")
                yield Lines(id="keys")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Start in the list."""
        if not self.has_panes:
            return
        self.query_one("#filter").display = False
        self.query_one(PickList).focus()
        self.draw()

    def on_unmount(self) -> None:
        """Let go of the conversations that were watched for their items."""
        self.capuchin.guard.show(None)
        keep = self.capuchin.chat.talk
        for conversation in self._attached:
            if keep is None or keep.id != conversation:
                self.desk.detach(conversation)

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self.draw()

    @property
    def item(self) -> Item | None:
        """The item on show, as its workflow tells it."""
        return self.showing.item

    @property
    def question(self) -> Question | None:
        """The program's own question on show."""
        return self.showing.question

    def answers(self, item: Item) -> tuple[Answer, ...]:
        """What can be answered to an item here."""
        return self.showing.answers(item)

    @property
    def detail(self) -> ItemDetail:
        """The pane where answer keys live."""
        return self.query_one(ItemDetail)

    def answer_keys(self) -> list[tuple[str, str]]:
        """Keys that answer what is on show."""
        return self._answering.labels()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        self.draw_frame(None)
        self._draw_list()
        self.showing.refresh()
        self.showing.reread()
        self.draw_facts()
        width = max(self.size.width - 2, 1)
        keys = "Enter opens it, then a approves · m marks · z not now · / filter · t decided · F1"
        if self.is_narrow:
            keys = "Enter opens it, then a · Esc"
        elif width < 90:
            keys = "Enter opens it, then a approves · / filter · t decided · F1"
        status = status_row(None, self.capuchin.notice_row, width, keys)
        self.query_one("#status", Lines).set_rows([status])

    def _draw_list(self) -> None:
        now, bench = self.now(), self.capuchin.bench
        waiting = self.desk.fleet.waiting()
        bench.keep(waiting)
        clock = self.desk.clock()
        rows = bench.arranged(waiting, clock)
        self._draw_tabs(len(waiting))
        shown = self.showing.row
        if shown is not None and all(r.id != shown.id for r in rows):
            # What was just decided stays until the reader goes on.
            rows = [*rows, shown]

        def pick(entry: InboxRow) -> Pick:
            mark = "◆" if entry.id in bench.marks else ""
            note = "not now" if bench.is_put_off(entry, clock) else ""
            return Pick(entry.id, lambda width: item_line(entry, width, now, mark, note))

        def ask(question: Question) -> Pick:
            return Pick(question.id, lambda width: question_line(question, width))

        picks = [ask(q) for q in self.capuchin.board.questions()] + [pick(r) for r in rows]
        empty = self._empty()
        items = self.query_one(PickList)
        items.set_picks(picks, empty)
        if self._focus_item in items.keys:
            items.mark(self._focus_item)
            self._focus_item = ""

    def _draw_tabs(self, waiting: int) -> None:
        bench = self.capuchin.bench
        parts = [f"by {bench.order}"]
        if bench.marks:
            parts.append(f"{len(bench.marks)} marked, D denies them")
        if bench.needle:
            parts.append(f"filter {bench.needle!r}")
        head = (Piece(f"waiting {waiting}", "strong"), Piece(" · decided (t)", "muted"))
        self.query_one("#tabs", Lines).set_rows([head, row(" · ".join(parts), "muted")])

    def _empty(self) -> list[Row]:
        if self.capuchin.bench.needle:
            return [row("nothing holds that text; Esc clears the filter", "muted")]
        last = next(iter(self.desk.fleet.decided()), None)
        rows = [row("nothing waits for you", "muted")]
        if last is not None:
            text, _ = told(last.decision, self.capuchin.user)
            what = last.item.tool if last.item else last.decision.item_kind
            at = clock_time(last.decision.time)
            rows.append(row(f"last decision {at}", "muted"))
            rows.append(row(f"  {one_line(what, 60)}", "muted"))
            rows.append(row(f"  {text}", "muted"))
        return rows

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        self.capuchin.bench.needle = event.value
        self._draw_list()

    @on(Input.Submitted, "#filter")
    def _to_list(self) -> None:
        self.query_one(PickList).focus()

    @on(PickList.Moved, "#items")
    def _moved(self, event: PickList.Moved) -> None:
        self._show(event.key)

    @on(PickList.Opened, "#items")
    def _opened(self, event: PickList.Opened) -> None:
        self._show(event.key)
        self.action_detail()

    def _show(self, key: str) -> None:
        """Show an item that is not on show yet."""
        if self.showing.show(key):
            self._answering.drop()
            if self.showing.row is not None:
                self._attached.add(self.showing.row.conversation)
            self.draw_facts()

    def draw_facts(self) -> None:
        """The line above the detail and the line of keys below it."""
        if not self.is_ready:
            return
        self.query_one("#facts", Lines).set_rows([self.showing.facts()])
        width = max(self.query_one("#pane").size.width - 2, 1)
        self.query_one("#keys", Lines).set_rows(wrap(self._answering.keys_row(), width))

    @on(ItemDetail.Painted)
    def _painted(self) -> None:
        self.draw_facts()
        self._answering.watch_arming()

    @on(ItemDetail.Answered)
    def _answered(self, event: ItemDetail.Answered) -> None:
        self._answering.press(event.key, event.at)

    def action_detail(self) -> None:
        """Go to the detail of the marked item."""
        if self.showing.row is not None or self.showing.question is not None:
            self.add_class("-open")
            self.detail.focus()
            self.showing.claim()

    def action_list(self) -> None:
        """Go to the list."""
        self.remove_class("-open")
        self.set_focus(self.query_one(PickList))

    def action_step(self, step: int) -> None:
        """Show the next or the previous item."""
        self.query_one(PickList).action_move(step)

    def action_exact(self) -> None:
        """Show the arguments laid out, as a form, or as the exact text."""
        self.capuchin.say(f"arguments: {self.showing.next_view()}")

    def action_edit(self) -> None:
        """Write other arguments for the call on show; nothing is decided by it."""
        self._answering.edit()

    def action_drop_edit(self) -> None:
        """Forget what was written, so that the call is the model's again."""
        item = self.showing.item
        if item is not None and self.showing.edited is not None:
            self.showing.keep(item, item.arguments)
            self.capuchin.say("your changes are dropped")
            self.draw_facts()

    def action_grants(self) -> None:
        """Show what stands allowed beforehand."""
        self.capuchin.action_grants()

    def action_decided(self) -> None:
        """Show what was decided before."""
        self.capuchin.action_decided()

    def action_filter(self) -> None:
        """Go to the filter."""
        box = self.query_one("#filter", Input)
        box.display = True
        self.action_list()
        take_keys(box)

    def action_order(self) -> None:
        """List in another order."""
        self.capuchin.bench.next_order()
        self._draw_list()

    def action_mark(self) -> None:
        """Mark the item of the list, or take its mark away."""
        if self.showing.row is not None:
            self.capuchin.bench.toggle(self.showing.row.id)
            self._draw_list()

    def action_invert(self) -> None:
        """Mark what is listed and has no mark."""
        bench = self.capuchin.bench
        bench.invert(bench.arranged(self.desk.fleet.waiting(), self.desk.clock()))
        self._draw_list()

    def action_put_off(self) -> None:
        """Not now: the item goes to the end of the list and is not called for a while."""
        if self.showing.row is not None:
            is_off = self.capuchin.bench.put_off(self.showing.row, self.desk.clock())
            self.capuchin.say("not now: it stands last for 15 minutes" if is_off else "back again")
            self._draw_list()

    def action_deny_marked(self) -> None:
        """Deny every marked approval, with one reason."""
        self.bulk.deny_marked()

    def action_go(self) -> None:
        """Leave the inbox for the item's conversation."""
        if self.showing.row is not None:
            conversation = self.showing.row.conversation
            self.app.pop_screen()
            self.capuchin.chat.open(conversation)

    def action_back(self) -> None:
        """Clear the filter, else leave; nothing is decided by it."""
        box = self.query_one("#filter", Input)
        if box.display:
            box.value, box.display = "", False
            self.action_list()
        elif self.is_narrow and self.has_class("-open"):
            self.action_list()
        else:
            self.app.pop_screen()
