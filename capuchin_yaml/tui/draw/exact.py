"""Arguments of a call as rows: laid out for reading, without changing a single token."""

from __future__ import annotations

from capuchin_yaml.terminal_text import visible
from capuchin_yaml.tui.draw.rows import Piece, Row, fold

_INDENT = "  "
_CONTINUED = Piece("↪ ", "muted")


def laid_out(canonical: str) -> str:
    """Canonical JSON with line breaks and indents added between its tokens.

    The tokens themselves are copied, never parsed and written again: `1.0` stays `1.0`, and
    an escape inside a string stays that escape. Text that is no JSON comes back as it is.
    """
    out: list[str] = []
    depth = 0
    i = 0
    while i < len(canonical):
        char = canonical[i]
        if char == '"':
            end = _string_end(canonical, i)
            out.append(canonical[i:end])
            i = end
            continue
        if char in "{[":
            if canonical[i + 1 : i + 2] in ("}", "]"):
                out.append(canonical[i : i + 2])
                i += 2
                continue
            depth += 1
            out.append(char + "\n" + _INDENT * depth)
        elif char in "}]":
            depth = max(depth - 1, 0)
            out.append("\n" + _INDENT * depth + char)
        elif char == ",":
            out.append(",\n" + _INDENT * depth)
        elif char == ":":
            out.append(": ")
        else:
            out.append(char)
        i += 1
    return "".join(out)


def argument_rows(canonical: str, width: int, indent: int = 2) -> list[Row]:
    """The arguments laid out for reading; a line that had to be broken goes on after `↪`."""
    lead = Piece(" " * indent)
    out: list[Row] = []
    for line in laid_out(canonical).split("\n"):
        body = visible(line, keep_newlines=False)
        blanks = len(body) - len(body.lstrip(" "))
        first = (lead, Piece(body[:blanks]))
        rest = (lead, Piece(" " * blanks), _CONTINUED)
        out.extend(fold((Piece(body[blanks:], "block"),), width, first, rest))
    return out


def exact_rows(text: str, width: int, indent: int = 2) -> list[Row]:
    """The very text that would run, on as many rows as it takes; only `↪` is added at breaks."""
    lead = Piece(" " * indent)
    body = Piece(visible(text, keep_newlines=False), "block")
    return fold((body,), width, (lead,), (lead, _CONTINUED))


def _string_end(text: str, start: int) -> int:
    i = start + 1
    while i < len(text):
        if text[i] == "\\":
            i += 2
        elif text[i] == '"':
            return i + 1
        else:
            i += 1
    return len(text)
