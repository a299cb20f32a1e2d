"""The words of a CEL condition with their places, as far as messages about it need them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
      |(?P<comment>//[^\n]*)
      |(?P<number>\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|0x[0-9a-fA-F]+u?|\d+u?)
      |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
      |(?P<sign>&&|\|\||==|!=|<=|>=|[^\s])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a condition; `start` and `end` count code points."""

    kind: str
    """text, number, name or sign."""
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Selection:
    """A chain of fields such as `args.who.age`."""

    path: tuple[str, ...]
    start: int
    end: int
    guarded: bool
    """It is what `has(…)` asks about."""


def tokens(condition: str) -> list[Token]:
    """The words of a condition, comments left out; never fails."""
    return [
        Token(str(match.lastgroup), match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(condition)
        if match.lastgroup != "comment"
    ]


def selections(condition: str) -> Iterator[Selection]:
    """Every chain of names that starts at a name of its own, also of one name only."""
    words = tokens(condition)
    i = 0
    while i < len(words):
        first = words[i]
        if first.kind != "name" or (i and words[i - 1].text == "."):
            i += 1
            continue
        path, end, j = [first.text], first.end, i + 1
        while j + 1 < len(words) and words[j].text == "." and words[j + 1].kind == "name":
            called = j + 2 < len(words) and words[j + 2].text == "("
            if called:
                break
            path.append(words[j + 1].text)
            end = words[j + 1].end
            j += 2
        guarded = i >= 2 and words[i - 1].text == "(" and words[i - 2].text == "has"
        yield Selection(tuple(path), first.start, end, guarded)
        i = j


def token_at(condition: str, offset: int) -> Token | None:
    """The word at an offset, else the next one after it."""
    return next((t for t in tokens(condition) if t.end > offset), None)


def offset_of(condition: str, line: int, column: int) -> int:
    """The offset of a place that CEL names, both counted from 1; clamped to the text."""
    lines = condition.split("\n")
    if not 1 <= line <= len(lines):
        return 0
    before = sum(len(text) + 1 for text in lines[: line - 1])
    return min(before + max(column - 1, 0), len(condition))
