"""The events of one conversation: steps, or the raw log, with a filter and the whole JSON."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.events import Event
from capuchin_yaml.tui.draw.bars import status_row
from capuchin_yaml.tui.draw.rows import Piece, Row, row
from capuchin_yaml.tui.draw.steps import detail_rows, event_rows, step_rows
from capuchin_yaml.tui.model.steps import Step, Steps, json_line
from capuchin_yaml.tui.model.talk import Talk
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.typeahead import take_keys
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList
from capuchin_yaml.tui.widgets.reader import Reader


class EventsScreen(Frame):
    """The log of the conversation on show, from its newest events backwards."""

    CSS_PATH = "lists.tcss"
    PANES = ("#facts", "#filter", "#list", "#detail")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f3", "back", "back", id="events.back"),
        Binding("v", "view", "steps or raw", id="events.view"),
        Binding("slash", "filter", "filter", id="events.filter", priority=True),
        Binding("exclamation_mark", "errors", "errors only", id="events.errors"),
        Binding("f", "follow", "follow", id="events.follow"),
        Binding("o", "older", "older events", id="events.older"),
        Binding("y", "copy", "copy as JSON", id="events.copy"),
        Binding("tab,right", "detail", "to the detail", show=False, id="events.detail"),
        Binding("shift+tab,left", "list", "to the list", show=False, id="events.list"),
    ]

    def __init__(self, talk: Talk | None) -> None:
        super().__init__()
        self._talk = talk
        self._steps = Steps()
        self._first = -1
        self._is_raw = False
        self._only_errors = False
        self._follows = True
        self._drawn: tuple[object, ...] = ()
        self._shown: dict[str, tuple[Event, ...]] = {}

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        yield Lines(id="facts")
        yield Input(placeholder="filter · Esc clears", id="filter", compact=True)
        with Horizontal(id="body"):
            yield PickList(id="list", height=1)
            yield Reader(id="detail")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Start in the list, at its end."""
        if not self.has_panes:
            return
        self.query_one("#filter").display = False
        self.query_one(PickList).focus()
        self.draw()

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self._drawn = ()
        self.draw()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        self.draw_frame(self._talk)
        self._take_new()
        self._draw_list()
        self.query_one("#facts", Lines).set_rows([self._facts()])
        width = max(self.size.width - 2, 1)
        keys = "v view · / filter · ! errors · f follow · Esc back" if width > 56 else "F1 · Esc"
        status = status_row(None, self.capuchin.notice_row, width, keys)
        self.query_one("#status", Lines).set_rows([status])

    def _take_new(self) -> None:
        talk = self._talk
        if talk is None:
            return
        if talk.first_offset != self._first:
            self._first, self._steps = talk.first_offset, Steps()
        self._steps.feed(talk.log[len(self._steps.raw) :])

    def _draw_list(self) -> None:
        needle = self.query_one("#filter", Input).value
        picks = self.query_one(PickList)
        state = (len(self._steps.raw), self._first, needle, self._is_raw, self._only_errors)
        if state != self._drawn:
            self._drawn = state
            entries = self._raw_entries(needle) if self._is_raw else self._step_entries(needle)
            self._shown = {pick.key: events for pick, events in entries}
            picks.set_picks([pick for pick, _ in entries], self._empty(needle))
        if self._follows and picks.keys and picks.key != picks.keys[-1]:
            picks.mark(picks.keys[-1])
        self._draw_detail()

    def _step_entries(self, needle: str) -> list[tuple[Pick, tuple[Event, ...]]]:
        def wanted(step: Step) -> bool:
            return (step.is_bad or not self._only_errors) and (not needle or step.holds(needle))

        return [
            (Pick(s.key, partial(step_rows, s)), tuple(s.events))
            for s in self._steps.steps
            if wanted(s)
        ]

    def _raw_entries(self, needle: str) -> list[tuple[Pick, tuple[Event, ...]]]:
        words = needle.lower().split()
        bad = {e.offset for s in self._steps.steps if s.is_bad for e in s.events}
        return [
            (Pick(str(e.offset), partial(event_rows, e)), (e,))
            for e in self._steps.raw
            if (not self._only_errors or e.offset in bad)
            and (not words or all(w in json_line(e).lower() for w in words))
        ]

    def _empty(self, needle: str) -> list[Row]:
        if self._talk is None:
            return [row("no conversation is open: Esc, then ctrl+b lists them", "muted")]
        if needle:
            return [row("nothing holds that text; Esc clears the filter", "muted")]
        if self._only_errors:
            return [row("nothing went wrong here; ! shows everything", "muted")]
        return [row("no events yet", "muted")]

    def _facts(self) -> Row:
        parts = ["raw log" if self._is_raw else "steps"]
        if self._only_errors:
            parts.append("errors only")
        if self._follows:
            parts.append("following")
        needle = self.query_one("#filter", Input).value
        if needle:
            parts.append(f"filter {needle!r}")
        older = f"{self._first} older events: o reads them" if self._first > 0 else ""
        head = Piece("events · " + " · ".join(parts), "strong")
        return (head, Piece(f"  {older}", "muted")) if older else (head,)

    def _draw_detail(self) -> None:
        if not self.is_ready:
            return
        key = self.query_one(PickList).key
        events = self._shown.get(key, ())
        detail = self.query_one(Reader)
        detail.show((key, self._is_raw), lambda width: detail_rows(events, width))

    @on(PickList.Moved, "#list")
    def _moved(self, event: PickList.Moved) -> None:
        if not self.is_ready:
            return
        # Why not the event's own key: it may be older than the mark that stands now.
        keys = event.pick_list.keys
        self._follows = self._follows and bool(keys) and event.pick_list.key == keys[-1]
        self._draw_detail()
        self.query_one("#facts", Lines).set_rows([self._facts()])

    @on(PickList.Opened, "#list")
    def _opened(self) -> None:
        self.action_detail()

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self.draw()

    @on(Input.Submitted, "#filter")
    def _to_list(self) -> None:
        self.query_one(PickList).focus()

    def action_view(self) -> None:
        """Change between steps and the raw log."""
        self._is_raw = not self._is_raw
        self.draw()

    def action_errors(self) -> None:
        """Show only what went wrong, or everything."""
        self._only_errors = not self._only_errors
        self.draw()

    def action_follow(self) -> None:
        """Go to the newest and stay there."""
        self._follows = not self._follows
        self.draw()

    def action_filter(self) -> None:
        """Go to the filter."""
        box = self.query_one("#filter", Input)
        box.display = True
        take_keys(box)

    def action_older(self) -> None:
        """Read older events."""
        if self._talk is not None and self._first > 0:
            self._follows = False
            self.desk.spawn(self._read_older(self._talk.id))

    async def _read_older(self, conversation: str) -> None:
        try:
            await self.desk.older(conversation)
        except CapuchinError as error:
            self.capuchin.say(f"not read: {error}", "bad")

    def action_copy(self) -> None:
        """Copy the events of the marked row as JSON."""
        events = self._shown.get(self.query_one(PickList).key, ())
        self.capuchin.copy_to_clipboard("\n".join(json_line(e) for e in events))

    def action_detail(self) -> None:
        """Go to the whole events."""
        self.add_class("-open")
        self.query_one(Reader).focus()

    def action_list(self) -> None:
        """Go to the list."""
        self.remove_class("-open")
        self.query_one(PickList).focus()

    def action_back(self) -> None:
        """Clear the filter, else leave the detail, else the screen."""
        box = self.query_one("#filter", Input)
        if box.value or box.display:
            box.value, box.display = "", False
            self.action_list()
        elif self.has_class("-open"):
            self.action_list()
        else:
            self.app.pop_screen()
