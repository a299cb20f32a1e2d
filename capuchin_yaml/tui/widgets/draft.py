"""A text field that takes keys in the order they were typed, and glyphs as a whole."""

from __future__ import annotations

from typing import TypeAlias

from textual import events
from textual.widgets import TextArea

from capuchin_yaml.tui.draw.rows import graphemes

Location: TypeAlias = tuple[int, int]


class Draft(TextArea):
    """A `TextArea` whose own bindings run in its turn, not after later keys.

    Why: a bound key goes up to the app and is run there, while the field already takes the
    keys behind it; with the app busy for a moment, `one, Enter, two` would send `onetwo`.
    """

    async def _on_key(self, event: events.Key) -> None:
        # Why not `_bindings`: the person's own keymap is only in the active ones.
        active = self.screen.active_bindings.get(event.key)
        is_ours = active is not None and active.node is self
        if is_ours and active and await self.app.run_action(active.binding.action, self):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)
        # Why: the dispatcher would call the parent's handler once more.
        event.prevent_default()

    def get_cursor_left_location(self) -> Location:
        """One glyph to the left, however many code points it has."""
        row, column = self.cursor_location
        before = [a for a, _ in graphemes(self.document.get_line(row)) if a < column]
        return (row, before[-1]) if before else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        """One glyph to the right, however many code points it has."""
        row, column = self.cursor_location
        ends = (b for _, b in graphemes(self.document.get_line(row)) if b > column)
        return (row, end) if (end := next(ends, None)) else super().get_cursor_right_location()
