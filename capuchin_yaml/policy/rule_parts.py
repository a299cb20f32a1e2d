"""The parts of a condition that must all hold, and what one says of another."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from capuchin_yaml.policy.cel_text import Token, tokens
from capuchin_yaml.spec import JsonValue

_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Part:
    """One part; with a path it compares what stands there with a literal."""

    text: str
    path: tuple[str, ...] = ()
    sign: str = ""
    literal: JsonValue = None


def parts_of(condition: str) -> tuple[Part, ...]:
    """The parts of a condition that must all hold; none where that is not certain."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for word in tokens(condition):
        depth += (word.text in "([{") - (word.text in ")]}")
        if depth == 0 and word.text in ("||", "?"):
            return ()
        if depth == 0 and word.text == "&&":
            parts.append([])
        else:
            parts[-1].append(word)
    return tuple(_part(words) for words in parts)


def implies(condition: str, other: str) -> bool:
    """Whether whatever meets the condition certainly meets the other one too."""
    if condition.split() == other.split():
        return True
    mine, others = parts_of(condition), parts_of(other)
    return bool(others) and all(any(_holds(b, a) for a in mine) for b in others)


def contradiction(condition: str) -> str | None:
    """Two parts that are never true of one call, as a sentence; None when there are none."""
    parts = [part for part in parts_of(condition) if part.path]
    for i, part in enumerate(parts):
        for other in parts[:i]:
            if part.path == other.path and _never_both(other, part):
                return f"{other.text} and {part.text} are never both true"
    return None


def _part(words: Sequence[Token]) -> Part:
    text = " ".join(t.text for t in words).replace(" . ", ".")
    signs = [i for i, t in enumerate(words) if t.text in _MIRRORED]
    if len(signs) != 1:
        return Part(text)
    left, sign, right = words[: signs[0]], words[signs[0]].text, words[signs[0] + 1 :]
    path, literal = _path(left), _literal(right)
    if path is None:
        path, literal, sign = _path(right), _literal(left), _MIRRORED[sign]
    if path is None or literal is None:
        return Part(text)
    return Part(text, path, sign, literal)


def _holds(wanted: Part, given: Part) -> bool:
    """Whether `wanted` is true wherever `given` is."""
    if wanted.text == given.text:
        return True
    if not wanted.path or wanted.path != given.path:
        return False
    if wanted.sign == "!=":
        same = Part("", wanted.path, "==", wanted.literal)
        return _never_both(given, same)
    if not (_is_number(wanted.literal) and _is_number(given.literal)) or given.sign == "!=":
        return wanted.sign == given.sign == "==" and wanted.literal == given.literal
    (low, low_in), (high, high_in) = _range(given)
    (least, least_in), (most, most_in) = _range(wanted)
    above = low > least or (low == least and (least_in or not low_in))
    below = high < most or (high == most and (most_in or not high_in))
    return above and below


def _never_both(one: Part, other: Part) -> bool:
    if {one.sign, other.sign} == {"==", "!="}:
        return bool(one.literal == other.literal)
    if "!=" in (one.sign, other.sign):
        return False
    if not (_is_number(one.literal) and _is_number(other.literal)):
        return one.sign == other.sign == "==" and bool(one.literal != other.literal)
    low, low_in = max(_range(one)[0], _range(other)[0], key=lambda end: (end[0], not end[1]))
    high, high_in = min(_range(one)[1], _range(other)[1], key=lambda end: (end[0], end[1]))
    return low > high or (low == high and not (low_in and high_in))


def _range(part: Part) -> tuple[tuple[float, bool], tuple[float, bool]]:
    """The least and the greatest number that fit, each with whether it is one of them."""
    closed = part.sign in (">=", "<=", "==")
    low = (part.literal, closed) if part.sign in (">", ">=", "==") else (-math.inf, False)
    high = (part.literal, closed) if part.sign in ("<", "<=", "==") else (math.inf, False)
    return low, high


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _path(words: Sequence[Token]) -> tuple[str, ...] | None:
    names = [t.text for t in words[::2]]
    if not words or any(t.kind != "name" for t in words[::2]):
        return None
    if any(t.text != "." for t in words[1::2]) or len(words) % 2 == 0:
        return None
    return tuple(names)


def _literal(words: Sequence[Token]) -> JsonValue:
    text = "".join(t.text for t in words)
    kinds = [t.kind for t in words]
    if kinds == ["text"] or kinds == ["number"] or (kinds == ["sign", "number"] and text[0] == "-"):
        try:
            value: JsonValue = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return None
        return value if isinstance(value, str | int | float) else None
    return None
