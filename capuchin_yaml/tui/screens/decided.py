"""Decided: what was answered before, by whom, when and why. Nothing can be answered here."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from capuchin_yaml.tui.draw.bars import status_row
from capuchin_yaml.tui.draw.decided import decided_line, decided_rows
from capuchin_yaml.tui.draw.rows import Piece, Row, row
from capuchin_yaml.tui.model.settled import Settled
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.typeahead import take_keys
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList
from capuchin_yaml.tui.widgets.reader import Reader


class DecidedScreen(Frame):
    """The second tab of the inbox."""

    CSS_PATH = "lists.tcss"
    PANES = ("#facts", "#filter", "#list", "#detail")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="decided.back"),
        Binding("t", "waiting", "what waits", id="decided.waiting"),
        Binding("slash", "filter", "filter", id="decided.filter", priority=True),
        Binding("g", "go", "go to the talk", id="decided.go"),
        Binding("tab,right", "detail", "to the detail", show=False, id="decided.detail"),
        Binding("shift+tab,left", "list", "to the list", show=False, id="decided.list"),
    ]

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        yield Lines(id="facts")
        yield Input(placeholder="filter · Esc clears", id="filter", compact=True)
        with Horizontal(id="body"):
            yield PickList(id="list", height=2)
            yield Reader(id="detail")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Start in the list, and read what was decided in other conversations."""
        if not self.has_panes:
            return
        self.query_one("#filter").display = False
        self.query_one(PickList).focus()
        if self.desk.fleet.link.is_up:
            self.run_worker(self.desk.look.decisions(), exit_on_error=False)
        self.draw()

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self.draw()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        self.draw_frame(None)
        found = self._found()
        tabs = (
            Piece(f"waiting {len(self.desk.fleet.waiting())} (t) · ", "muted"),
            Piece(f"decided {len(found)}", "strong"),
        )
        self.query_one("#facts", Lines).set_rows([tabs])
        now, user = self.now(), self.capuchin.user

        def pick(entry: Settled) -> Pick:
            return Pick(_key(entry), lambda width: decided_line(entry, width, now, user))

        needle = self.query_one("#filter", Input).value
        empty = "nothing holds that text; Esc clears the filter" if needle else "nothing so far"
        self.query_one(PickList).set_picks([pick(e) for e in found], [row(empty, "muted")])
        self._draw_detail()
        width = max(self.size.width - 2, 1)
        keys = "t what waits · / filter · g talk · Esc back" if width > 50 else "t · Esc"
        status = status_row(None, self.capuchin.notice_row, width, keys)
        self.query_one("#status", Lines).set_rows([status])

    def _found(self) -> list[Settled]:
        words = self.query_one("#filter", Input).value.lower().split()
        return [e for e in self.desk.fleet.decided() if all(w in _text(e) for w in words)]

    def _marked(self) -> Settled | None:
        key = self.query_one(PickList).key
        return next((e for e in self.desk.fleet.decided() if _key(e) == key), None)

    def _draw_detail(self) -> None:
        if not self.is_ready:
            return
        entry, user = self._marked(), self.capuchin.user
        if entry is None:
            self.query_one(Reader).show("", lambda width: [])
        else:
            self.query_one(Reader).show(_key(entry), partial(_detail, entry, user))

    @on(PickList.Moved, "#list")
    def _moved(self) -> None:
        self._draw_detail()

    @on(PickList.Opened, "#list")
    def _opened(self) -> None:
        self.action_detail()

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self.draw()

    @on(Input.Submitted, "#filter")
    def _to_list(self) -> None:
        self.query_one(PickList).focus()

    def action_filter(self) -> None:
        """Go to the filter."""
        box = self.query_one("#filter", Input)
        box.display = True
        take_keys(box)

    def action_waiting(self) -> None:
        """Go to what waits."""
        self.capuchin.action_inbox()

    def action_go(self) -> None:
        """Go to the conversation of the marked decision."""
        entry = self._marked()
        if entry is not None:
            self.capuchin.to_chat()
            self.capuchin.chat.open(entry.conversation)

    def action_detail(self) -> None:
        """Go to what is known of it."""
        self.add_class("-open")
        self.query_one(Reader).focus()

    def action_list(self) -> None:
        """Go to the list."""
        self.remove_class("-open")
        self.query_one(PickList).focus()

    def action_back(self) -> None:
        """Clear the filter, else leave the detail, else the screen."""
        box = self.query_one("#filter", Input)
        if box.display:
            box.value, box.display = "", False
            self.action_list()
        elif self.has_class("-open"):
            self.action_list()
        else:
            self.app.pop_screen()


def _key(entry: Settled) -> str:
    return f"{entry.conversation}/{entry.decision.offset}"


def _text(entry: Settled) -> str:
    d, item = entry.decision, entry.item
    tool = f"{item.tool} {item.title} {item.arguments}" if item else ""
    parts = f"{entry.conversation} {d.item_kind} {d.choice} {d.by} {d.reason} {tool}"
    return parts.lower()


def _detail(entry: Settled, user: str, width: int) -> list[Row]:
    return decided_rows(entry, width, user)
