"""The detail of one item: the only place where answer keys live, watched by the guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from capuchin_yaml.tui.draw.rows import Row
from capuchin_yaml.tui.model.guard import Guard, Shown
from capuchin_yaml.tui.widgets.rowview import RowView

Draw: TypeAlias = Callable[[int], list[Row]]
"""Lays something out for a width."""


class ItemDetail(RowView):
    """Rows of one revision of one item; it tells the guard which of them were painted.

    Rows of context may follow; they are not part of what is answered.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "line(-1)", "up", show=False, id="item.up"),
        Binding("down,j", "line(1)", "down", show=False, id="item.down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="item.page_up"),
        Binding("pagedown,space", "page(1)", "page down", id="item.page_down"),
        Binding("home", "edge(False)", "start", show=False, id="item.top"),
        Binding("end", "edge(True)", "end", show=False, id="item.end"),
    ]

    class Painted(Message):
        """More lines of what is shown reached the terminal."""

    class Answered(Message):
        """An answer key was pressed, read from the terminal at `at`."""

        def __init__(self, key: str, at: float) -> None:
            super().__init__()
            self.key = key
            self.at = at

    def __init__(self, guard: Guard, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._guard = guard
        self._clock = clock
        self._draw: Draw | None = None
        self._draw_context: Draw | None = None
        self._rows: list[Row] = []
        self._context_rows: list[Row] = []
        self._item: tuple[str, str, int] | None = None
        self._layout = 0
        self.answer_keys: frozenset[str] = frozenset()
        """Letters that answer what is on show."""

    @property
    def shown(self) -> Shown | None:
        """What is on show to be answered."""
        if self._item is None:
            return None
        item, digest, revision = self._item
        return Shown(item, digest, revision, len(self._rows), self._layout)

    def show(
        self, item: tuple[str, str, int] | None, draw: Draw | None, context: Draw | None = None
    ) -> None:
        """Show an item as `draw` lays it out; None for one that cannot be answered now.

        While the rows stay the same, what was seen of them counts; any change makes all unseen.
        """
        if item != self._item:
            self._layout += 1
            self.scroll_to(y=0, animate=False)
        self._item, self._draw, self._draw_context = item, draw, context
        self._lay_out()

    def forget(self) -> None:
        """Count nothing as seen, because something else covered the screen."""
        self._layout += 1
        self._guard.show(self.shown)
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new width; rows that change must be seen again."""
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.text_width
        rows = self._draw(width) if self._draw else []
        if rows != self._rows:
            self._layout += 1
        self._rows = rows
        self._context_rows = self._draw_context(width) if self._draw_context else []
        self.virtual_size = Size(self.size.width, len(rows) + len(self._context_rows))
        self._guard.show(self.shown)
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw, and once that is on the terminal, tell the guard."""
        strips = super().render_lines(crop)
        shown = self.shown
        if shown is not None and self._guard.unseen:
            top = self.scroll_offset.y + crop.y
            last = min(top + crop.height, len(self._rows))
            self.call_after_refresh(self._tell, shown, top, last)
        return strips

    def _tell(self, shown: Shown, first: int, last: int) -> None:
        # Why: a screen above this one hides it although its lines were drawn; and it may be gone.
        if self.is_attached and self.screen is self.app.screen and self.display:
            self._guard.painted(shown, first, last, self._clock())
            self.post_message(self.Painted())

    def render_line(self, y: int) -> Strip:
        """One row."""
        width = self.text_width
        at = self.scroll_offset.y + y
        if at < len(self._rows):
            return self.strip(self._rows[at], width)
        at -= len(self._rows)
        return self.strip(self._context_rows[at] if at < len(self._context_rows) else (), width)

    def action_line(self, step: int) -> None:
        """Move by one line."""
        self.scroll_to(y=self.scroll_offset.y + step, animate=False)

    def action_page(self, step: int) -> None:
        """Move by a page, with one line of overlap."""
        self.scroll_to(y=self.scroll_offset.y + step * max(self.size.height - 1, 1), animate=False)

    def action_edge(self, end: bool) -> None:
        """Go to the start or to the end."""
        self.scroll_to(y=self.max_scroll_y if end else 0, animate=False)

    def on_key(self, event: events.Key) -> None:
        """Pass an answer key on with its time; the screen asks the guard."""
        if event.character is not None and event.character in self.answer_keys:
            event.stop()
            event.prevent_default()
            self.post_message(self.Answered(event.character, event.time))
