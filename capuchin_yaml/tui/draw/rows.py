"""Rows: what every widget draws, as plain pieces of text with a role each; no Textual here.

A role names a meaning (`strong`, `warn`, `code`); the widget turns it into a style of the
theme. Text in pieces is always drawn as it is: nothing reads it as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, split_graphemes

ROLES = (
    "text", "muted", "strong", "emph", "strike", "heading", "code", "block", "quote", "link",
    "rule", "you", "agent", "tool", "ok", "warn", "bad", "accent", "selected", "cursor",
)  # fmt: skip
"""Every role a piece may have; each is a component class of `widgets.rowview.RowView`."""


class Piece(NamedTuple):
    """Some text of one role on one line."""

    text: str
    role: str = "text"


Row: TypeAlias = tuple[Piece, ...]
"""One line of the screen, without its padding."""


def row(text: str, role: str = "text") -> Row:
    """A row of one piece."""
    return (Piece(text, role),)


def plain(pieces: Iterable[Piece]) -> str:
    """The text of a row."""
    return "".join(p.text for p in pieces)


def occurrences(text: str, needle: str) -> list[tuple[int, int]]:
    """Where `needle` is in `text`, by characters, whatever the case of its letters."""
    if not needle:
        return []
    low, wanted = text.lower(), needle.lower()
    if len(low) != len(text):
        # Why: a few letters change their length in lower case, and places would be wrong.
        low, wanted = text, needle
    found: list[tuple[int, int]] = []
    at = low.find(wanted)
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = low.find(wanted, at + len(wanted))
    return found


def cells(pieces: Iterable[Piece]) -> int:
    """Columns that a row takes."""
    return sum(cell_len(p.text) for p in pieces)


def clip(pieces: Sequence[Piece], width: int) -> Row:
    """The row cut to `width` columns, with `…` where something is left out."""
    if cells(pieces) <= width:
        return tuple(pieces)
    if width <= 0:
        return ()
    out: list[Piece] = []
    left = width - 1
    for piece in pieces:
        size = cell_len(piece.text)
        if size <= left:
            out.append(piece)
            left -= size
            continue
        kept = _head(piece.text, left)
        out.append(Piece(kept + "…", piece.role))
        return tuple(out)
    return tuple(out)


def spread(left: Sequence[Piece], right: Sequence[Piece], width: int) -> Row:
    """`left` and `right` at the two ends of a line; the left one is cut when both do not fit."""
    room = width - cells(right) - 1
    if room < 8:
        return clip(left, width)
    head = clip(left, room)
    return (*head, Piece(" " * (width - cells(head) - cells(right))), *right)


def wrap(
    pieces: Sequence[Piece],
    width: int,
    first: Sequence[Piece] = (),
    rest: Sequence[Piece] = (),
) -> list[Row]:
    """Break pieces into rows of at most `width` columns, at blanks where possible.

    Newlines in the text break too. `first` starts the first row and `rest` every other one.
    Graphemes are never split, so a row can only be too wide when one glyph is wider than it.
    """
    out: list[Row] = []
    for line in _lines(pieces):
        lead = first if not out else rest
        room = max(1, width - max(cells(first), cells(rest)))
        for part in _fold(line, room):
            out.append((*lead, *part))
            lead = rest
    return out


def graphemes(text: str) -> list[tuple[int, int]]:
    """Where each glyph begins and ends; the two letters of a flag are one."""
    spans: list[tuple[int, int]] = []
    is_half_flag = False
    for start, end, _ in split_graphemes(text)[0]:
        is_letter = "\U0001f1e6" <= text[start] <= "\U0001f1ff"
        if is_letter and is_half_flag:
            spans[-1] = (spans[-1][0], end)
            is_half_flag = False
            continue
        spans.append((start, end))
        is_half_flag = is_letter
    return spans


def fold(
    pieces: Sequence[Piece], width: int, first: Sequence[Piece] = (), rest: Sequence[Piece] = ()
) -> list[Row]:
    """Break pieces into rows at the last column that fits, so that every blank is kept."""
    room = max(1, width - max(cells(first), cells(rest)))
    out: list[Row] = []
    for line in _lines(pieces):
        for part in _chop(line, room):
            out.append((*(first if not out else rest), *part))
    return out


def wrap_text(text: str, width: int, role: str = "text", indent: int = 0) -> list[Row]:
    """Break plain text into rows, each after `indent` blanks."""
    lead = (Piece(" " * indent),) if indent else ()
    return wrap((Piece(text, role),), width, lead, lead)


def _lines(pieces: Sequence[Piece]) -> list[list[Piece]]:
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        parts = piece.text.split("\n")
        for i, part in enumerate(parts):
            if i:
                lines.append([])
            if part:
                lines[-1].append(Piece(part, piece.role))
    return lines


def _fold(line: list[Piece], width: int) -> list[list[Piece]]:
    if cells(line) <= width:
        return [line]
    out: list[list[Piece]] = [[]]
    used = 0
    for word, size in _words(line):
        if used and used + size > width:
            if word[0].text.isspace() and len(word) == 1 and size <= width:
                # A blank at the break is the break.
                out.append([])
                used = 0
                continue
            _trim(out[-1])
            out.append([])
            used = 0
        if size <= width:
            out[-1].extend(word)
            used += size
            continue
        parts = _chop(word, width, used)
        out[-1].extend(parts[0])
        out.extend(parts[1:])
        used = cells(out[-1])
    return out


def _chop(line: Sequence[Piece], width: int, used: int = 0) -> list[list[Piece]]:
    out: list[list[Piece]] = [[]]
    for piece in line:
        for start, end, glyph in split_graphemes(piece.text)[0]:
            if used + glyph > width and used:
                out.append([])
                used = 0
            _add(out[-1], piece.text[start:end], piece.role)
            used += glyph
    return out


def _words(line: list[Piece]) -> list[tuple[list[Piece], int]]:
    """Runs of blanks and of non-blanks, across pieces, each with its width."""
    words: list[tuple[list[Piece], int]] = []
    blank: bool | None = None
    for piece in line:
        start = 0
        text = piece.text
        for i in range(1, len(text) + 1):
            is_blank = text[start] == " "
            if i < len(text) and (text[i] == " ") == is_blank and not _wide_break(text[i]):
                continue
            part = Piece(text[start:i], piece.role)
            size = cell_len(part.text)
            if words and blank == is_blank and not _wide_break(part.text[0]):
                words[-1][0].append(part)
                words[-1] = (words[-1][0], words[-1][1] + size)
            else:
                words.append(([part], size))
            blank = is_blank
            start = i
    return words


def _wide_break(char: str) -> bool:
    # Why: Chinese, Japanese and Hangul text may break between any two characters.
    # Not before a combining kana mark, which belongs to the glyph on its left.
    if char in "\u3099\u309a":
        return False
    return "\u2e80" <= char <= "\ud7a3" or "\uf900" <= char <= "\ufaff"


def _trim(pieces: list[Piece]) -> None:
    while pieces:
        text = pieces[-1].text.rstrip(" ")
        if text:
            pieces[-1] = Piece(text, pieces[-1].role)
            return
        pieces.pop()


def _add(pieces: list[Piece], text: str, role: str) -> None:
    if pieces and pieces[-1].role == role:
        pieces[-1] = Piece(pieces[-1].text + text, role)
    else:
        pieces.append(Piece(text, role))


def _head(text: str, width: int) -> str:
    used = 0
    for start, _end, size in split_graphemes(text)[0]:
        if used + size > width:
            return text[:start]
        used += size
    return text
