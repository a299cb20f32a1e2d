"""Entries of a transcript as rows."""

from __future__ import annotations

from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.arguments import difference_rows
from capuchin_yaml.tui.draw.clock import clock_time, seconds
from capuchin_yaml.tui.draw.exact import argument_rows
from capuchin_yaml.tui.draw.markdown import OpenMarkdown, markdown_rows
from capuchin_yaml.tui.draw.rows import Piece, Row, cells, clip, row, spread, wrap, wrap_text
from capuchin_yaml.tui.model.entries import AgentSaid, CardState, Entry, Mark, ToolCard, UserSaid

CARD_STATES: dict[CardState, tuple[str, str, str]] = {
    "requested": ("○", "asked", "muted"),
    "waiting": ("▲", "waits for a person · F2", "warn"),
    "approved": ("●", "approved", "ok"),
    "running": ("●", "running", "accent"),
    "ok": ("✔", "ok", "ok"),
    "denied": ("✖", "denied", "bad"),
    "expired": ("✖", "expired", "bad"),
    "cancelled": ("✖", "cancelled", "muted"),
    "error": ("✖", "failed", "bad"),
    "unknown": ("?", "outcome unknown · F2", "warn"),
    "invalid": ("✖", "invalid", "bad"),
    "skipped": ("○", "skipped", "muted"),
}
"""Glyph, word and role of each state: never the colour alone."""

_PREVIEW_CHARS = 400
_MARK_ROLES = {"info": "muted", "ok": "ok", "warn": "warn", "bad": "bad"}


def entry_rows(entry: Entry, width: int, is_open: bool = False) -> list[Row]:
    """All rows of an entry, with one empty row after it; `is_open` unfolds a tool card."""
    match entry:
        case UserSaid():
            body = wrap_text(visible(entry.text), max(width - 2, 1))
            lead = Piece("┃ ", "you")
            rows = [_head(visible(entry.by) or "you", "you", entry.time, "", width)]
            rows += [(lead, *r) for r in body]
        case AgentSaid():
            rows = [reply_head(entry, width), *markdown_rows(entry.text, width)]
            if entry.is_cut:
                rows.append(row("… cut off here", "warn"))
        case ToolCard():
            rows = _card(entry, width, is_open)
        case Mark():
            mark = Piece("· ", _MARK_ROLES[entry.tone])
            text = Piece(visible(entry.text), _MARK_ROLES[entry.tone])
            rows = wrap((text,), width, (mark,), (Piece("  "),))
    return [*rows, ()]


def reply_head(entry: AgentSaid, width: int) -> Row:
    """The line above a reply."""
    return _head("agent", "agent", entry.time, visible(entry.model), width)


def open_rows(entry: AgentSaid, width: int, kept: OpenMarkdown) -> list[Row]:
    """The rows of a reply that still grows."""
    text = Piece(" ▍", "accent")
    rows = [reply_head(entry, width), *kept.rows(entry.text, width)]
    rows[-1] = (*rows[-1], text) if len(rows) > 1 and cells(rows[-1]) + 2 <= width else rows[-1]
    return [*rows, ()]


def estimate(entry: Entry, width: int) -> int:
    """A cheap guess at how many rows an entry takes, before it is drawn."""
    match entry:
        case UserSaid(text=text) | AgentSaid(text=text):
            return 2 + text.count("\n") + len(text) // max(width, 1) + 1
        case ToolCard():
            return 2
        case Mark():
            return 2


def plain_text(entry: Entry) -> str:
    """An entry as text for the clipboard."""
    match entry:
        case UserSaid(text=text) | AgentSaid(text=text):
            return text
        case ToolCard():
            return f"{entry.identity} {entry.arguments}\n{entry.result}".rstrip()
        case Mark(text=text):
            return text


def _head(name: str, role: str, time: str, note: str, width: int) -> Row:
    left = [Piece(name.replace("\n", " "), role)]
    if time:
        left.append(Piece("  " + clock_time(time), "muted"))
    if note:
        left.append(Piece("  " + note.replace("\n", " "), "muted"))
    return clip(left, width)


def _card(card: ToolCard, width: int, is_open: bool) -> list[Row]:
    glyph, word, role = CARD_STATES[card.state]
    state = f"{glyph} {word}"
    if card.duration_s is not None:
        state += f" {seconds(card.duration_s)}"
    alias = card.alias if card.alias and card.alias != card.identity.split(".")[-1] else ""
    left = [
        Piece("▾ " if is_open else "▸ ", "muted"),
        Piece(one_line(card.identity, 80), "tool"),
        *([Piece(f" as {one_line(alias, 40)}", "muted")] if alias else []),
    ]
    if not is_open:
        left.append(Piece("  " + one_line(card.arguments, _PREVIEW_CHARS), "muted"))
    rows = [spread(left, (Piece(state, role),), width)]
    if width - cells((Piece(state),)) < 9:
        rows = [clip(left, width), clip((Piece("  " + state, role),), width)]
    if is_open:
        rows += argument_rows(card.arguments, width)
        if card.asked:
            rows += wrap_text(f"  {_changed(card)} (- asked, + runs)", width, "muted")
            rows += difference_rows(card.asked, card.arguments, width)
        if card.reason:
            rows += wrap_text("why: " + visible(card.reason), width, "muted", 2)
        if card.decided_by:
            rows += wrap_text(f"{word} by {visible(card.decided_by)}", width, "muted", 2)
        if card.result:
            rows.append(row("  result", "muted"))
            rows += wrap_text(visible(card.result), width, "block", 4)
        return rows
    if card.asked:
        note = f"{_changed(card)}; asked: {one_line(card.asked, _PREVIEW_CHARS)}"
        rows.append(clip((Piece("  ├ ", "muted"), Piece(note, "warn")), width))
    note = _note(card)
    if note:
        rows.append(clip((Piece("  └ ", "muted"), Piece(note, role)), width))
    return rows


def _changed(card: ToolCard) -> str:
    return f"changed by {one_line(card.changed_by, 40)}" if card.changed_by else "changed"


def _note(card: ToolCard) -> str:
    """The one line that a folded card shows of how it ended."""
    if card.state == "denied":
        who = f"by {one_line(card.decided_by, 40)}: " if card.decided_by else ""
        return who + one_line(card.reason, _PREVIEW_CHARS) if who or card.reason else ""
    if card.state in ("error", "invalid", "expired", "unknown"):
        return one_line(card.result or card.reason, _PREVIEW_CHARS)
    return ""
