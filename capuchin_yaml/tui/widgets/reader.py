"""A pane to read in: rows laid out for its width, scrolled by keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip

from capuchin_yaml.tui.draw.rows import Row, plain
from capuchin_yaml.tui.widgets.rowview import RowView


class Reader(RowView):
    """Rows that only inform."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "line(-1)", "up", show=False, id="reader.up"),
        Binding("down,j", "line(1)", "down", show=False, id="reader.down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="reader.page_up"),
        Binding("pagedown,space", "page(1)", "page down", show=False, id="reader.page_down"),
        Binding("home", "edge(False)", "start", show=False, id="reader.top"),
        Binding("end", "edge(True)", "end", show=False, id="reader.end"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._key: object = None
        self._draw: Callable[[int], list[Row]] = lambda width: []
        self._rows: list[Row] = []

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join(plain(r) for r in self._rows)

    def show(self, key: object, draw: Callable[[int], list[Row]]) -> None:
        """Show what `draw` lays out; another key starts at the top."""
        if key != self._key:
            self._key = key
            self.scroll_to(y=0, animate=False)
        self._draw = draw
        self._lay_out()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new width."""
        self._lay_out()

    def _lay_out(self) -> None:
        self._rows = self._draw(self.text_width)
        self.virtual_size = Size(self.size.width, len(self._rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row."""
        at = self.scroll_offset.y + y
        return self.strip(self._rows[at] if at < len(self._rows) else (), self.text_width)

    def action_line(self, step: int) -> None:
        """Move by one line."""
        self.scroll_to(y=self.scroll_offset.y + step, animate=False)

    def action_page(self, step: int) -> None:
        """Move by a page, with one line of overlap."""
        self.scroll_to(y=self.scroll_offset.y + step * max(self.size.height - 1, 1), animate=False)

    def action_edge(self, end: bool) -> None:
        """Go to the start or to the end."""
        self.scroll_to(y=self.max_scroll_y if end else 0, animate=False)
