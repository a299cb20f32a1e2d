"""Where each character of a text value stands in the file, for every style of YAML scalar."""

from __future__ import annotations

import re

from capuchin_yaml.compiler.document import Node
from capuchin_yaml.compiler.source_text import SourceText
from capuchin_yaml.diagnostics import Span

_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)


class ScalarPositions:
    """Maps places in a scalar's text to places in the file."""

    def __init__(self, source: SourceText, node: Node) -> None:
        self._source = source
        self._node = node
        self._aligned = False
        self._offsets: list[int] | None = None

    def span(self, start: int, end: int) -> Span:
        """The range of the file for a range of the text; the whole value when it is empty."""
        if not self._aligned:
            # Why here: most texts have no mistake, and need no places.
            self._aligned, self._offsets = True, _align(self._source, self._node)
        if self._offsets is None or start >= len(self._offsets):
            return self._node.span
        first = self._offsets[start]
        last = self._offsets[min(max(end, start + 1), len(self._offsets)) - 1]
        return self._source.span(first, max(last, first) + 1)


def _align(source: SourceText, node: Node) -> list[int] | None:
    """The file's offset of every character, or None when the two do not run alongside.

    The value holds the written characters in order. What differs is white space (indentation,
    folded lines) and escapes, so those are stepped over.
    """
    span = node.span
    start = source.offset(span.line, span.column)
    end = source.offset(span.end_line, span.end_column)
    if node.style in ("|", ">"):
        # The header line holds indicators, perhaps a comment, and no text.
        line_break = source.text.find("\n", start)
        start = line_break + 1 if line_break >= 0 else end
    elif node.style != "plain":
        start, end = start + 1, end - 1
    text = source.text
    offsets: list[int] = []
    at = start
    for char in node.text:
        escaped = node.style == '"' and text.startswith("\\", at)
        if char.isspace() and not escaped:
            if node.style == "|" and char == "\n":
                at = max(text.find("\n", at, end), at)
            offsets.append(min(at, max(end - 1, start)))
            at += 1 if text[at : at + 1].isspace() else 0
            continue
        at = _next_written(text, at, end, node.style)
        length = _written_length(text, at, char, node.style)
        if at >= end or length is None:
            return None
        offsets.append(at)
        at += length
    return offsets


def _next_written(text: str, at: int, end: int, style: str) -> int:
    """The next character that is neither indentation nor part of a folded line break."""
    while at < end:
        if style == '"' and text[at : at + 2] in ("\\\n", "\\\r"):
            at += 2
        elif text[at].isspace():
            at += 1
        else:
            break
    return at


def _written_length(text: str, at: int, char: str, style: str) -> int | None:
    if style == '"' and text.startswith("\\", at):
        match = _ESCAPE.match(text, at)
        return len(match.group()) if match is not None else None
    if style == "'" and char == "'":
        return 2
    return 1 if text.startswith(char, at) else None
