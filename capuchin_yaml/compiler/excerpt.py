"""The lines of a file that a diagnostic is about, with a mark under the exact characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from capuchin_yaml.compiler.secret_text import MASK, secret_ranges, without_secrets
from capuchin_yaml.compiler.source_text import SourceText
from capuchin_yaml.diagnostics import Diagnostic, Span
from capuchin_yaml.terminal_text import one_line, visible

Secrets: TypeAlias = Mapping[tuple[str, int], Sequence[Span]]
"""Values that look like a secret, by path and line."""
NO_SECRETS: Secrets = MappingProxyType({})

_WIDEST = 120
"""Cells of one excerpt line; longer lines are cut around the mark."""
_LEAD = 40
"""Cells kept in front of the mark of a line that is cut."""


@dataclass(frozen=True, slots=True)
class _Mark:
    span: Span
    sign: str
    message: str


def excerpt(
    diagnostic: Diagnostic,
    source: str,
    paint: Callable[[str], str] = lambda text: text,
    secrets: Secrets = NO_SECRETS,
) -> list[str]:
    """The excerpt lines of a diagnostic, without the line that names the place.

    `paint` colours the primary mark. Wide characters count two cells and hidden ones are
    written out, so a mark is always under what it means. What looks like a secret is masked, and
    so are the values at `secrets`, which look like one only after their escapes.
    """
    text = SourceText(diagnostic.span.path, source)
    marks = [
        _Mark(diagnostic.span, "^", ""),
        *(
            _Mark(annotation.span, "-", annotation.message)
            for annotation in diagnostic.annotations
            if annotation.span.path == diagnostic.span.path
        ),
    ]
    marks.sort(key=lambda mark: mark.span)
    gutter = max(len(str(mark.span.line)) for mark in marks) + 1
    lines = [f"{'':>{gutter}} |"]
    previous = 0
    for mark in marks:
        number = mark.span.line
        if previous and number > previous + 1:
            lines.append(f"{'...':>{gutter}}")
        line, start, end = _masked(
            text.line(number), mark.span, secrets.get((mark.span.path, number), ())
        )
        shown, pad, width = _cut(line, start, end)
        if number != previous:
            lines.append(f"{number:>{gutter}} | {shown}".rstrip())
        under = mark.sign * width
        note = f" {one_line(without_secrets(mark.message), 200)}" if mark.message else ""
        painted = paint(under) if mark.sign == "^" else under
        lines.append(f"{'':>{gutter}} | {' ' * pad}{painted}{note}")
        previous = number
    return lines


def cells(text: str) -> int:
    """Cells that `text` takes on a terminal."""
    return sum(_char_cells(char) for char in text)


def _masked(line: str, span: Span, secrets: Sequence[Span]) -> tuple[str, int, int]:
    """The line without secrets, and where its marked part begins and ends then."""
    start, end = _part(line, span)
    hidden = list(secret_ranges(line))
    for secret in secrets:
        first, last = _part(line, secret)
        is_block = line[first:last].startswith(("|", ">"))
        if not is_block and not any(a < last and b > first for a, b in hidden):
            hidden = sorted([*hidden, (first, last)])
    for a, b in reversed(hidden):
        line = line[:a] + MASK + line[b:]
        shift = len(MASK) - (b - a)
        start, end = (
            place + shift if place >= b else min(place, a) if place <= a else edge
            for place, edge in ((start, a), (end, a + len(MASK)))
        )
    return line, start, end


def _part(line: str, span: Span) -> tuple[int, int]:
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    return min(span.column - 1, len(line)), end


def _cut(line: str, start: int, end: int) -> tuple[str, int, int]:
    """The shown part of a line, the cells before the mark, and the cells of the mark."""
    before, marked, after = visible(line[:start]), visible(line[start:end]), visible(line[end:])
    if cells(before) + cells(marked) + cells(after) > _WIDEST:
        if cells(before) > _LEAD:
            before = "…" + _last_cells(before, _LEAD)
        marked = _first_cells(marked, _WIDEST - _LEAD - 10)
        rest = _WIDEST - cells(before) - cells(marked)
        after = after if cells(after) <= rest else _first_cells(after, rest) + "…"
    return before + marked + after, cells(before), max(cells(marked), 1)


def _first_cells(text: str, width: int) -> str:
    used = 0
    for i, char in enumerate(text):
        used += _char_cells(char)
        if used > width:
            return text[:i]
    return text


def _last_cells(text: str, width: int) -> str:
    return _first_cells(text[::-1], width)[::-1]


def _char_cells(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
