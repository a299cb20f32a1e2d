"""A template with one of its tags taken out, so that a mistake in it hides no other.

What is taken out becomes blanks: every place of the rest stays what it was.
"""

from __future__ import annotations

import re

_NOT_A_BREAK = re.compile(r"[^\n]")
_OPENINGS = ("{{", "{%", "{#")
MOST_CHARS = 400_000
"""Of all readings of one template together, so that a large one with many mistakes is not slow."""


def opening_before(source: str, place: int) -> int:
    """Where the tag begins that `place` lies in or behind; -1 when there is none before it."""
    return max(source.rfind(mark, 0, place + 2) for mark in _OPENINGS)


def without_opening(source: str, place: int) -> str | None:
    """The template with the tag around `place` as plain text; None when there is no tag."""
    start = opening_before(source, place)
    return None if start < 0 else f"{source[:start]}  {source[start + 2 :]}"


def without_value(source: str, place: int) -> str | None:
    """The template without the `{{ … }}` around `place`; None when it lies in no such tag."""
    start = opening_before(source, place)
    if start < 0 or source[start : start + 2] != "{{" or "}}" in source[start:place]:
        return None
    end = source.find("}}", place)
    if end < 0:
        return None
    return source[:start] + _NOT_A_BREAK.sub(" ", source[start : end + 2]) + source[end + 2 :]


def never_closed(source: str, block: str) -> int:
    """Where the innermost `{% block … %}` without an end begins; -1 when each has one."""
    # A `set` with a value is no block.
    value = r"(?!\s+\w+\s*=)" if block == "set" else ""
    tag = re.compile(r"\{%[-+]?\s*(end)?" + re.escape(block) + r"\b" + value)
    ended = 0
    for match in reversed(list(tag.finditer(source))):
        if match.group(1):
            ended += 1
        elif ended:
            ended -= 1
        else:
            return match.start()
    return -1
