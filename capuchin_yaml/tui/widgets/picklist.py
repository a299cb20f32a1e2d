"""A list to pick from: the choice is kept by key, so it never jumps to another row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from capuchin_yaml.tui.draw.rows import Piece, Row, clip
from capuchin_yaml.tui.widgets.rowview import RowView

_MARK = "▌"
"""Stands before the marked entry, so that the mark is not a colour alone."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One entry: a key that stays its own, and rows drawn for a width."""

    key: str
    rows: Callable[[int], list[Row]]


class PickList(RowView):
    """Entries of `height` rows each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False, id="list.up"),
        Binding("down,j", "move(1)", "down", show=False, id="list.down"),
        Binding("pageup", "move(-10)", "page up", show=False, id="list.page_up"),
        Binding("pagedown", "move(10)", "page down", show=False, id="list.page_down"),
        Binding("home", "move(-100000)", "first", show=False, id="list.first"),
        Binding("end", "move(100000)", "last", show=False, id="list.last"),
        Binding("enter", "open", "open", id="list.open"),
    ]

    class Moved(Message):
        """Another entry is marked."""

        def __init__(self, pick_list: PickList, key: str) -> None:
            super().__init__()
            self.pick_list = pick_list
            self.key = key

        @property
        def control(self) -> PickList:
            """The list it is about."""
            return self.pick_list

    class Opened(Message):
        """An entry was opened; that decides nothing."""

        def __init__(self, pick_list: PickList, key: str) -> None:
            super().__init__()
            self.pick_list = pick_list
            self.key = key

        @property
        def control(self) -> PickList:
            """The list it is about."""
            return self.pick_list

    def __init__(self, *, id: str | None = None, height: int = 2) -> None:
        super().__init__(id=id)
        self._height = height
        self._picks: tuple[Pick, ...] = ()
        self._keys: tuple[str, ...] = ()
        self._places: dict[str, int] = {}
        self._lines: list[tuple[str, Row]] = []
        """The lines in sight as they were drawn last."""
        self._empty: Sequence[Row] = ()
        self.key = ""
        """The marked entry."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys on show, in order."""
        return self._keys

    def set_picks(self, picks: Sequence[Pick], empty: Sequence[Row] = ()) -> None:
        """Show other entries; the mark stays on its key while that is there."""
        at = self._places.get(self.key, 0)
        self._picks, self._empty = tuple(picks), tuple(empty)
        keys = self._keys = tuple(p.key for p in self._picks)
        self._places = {key: n for n, key in enumerate(keys)}
        if self.key not in self._places:
            self.key = keys[min(at, len(keys) - 1)] if keys else ""
            self.post_message(self.Moved(self, self.key))
        self.virtual_size = Size(self.size.width, len(keys) * self._height)
        self._refresh_changed()

    def _refresh_changed(self) -> None:
        """Have only those lines drawn again that are not as they were."""
        before, self._lines = self._lines, [self._line(y) for y in range(self.size.height)]
        if len(before) != len(self._lines):
            self.refresh()
            return
        for y, line in enumerate(self._lines):
            if line != before[y]:
                self.refresh_lines(self.scroll_offset.y + y)

    def mark(self, key: str) -> None:
        """Put the mark on an entry."""
        if key in self._places and key != self.key:
            self.key = key
            self._show_mark()
            self.post_message(self.Moved(self, key))

    def action_move(self, step: int) -> None:
        """Move the mark."""
        keys = self.keys
        if keys:
            at = self._places.get(self.key, 0)
            self.mark(keys[min(max(at + step, 0), len(keys) - 1)])

    def action_open(self) -> None:
        """Open the marked entry."""
        if self.key:
            self.post_message(self.Opened(self, self.key))

    def on_click(self, event: events.Click) -> None:
        """Mark the entry under the mouse and open it."""
        at = (self.scroll_offset.y + event.y) // self._height
        if 0 <= at < len(self._picks):
            self.mark(self._picks[at].key)
            self.action_open()

    def on_resize(self, event: events.Resize) -> None:
        """Fit the entries to the width."""
        self.virtual_size = Size(self.size.width, len(self._picks) * self._height)

    def render_line(self, y: int) -> Strip:
        """One row of an entry."""
        under, pieces = self._line(y)
        return self.strip(pieces, self.text_width, under)

    def _line(self, y: int) -> tuple[str, Row]:
        """The role behind a line in sight, and what stands on it."""
        width = self.text_width
        if not self._picks:
            return "", clip(self._empty[y], width) if y < len(self._empty) else ()
        room = max(width - len(_MARK), 1)
        at, line = divmod(self.scroll_offset.y + y, self._height)
        if at >= len(self._picks):
            return "", ()
        pick = self._picks[at]
        rows = pick.rows(room)
        under, mark = "", " " * len(_MARK)
        if pick.key == self.key:
            under = "cursor" if self.has_focus else "selected"
            mark = _MARK
        return under, (Piece(mark, "accent"), *clip(rows[line] if line < len(rows) else (), room))

    def _show_mark(self) -> None:
        top = self._places[self.key] * self._height
        here, height = self.scroll_offset.y, self.size.height
        if top < here:
            self.scroll_to(y=top, animate=False)
        elif top + self._height > here + height:
            self.scroll_to(y=top + self._height - height, animate=False)
        self.refresh()
