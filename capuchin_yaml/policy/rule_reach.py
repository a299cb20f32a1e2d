"""Rules that say nothing: conditions that no valid call can meet, rules behind other rules."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from capuchin_yaml.policy.cel_text import Token, tokens
from capuchin_yaml.policy.cel_types import Scope
from capuchin_yaml.policy.rules import is_about
from capuchin_yaml.spec import JsonValue, RuleSpec, ToolSpec

_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "=="}


def never_matches(
    condition: str, constant: bool | None, scope: Scope, aliases: Sequence[str]
) -> str | None:
    """Why no call can meet the condition, or None when some may."""
    if constant is False:
        return "the condition is false whatever the call is"
    for part in _conjuncts(condition):
        reason = _impossible(part, scope, aliases)
        if reason is not None:
            return reason
    return None


def hidden_by(
    rules: Sequence[RuleSpec], constants: Sequence[bool | None], tools: Sequence[ToolSpec]
) -> dict[int, int]:
    """Rules that can never decide, each with the rule in whose shadow it stands.

    A rule that denies stands in the shadow only of an earlier one that denies the same calls;
    any other also of every rule that denies them, wherever it stands.
    """
    found: dict[int, int] = {}
    for i, rule in enumerate(rules):
        about = [tool for tool in tools if is_about(rule, tool)]
        shades = [_shade(rules, constants, i, tool) for tool in about]
        if shades and all(shade is not None for shade in shades):
            found[i] = max(shade for shade in shades if shade is not None)
    return found


def _shade(
    rules: Sequence[RuleSpec], constants: Sequence[bool | None], i: int, tool: ToolSpec
) -> int | None:
    rule = rules[i]
    for j, other in enumerate(rules):
        if j == i or not is_about(other, tool):
            continue
        always = other.when is None or constants[j] is True
        same = (other.when or "").split() == (rule.when or "").split()
        if not (always or same):
            continue
        if other.then == "deny" and (j < i or rule.then != "deny"):
            return j
        if j < i and rule.then != "deny":
            return j
    return None


def _conjuncts(condition: str) -> list[list[Token]]:
    """The parts of a condition that must all hold; only itself where that is not certain."""
    words = tokens(condition)
    parts: list[list[Token]] = [[]]
    depth = 0
    for word in words:
        depth += (word.text in "([{") - (word.text in ")]}")
        if depth == 0 and word.text in ("||", "?"):
            return []
        if depth == 0 and word.text == "&&":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _impossible(part: Sequence[Token], scope: Scope, aliases: Sequence[str]) -> str | None:
    signs = [i for i, t in enumerate(part) if t.text in _MIRRORED]
    if len(signs) != 1:
        return None
    left, sign, right = part[: signs[0]], part[signs[0]].text, part[signs[0] + 1 :]
    path, literal = _path(left), _literal(right)
    if path is None:
        path, literal, sign = _path(right), _literal(left), _MIRRORED[sign]
    if path is None or literal is None:
        return None
    name = ".".join(path)
    if path in (("tool",), ("alias",)) and sign == "==":
        known = scope.tool_names if path == ("tool",) else aliases
        return None if literal in known else f"{name} is never {literal!r} here"
    schema = _schema(path, scope)
    return _outside(name, sign, literal, schema) if schema is not None else None


def _outside(
    name: str, sign: str, literal: JsonValue, schema: Mapping[str, JsonValue]
) -> str | None:
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and sign == "==" and literal not in allowed:
        return f"{name} is never {literal!r}; it is one of {', '.join(map(repr, allowed))}"
    if not isinstance(literal, int | float):
        return None
    low, high = schema.get("minimum"), schema.get("maximum")
    above = high is not None and (literal > high or (sign == ">" and literal >= high))
    below = low is not None and (literal < low or (sign == "<" and literal <= low))
    if sign in (">", ">=", "==") and above:
        return f"{name} is never more than {high}"
    if sign in ("<", "<=", "==") and below:
        return f"{name} is never less than {low}"
    return None


def _schema(path: tuple[str, ...], scope: Scope) -> Mapping[str, JsonValue] | None:
    if path[0] != "args" or scope.args is None:
        return None
    schema: Mapping[str, JsonValue] = scope.args
    for name in path[1:]:
        inner = schema.get("properties", {}).get(name)
        if not isinstance(inner, Mapping):
            return None
        schema = inner
    return schema if len(path) > 1 else None


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
