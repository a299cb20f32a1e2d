"""Literals of a condition that no call could ever make sense of, such as a broken pattern.

CEL reads them only when the condition runs, and there each of them is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from capuchin_yaml.policy.cel_text import Token, token_at, tokens
from capuchin_yaml.policy.rules import Failed, evaluate


class BadLiteral(NamedTuple):
    """One literal; places are offsets into the condition."""

    message: str
    start: int
    end: int
    help: str


_SOME_TIME = "timestamp('2000-01-01T00:00:00Z')"
# What a function takes, how to find out whether a literal is one, and what to type instead.
_READERS = {
    "timestamp": (
        "a time",
        "timestamp({0}) == timestamp({0})",
        "timestamp('2030-01-31T00:00:00Z')",
    ),
    "duration": ("a duration", "duration({0}) == duration('1s')", "duration('1h30m')"),
    "int": ("a whole number", "int({0}) == 0", "a number without quotes"),
    "uint": ("a whole number", "uint({0}) == 0u", "a number without quotes"),
    "double": ("a number", "double({0}) == 0.0", "a number without quotes"),
    "bool": ("true or false", "bool({0}) == true", "true or false without quotes"),
}
_HOURS = ("a time zone", _SOME_TIME + ".getHours({0}) == 0", "'Europe/Berlin' or '+01:00'")


def bad_literals(condition: str) -> Iterator[BadLiteral]:
    """Every literal that the function it is given to cannot read, and divisions by nothing.

    The condition is one that type-checks.
    """
    words = tokens(condition)
    for i, word in enumerate(words):
        before = [t.text for t in words[max(i - 3, 0) : i]]
        if word.text == "0" and before[-1:] in (["/"], ["%"]):
            yield BadLiteral(
                "nothing can be divided by 0", word.start, word.end, "divide by another number"
            )
        elif word.kind == "text" and (found := _unreadable(words, i, before)) is not None:
            yield found


def literal_help(condition: str, end: int, left: str, right: str) -> str | None:
    """What to type in place of the literal behind a comparison with something of another type."""
    literal = token_at(condition, end)
    if literal is None or literal.kind not in ("text", "number"):
        return None
    if "timestamp" in left.lower():
        return "write timestamp('2030-01-31T00:00:00Z')"
    if left == "string" and literal.kind == "number":
        return f"put it in quotes: '{literal.text}'"
    inner = literal.text[1:-1]
    if left in ("int", "double") and right == "string" and re.fullmatch(r"\d+(\.\d+)?", inner):
        return f"without quotes: {inner}"
    return None


def _unreadable(words: Sequence[Token], i: int, before: Sequence[str]) -> BadLiteral | None:
    word = words[i]
    if [t.text for t in words[i + 1 : i + 2]] != [")"]:
        return None
    if "matches" in before[-2:-1] or _is_second_of_matches(words, i):
        answer = evaluate(f"''.matches({word.text})", {})
        if not isinstance(answer, Failed):
            return None
        reason = answer.reason.removeprefix("invalid regular expression: ")
        message = f"the pattern cannot be read: {reason}"
        return BadLiteral(
            message, word.start, word.end, "write a pattern of RE2, such as '^A-[0-9]+$'"
        )
    if before[-1:] != ["("] or len(before) < 2:
        return None
    is_method = before[:-2][-1:] == ["."]
    name = before[-2]
    reader = _READERS.get(name) if not is_method else _HOURS if name.startswith("get") else None
    if reader is None:
        return None
    what, probe, example = reader
    if not isinstance(evaluate(probe.format(word.text), {}), Failed):
        return None
    return BadLiteral(f"{word.text} is not {what}", word.start, word.end, f"write {example}")


def _is_second_of_matches(words: Sequence[Token], i: int) -> bool:
    """Whether the word is the pattern of `matches(text, pattern)`."""
    if i < 2 or words[i - 1].text != ",":
        return False
    depth = 0
    for j in range(i - 1, 0, -1):
        depth += (words[j].text in ")]}") - (words[j].text in "([{")
        if depth < 0:
            return words[j - 1].text == "matches"
        if depth == 0 and words[j].text == "," and j != i - 1:
            return False
    return False
