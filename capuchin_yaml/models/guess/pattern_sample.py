"""A text that fits a regular expression, for the plain kind that schemas of tool inputs use."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CLASSES: Mapping[str, str] = {"d": "1", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_ESCAPES: Mapping[str, str] = {"n": "\n", "t": "\t", "r": "\r"}
_QUANTIFIER = re.compile(r"\{(\d+)(?:,\d*)?\}")
_CANDIDATES = "a1A-_. x0Z"


def text_for_pattern(pattern: str, at_least: int = 0) -> str | None:
    """A text in which the pattern is found, at least so long if that is easy; None if unsure."""
    try:
        wanted = re.compile(pattern)
        for repeat in (0, 1, at_least):
            text = _Sampler(pattern, repeat).alternatives()
            if len(text) >= at_least and wanted.search(text):
                return text
    except (re.error, IndexError, RecursionError, ValueError):
        pass
    return None


class _Sampler:
    """Walks a pattern once and writes the least text that fits it; look-around is left out."""

    def __init__(self, pattern: str, repeat: int) -> None:
        self._pattern = pattern
        self._at = 0
        self._repeat = repeat
        """How often to write what may be repeated freely."""

    def alternatives(self) -> str:
        first = self._sequence()
        while self._peek() == "|":
            self._at += 1
            self._sequence()
        return first

    def _sequence(self) -> str:
        out = ""
        while self._peek() not in ("", "|", ")"):
            out += self._repeated()
        return out

    def _repeated(self) -> str:
        piece = self._atom()
        counted = _QUANTIFIER.match(self._pattern, self._at)
        if counted:
            self._at = counted.end()
            piece *= int(counted.group(1))
        elif self._peek() in ("*", "+", "?"):
            sign = self._next()
            piece *= max(self._repeat, 1) if sign == "+" else self._repeat if sign == "*" else 0
        else:
            return piece
        if self._peek() in ("?", "+"):
            self._at += 1
        return piece

    def _atom(self) -> str:
        char = self._next()
        if char in "^$":
            return ""
        if char == ".":
            return "a"
        if char == "[":
            return self._one_of_class()
        if char == "(":
            return self._group()
        if char == "\\":
            return self._escaped(self._next())
        return char

    def _group(self) -> str:
        silent = False
        if self._pattern.startswith("?", self._at):
            named = re.compile(r"\?P?<\w+>|\?:").match(self._pattern, self._at)
            silent = named is None
            self._at = named.end() if named else self._at + 2
        text = self.alternatives()
        self._at += 1
        return "" if silent else text

    def _one_of_class(self) -> str:
        end = self._at + 1
        while self._pattern[end] != "]" or self._pattern[end - 1] == "\\":
            end += 1
        members = self._pattern[self._at : end]
        self._at = end + 1
        one = re.compile(f"[{members}]")
        letters = (*_CANDIDATES, *map(chr, range(32, 127)))
        return next((c for c in letters if one.fullmatch(c)), "")

    @staticmethod
    def _escaped(char: str) -> str:
        if char in "bBAZ":
            return ""
        return _CLASSES.get(char, _ESCAPES.get(char, char))

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._pattern[self._at]
        self._at += 1
        return char
