"""Small fixed panes: a few rows each, set from outside."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip

from capuchin_yaml.tui.draw.rows import Row, clip
from capuchin_yaml.tui.widgets.rowview import RowView


class Lines(RowView, can_focus=False):
    """Rows that are cut at the right edge; the pane is as high as it has rows."""

    DEFAULT_CSS = """
    Lines { height: auto; overflow: hidden hidden; scrollbar-size: 0 0; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows: tuple[Row, ...] = ()
        self.show_vertical_scrollbar = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """What is shown."""
        return self._rows

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show other rows; none hides the pane."""
        new = tuple(rows)
        if new == self._rows:
            return
        height_changed = len(new) != len(self._rows)
        self._rows = new
        self.display = bool(new)
        if height_changed:
            self.virtual_size = Size(0, len(new))
            self.refresh(layout=True)
        else:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row."""
        width = self.size.width
        if y >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        return self.strip(clip(self._rows[y], width), width)
