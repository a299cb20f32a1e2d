"""The base of every pane that draws rows: roles become theme styles, rows become strips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.scroll_view import ScrollView
from textual.strip import Strip

from capuchin_yaml.terminal_text import visible
from capuchin_yaml.tui.draw.rows import ROLES, Piece


class RowView(ScrollView, can_focus=True):
    """A scrolling pane of rows. Text of a piece is drawn as it is, never read as markup."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"role--{role}" for role in ROLES}
    DEFAULT_CSS = """
    RowView {
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;

        & > .role--text { color: $foreground; }
        & > .role--muted { color: $foreground 60%; }
        & > .role--strong { text-style: bold; }
        & > .role--emph { text-style: italic; }
        & > .role--strike { text-style: strike; }
        & > .role--heading { color: $primary; text-style: bold; }
        & > .role--code { color: $text-accent; background: $boost; }
        & > .role--block { color: $foreground 90%; }
        & > .role--quote { color: $secondary; }
        & > .role--link { color: $text-primary; text-style: underline; }
        & > .role--rule { color: $foreground 35%; }
        & > .role--you { color: $text-primary; text-style: bold; }
        & > .role--agent { color: $text-success; text-style: bold; }
        & > .role--tool { color: $text-primary; text-style: bold; }
        & > .role--ok { color: $text-success; }
        & > .role--warn { color: $text-warning; text-style: bold; }
        & > .role--bad { color: $text-error; text-style: bold; }
        & > .role--accent { color: $text-accent; text-style: bold; }
        & > .role--selected { background: $primary 25%; }
        & > .role--cursor { background: $primary 45%; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._styles_of_roles: dict[str, Style] = {}

    @property
    def text_width(self) -> int:
        """Columns for text: the pane without padding and scrollbar."""
        return max(self.scrollable_content_region.width, 1)

    def notify_style_update(self) -> None:
        """Forget drawn styles when the theme or the focus changed them."""
        super().notify_style_update()
        self._styles_of_roles.clear()
        self.drop_drawn()

    def drop_drawn(self) -> None:
        """Forget whatever was drawn with the styles before."""

    def role_style(self, role: str) -> Style:
        """The style of a role, over the pane's own."""
        style = self._styles_of_roles.get(role)
        if style is None:
            style = self.get_component_rich_style(f"role--{role}")
            self._styles_of_roles[role] = style
        return style

    def strip(self, pieces: Sequence[Piece], width: int, under: str = "") -> Strip:
        """One row as a strip of exactly `width` columns; `under` is a role for its background."""
        base = self.role_style(under) if under else self.rich_style
        segments: list[Segment] = []
        for text, role in pieces:
            style = self.role_style(role)
            if not text.isprintable():
                # Drawing functions have done this already; here nothing gets past.
                text = visible(text, keep_newlines=False)
            if under and base.bgcolor is not None:
                style += Style(bgcolor=base.bgcolor)
            segments.append(Segment(text, style))
        return Strip(segments).adjust_cell_length(width, base)


def over_characters(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with `style` over its characters `start` to `end` (-1: the rest)."""
    out: list[Segment] = []
    at = 0
    for text, own, control in strip:
        stop = at + len(text)
        low = min(max(start - at, 0), len(text))
        high = len(text) if end == -1 else min(max(end - at, 0), len(text))
        high = max(high, low)
        for part, inside in ((text[:low], False), (text[low:high], True), (text[high:], False)):
            if part:
                out.append(Segment(part, (own or Style()) + style if inside else own, control))
        at = stop
    return Strip(out, strip.cell_length)
