"""A chooser: a line to type in and the entries that hold what was typed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, row, spread
from capuchin_yaml.tui.model.search import Choosable, found
from capuchin_yaml.tui.typeahead import Form, take_keys
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList


class Chooser(Form[str | None]):
    """Returns the key of the entry that was chosen, or None."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="chooser.back", priority=True),
        Binding("down", "move(1)", "down", show=False, id="chooser.down", priority=True),
        Binding("up", "move(-1)", "up", show=False, id="chooser.up", priority=True),
        Binding("pagedown", "move(10)", "page down", show=False, id="chooser.page_down"),
        Binding("pageup", "move(-10)", "page up", show=False, id="chooser.page_up"),
    ]

    def __init__(self, title: str, entries: Sequence[Choosable]) -> None:
        super().__init__()
        self._title = title
        self._entries = entries

    def compose(self) -> ComposeResult:
        """Title, line, entries."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield Input(id="query", compact=True)
            yield PickList(id="choices", height=1)
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Start with every entry."""
        self.query_one("#title", Lines).set_rows([row(one_line(self._title, 100), "strong")])
        keys = row("type to filter · Enter chooses · Esc goes back", "muted")
        self.query_one("#keys", Lines).set_rows([keys])
        height = max(min(len(self._entries), self.app.size.height - 8, 16), 1)
        choices = self.query_one(PickList)
        choices.styles.height = height
        choices.can_focus = False
        self._filter("")
        take_keys(self.query_one(Input))

    @property
    def keys_shown(self) -> tuple[str, ...]:
        """The keys of the entries on show."""
        return self.query_one(PickList).keys

    def _filter(self, query: str) -> None:
        picks = [Pick(e.key, partial(_entry_rows, e)) for e in found(query, self._entries)]
        choices = self.query_one(PickList)
        choices.set_picks(picks, [row("nothing holds that text", "muted")])
        if picks:
            choices.mark(picks[0].key)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._filter(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        key = self.query_one(PickList).key
        if key:
            self.dismiss(key)

    @on(PickList.Opened)
    def _clicked(self, event: PickList.Opened) -> None:
        event.stop()
        self.dismiss(event.key)

    def action_move(self, step: int) -> None:
        """Move the mark."""
        self.query_one(PickList).action_move(step)

    def action_back(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


def _entry_rows(entry: Choosable, width: int) -> list[Row]:
    left = (
        Piece(one_line(entry.name, 200)),
        Piece(f"  {one_line(entry.note, 200)}" if entry.note else "", "muted"),
    )
    group = (Piece(one_line(entry.group, 30), "muted"),) if entry.group else ()
    return [spread(left, group, width) if group else clip(left, width)]
