"""The transcript: one virtual pane that draws only the entries on the screen.

Heights of entries never seen are estimated and put right when they come near; what was drawn
is kept per entry. It follows the end only while it is at the end.

The pane has a list of its own of what it shows. A talk changes before the pane is told, and what
is painted in between must agree with the heights.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from capuchin_yaml.terminal_text import visible
from capuchin_yaml.tui.draw.heights import Heights
from capuchin_yaml.tui.draw.markdown import OpenMarkdown
from capuchin_yaml.tui.draw.rows import Row, occurrences, plain
from capuchin_yaml.tui.draw.transcript import entry_rows, estimate, open_rows, plain_text
from capuchin_yaml.tui.model.changes import Added, Change, Prepended, Replaced, ReplyGrew
from capuchin_yaml.tui.model.entries import AgentSaid, Entry, ToolCard
from capuchin_yaml.tui.widgets.rowview import RowView, over_characters

if TYPE_CHECKING:
    from capuchin_yaml.tui.model.talk import Talk

_KEPT = 400
"""Entries whose drawn rows are kept."""
_ROWS_PER_ENTRY = 1 << 20
"""Selection offsets are `entry * this + row`, so they hold when heights above change."""


@dataclass(slots=True)
class _Drawn:
    entry: Entry
    rows: list[Row]
    strips: list[Strip | None]


class NoTalk:
    """What is on show before a talk is."""

    entries: Sequence[Entry] = ()
    open_reply: Entry | None = None
    first_offset = 0


class Transcript(RowView):
    """The entries of one talk."""

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    Transcript { padding: 0 0 0 1; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "line(-1)", "up", show=False, id="transcript.up"),
        Binding("down,j", "line(1)", "down", show=False, id="transcript.down"),
        Binding("pageup,b", "page(-1)", "page up", show=False, id="transcript.page_up"),
        Binding("pagedown,space", "page(1)", "page down", show=False, id="transcript.page_down"),
        Binding("home", "top", "to the start", show=False, id="transcript.top"),
        Binding("end", "follow", "follow the end", id="transcript.follow"),
        Binding("n", "card(1)", "next tool call", id="transcript.next_card"),
        Binding("p", "card(-1)", "previous tool call", id="transcript.previous_card"),
        Binding("x,enter", "fold", "fold or unfold", id="transcript.fold"),
        Binding("y", "copy_entry", "copy", id="transcript.copy"),
        Binding("slash", "screen.find", "find", id="transcript.find"),
    ]

    class Moved(Message):
        """The pane follows the end or not, with so many entries below that were not seen."""

        def __init__(self, following: bool, unseen: int) -> None:
            super().__init__()
            self.following = following
            self.unseen = unseen

    class OlderWanted(Message):
        """The reader is at the first entry that is known, and older ones exist."""

    class CopyWanted(Message):
        """The reader wants this text on the clipboard."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.unseen = 0
        self._talk: Talk | NoTalk = NoTalk()
        self._entries: list[Entry] = []
        self._reply: Entry | None = None
        self._heights = Heights()
        self._drawn: OrderedDict[int, _Drawn] = OrderedDict()
        self._open = OpenMarkdown()
        self._unfolded: set[str] = set()
        self._current: str = ""
        self._width = 0
        self._anchor = (0, 0)
        self._settling = False
        self._told: tuple[bool, int] = (True, 0)
        self.needle = ""
        """What is looked for; it is marked wherever it is drawn."""
        self._found = 0

    @property
    def talk(self) -> Talk | NoTalk:
        """The talk on show."""
        return self._talk

    def show(self, talk: Talk) -> None:
        """Show a talk from its end."""
        self._talk = talk
        self._entries, self._reply = list(talk.entries), talk.open_reply
        self.following, self.unseen, self._current, self.needle = True, 0, "", ""
        self._unfolded.clear()
        self._measure_all()

    def take(self, changes: Sequence[Change]) -> None:
        """Bring the pane up to date with changes that the talk already holds, all of them."""
        older = sum(c.count for c in changes if isinstance(c, Prepended))
        if any(isinstance(c, Prepended) for c in changes):
            self._take_older(older)
        for change in changes:
            match change:
                case Prepended(count):
                    older -= count  # what follows counts from the new first entry
                case Added():
                    self._take_newer()
                case Replaced(index):
                    self._replace(index + older)
                case ReplyGrew():
                    self._sync_open()
        self._settle()
        self.refresh()
        self._tell()

    def _take_newer(self) -> None:
        newer = self._talk.entries[len(self._entries) :]
        if not newer:
            return
        if self._reply is not None:
            self._heights.pop()
            self._drawn.pop(len(self._entries), None)
        for entry in newer:
            self._entries.append(entry)
            self._heights.append(estimate(entry, self._width))
            self.unseen += 0 if self.following else 1
        if self._reply is not None:
            self._heights.append(1)

    def _take_older(self, count: int) -> None:
        """Older entries stand before the known ones; the reader's place stays."""
        self._entries = list(self._talk.entries[: len(self._entries) + count])
        older = [estimate(e, self._width) for e in self._entries[:count]]
        self._heights = Heights([*older, *(self._heights[i] for i in range(len(self._heights)))])
        self._drawn.clear()
        self._anchor = (self._anchor[0] + count, self._anchor[1])
        self._found += count

    def _replace(self, index: int) -> None:
        if index < len(self._entries):
            self._entries[index] = self._talk.entries[index]
            self._drawn.pop(index, None)

    def _sync_open(self) -> None:
        was_shown, self._reply = self._reply is not None, self._talk.open_reply
        if was_shown and self._reply is None:
            self._heights.pop()
        elif self._reply is not None and not was_shown:
            self._open = OpenMarkdown()
            self._heights.append(1)
            self.unseen += 0 if self.following else 1
        self._drawn.pop(len(self._entries), None)

    def _measure_all(self) -> None:
        self._width = self.text_width
        self._drawn.clear()
        self._heights = Heights(estimate(e, self._width) for e in self._entries)
        self._open = OpenMarkdown()
        if self._reply is not None:
            self._heights.append(1)
        self._settle()
        self.refresh()
        self._tell()

    def drop_drawn(self) -> None:
        """Draw again with other styles; the heights stay."""
        for drawn in self._drawn.values():
            drawn.strips = [None] * len(drawn.rows)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out anew, with the same entry at the top or at the end."""
        if self.text_width != self._width:
            self._measure_all()
        else:
            self._settle()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end only when the reader went there."""
        super().watch_scroll_y(old_value, new_value)
        if self._settling:
            return
        self.following = round(new_value) >= self.max_scroll_y
        if self.following:
            self.unseen = 0
        else:
            index = self._heights.at(round(new_value))
            self._anchor = (index, round(new_value) - self._heights.top(index))
        self._settle()
        self._tell()
        if self._talk.first_offset and new_value < self.size.height:
            self.post_message(self.OlderWanted())

    def _settle(self) -> None:
        """Draw what is in sight, put its heights right, and keep the reader's place."""
        if not self.size.height:
            return
        self._settling = True
        try:
            for _ in range(8):
                total = self._heights.total
                self.virtual_size = Size(self._width, total)
                top = max(total - self.size.height, 0)
                if not self.following:
                    index, offset = self._anchor
                    index = min(index, max(len(self._heights) - 1, 0))
                    top = min(top, self._heights.top(index) + offset)
                if not self._make_exact(top, top + self.size.height):
                    break
            self.scroll_y = top
            self.scroll_target_y = top
        finally:
            self._settling = False

    def _make_exact(self, first_row: int, last_row: int) -> bool:
        """Draw the entries of these rows; True if a height was wrong."""
        changed = False
        index = self._heights.at(first_row)
        while index < len(self._heights) and self._heights.top(index) < last_row:
            height = len(self._entry_drawn(index).rows)
            if height != self._heights[index]:
                self._heights.set(index, height)
                changed = True
            index += 1
        return changed

    def _entry_drawn(self, index: int) -> _Drawn:
        entry: Entry | None
        is_last = index >= len(self._entries)
        entry = self._reply if is_last else self._entries[index]
        assert entry is not None
        drawn = self._drawn.get(index)
        if drawn is not None and drawn.entry is entry:
            self._drawn.move_to_end(index)
            return drawn
        if is_last and isinstance(entry, AgentSaid):
            rows = open_rows(entry, self._width, self._open)
        else:
            is_open = isinstance(entry, ToolCard) and entry.call_id in self._unfolded
            rows = entry_rows(entry, self._width, is_open)
        drawn = _Drawn(entry, rows, [None] * len(rows))
        self._drawn[index] = drawn
        while len(self._drawn) > _KEPT:
            self._drawn.popitem(last=False)
        return drawn

    def render_line(self, y: int) -> Strip:
        """One line of the pane."""
        width = self.text_width
        row = self.scroll_offset.y + y
        if row >= self._heights.total:
            return Strip.blank(width, self.rich_style)
        index = self._heights.at(row)
        drawn = self._entry_drawn(index)
        line = row - self._heights.top(index)
        if line >= len(drawn.rows):
            return Strip.blank(width, self.rich_style)
        strip = drawn.strips[line]
        if strip is None:
            under = ""
            entry = drawn.entry
            if line == 0 and isinstance(entry, ToolCard) and entry.call_id == self._current:
                under = "selected"
            strip = self.strip(drawn.rows[line], width, under)
            for start, end in occurrences(plain(drawn.rows[line]), self.needle):
                strip = over_characters(strip, start, end, self.role_style("cursor"))
            drawn.strips[line] = strip
        key = index * _ROWS_PER_ENTRY + line
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(key)) is not None:
            strip = over_characters(strip, *span, self.role_style("cursor"))
        return strip.apply_offsets(0, key)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text; whole entries when everything is selected."""
        if selection.start is None and selection.end is None:
            return "\n\n".join(plain_text(e) for e in self._entries), "\n"
        start = selection.start
        end = selection.end
        first, first_row = divmod(start.y, _ROWS_PER_ENTRY) if start else (0, 0)
        last, last_row = divmod(end.y, _ROWS_PER_ENTRY) if end else (len(self._heights), 0)
        lines: list[str] = []
        for index in range(first, min(last + 1, len(self._heights))):
            for n, row in enumerate(self._entry_drawn(index).rows):
                if (index, n) < (first, first_row) or (index == last and n > last_row):
                    continue
                text = plain(row)
                if end and (index, n) == (last, last_row):
                    text = text[: end.x]
                if start and (index, n) == (first, first_row):
                    text = text[start.x :]
                lines.append(text.rstrip())
        return "\n".join(lines), "\n"

    def find(self, needle: str, step: int) -> bool:
        """Go to the next entry towards `step` that holds a text; False when none does."""
        if needle != self.needle:
            self.needle, self._found = needle, len(self._entries)
            self.drop_drawn()
            self.refresh()
        entries = self._entries
        at = self._found + step
        while needle and 0 <= at < len(entries):
            if occurrences(visible(plain_text(entries[at])), needle):
                self._found = at
                self._go_to(at)
                return True
            at += step
        return False

    def _go_to(self, index: int) -> None:
        """Bring the found text of an entry into sight, unfolding a tool call for it."""
        entry = self._entries[index]
        if isinstance(entry, ToolCard) and entry.call_id not in self._unfolded:
            self._unfolded.add(entry.call_id)
            self._drawn.pop(index, None)
        self.following = False
        rows = self._entry_drawn(index).rows
        lines = [n for n, r in enumerate(rows) if occurrences(plain(r), self.needle)]
        self._anchor = (index, max((lines[0] if lines else 0) - 2, 0))
        self._settle()
        self.refresh()
        self._tell()

    def action_line(self, step: int) -> None:
        """Move by one line."""
        self.scroll_to(y=self.scroll_offset.y + step, animate=False)

    def action_page(self, step: int) -> None:
        """Move by almost a page."""
        self.scroll_to(y=self.scroll_offset.y + step * max(self.size.height - 2, 1), animate=False)

    def action_top(self) -> None:
        """Go to the first entry."""
        self.scroll_to(y=0, animate=False)

    def action_follow(self) -> None:
        """Go to the end and stay there."""
        self.following, self.unseen = True, 0
        self._settle()
        self.refresh()
        self._tell()

    def action_card(self, step: int) -> None:
        """Mark the next or previous tool call and bring it into sight."""
        cards = [i for i, e in enumerate(self._entries) if isinstance(e, ToolCard)]
        if not cards:
            return
        here = self._current_index()
        if here is None:
            bottom = self._heights.at(self.scroll_offset.y + self.size.height - 1)
            before = [i for i in cards if i <= bottom]
            at = before[-1] if before else cards[0]
        else:
            at = cards[min(max(cards.index(here) + step, 0), len(cards) - 1)]
        self._mark(at)

    def action_fold(self) -> None:
        """Fold or unfold the marked tool call, or the last one in sight."""
        if self._current_index() is None:
            self.action_card(1)
        index = self._current_index()
        if index is not None:
            self._toggle(index)

    def action_copy_entry(self) -> None:
        """Copy the marked tool call, or the last reply."""
        index = self._current_index()
        if index is None:
            said = [i for i, e in enumerate(self._entries) if isinstance(e, AgentSaid)]
            index = said[-1] if said else None
        if index is not None:
            self.post_message(self.CopyWanted(plain_text(self._entries[index])))

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold the tool call whose head was clicked."""
        row = self.scroll_offset.y + event.y
        index = self._heights.at(row)
        if row >= self._heights.total or row != self._heights.top(index):
            return
        if index < len(self._entries) and isinstance(self._entries[index], ToolCard):
            self._toggle(index)

    def _current_index(self) -> int | None:
        for i in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[i]
            if self._current and isinstance(entry, ToolCard) and entry.call_id == self._current:
                return i
        return None

    def _mark(self, index: int) -> None:
        old = self._current_index()
        entry = self._entries[index]
        assert isinstance(entry, ToolCard)
        self._current = entry.call_id
        for i in (old, index):
            if i is not None and i in self._drawn:
                self._drawn[i].strips = [None] * len(self._drawn[i].rows)
        top = self._heights.top(index)
        if not self.scroll_offset.y <= top < self.scroll_offset.y + self.size.height:
            self.scroll_to(y=max(top - 2, 0), animate=False)
        self.refresh()

    def _toggle(self, index: int) -> None:
        entry = self._entries[index]
        assert isinstance(entry, ToolCard)
        self._unfolded ^= {entry.call_id}
        self._drawn.pop(index, None)
        top = self._heights.top(index)
        self.following = False
        first = self._heights.at(self.scroll_offset.y)
        self._anchor = (first, self.scroll_offset.y - self._heights.top(first))
        if top < self.scroll_offset.y:
            self._anchor = (index, 0)
        self._settle()
        self.following = self.scroll_offset.y >= self.max_scroll_y
        self.refresh()
        self._tell()

    def _tell(self) -> None:
        now = (self.following, self.unseen)
        if now != self._told:
            self._told = now
            self.post_message(self.Moved(*now))
