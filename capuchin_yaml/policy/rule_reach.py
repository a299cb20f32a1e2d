"""Rules that say nothing: conditions that no valid call can meet, rules behind other rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from capuchin_yaml.policy.cel_types import Scope
from capuchin_yaml.policy.rule_parts import Part, contradiction, implies, parts_of
from capuchin_yaml.policy.rules import is_about
from capuchin_yaml.spec import JsonValue, RuleSpec, ToolSpec

_CALLS: Mapping[str, JsonValue] = {"type": "integer", "minimum": 0}


def never_matches(
    condition: str, constant: bool | None, scope: Scope, aliases: Sequence[str]
) -> str | None:
    """Why no call can meet the condition, or None when some may."""
    if constant is False:
        return "the condition is false whatever the call is"
    for part in parts_of(condition):
        reason = _impossible(part, scope, aliases)
        if reason is not None:
            return reason
    return contradiction(condition)


def hidden_by(
    rules: Sequence[RuleSpec], constants: Sequence[bool | None], tools: Sequence[ToolSpec]
) -> dict[int, int]:
    """Rules that can never decide, each with the rule in whose shadow it stands.

    A rule that denies stands in the shadow only of an earlier one that denies the same calls;
    any other also of every rule that denies them, wherever it stands.
    """
    found: dict[int, int] = {}
    for i, rule in enumerate(rules):
        if constants[i] is False:
            continue  # it matches nothing, which is another mistake
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
        if not always and not implies(rule.when or "", other.when or ""):
            continue
        if other.then == "deny" and (j < i or rule.then != "deny"):
            return j
        if j < i and rule.then != "deny":
            return j
    return None


def _impossible(part: Part, scope: Scope, aliases: Sequence[str]) -> str | None:
    if not part.path:
        return None
    name = ".".join(part.path)
    if part.path in (("tool",), ("alias",)) and part.sign == "==":
        known = scope.tool_names if part.path == ("tool",) else aliases
        return None if part.literal in known else f"{name} is never {part.literal!r} here"
    schema = _schema(part.path, scope)
    return _outside(name, part.sign, part.literal, schema) if schema is not None else None


def _outside(
    name: str, sign: str, literal: JsonValue, schema: Mapping[str, JsonValue]
) -> str | None:
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and sign == "==" and literal not in allowed:
        return f"{name} is never {literal!r}; it is one of {', '.join(map(repr, allowed))}"
    if isinstance(literal, str) and sign == "==" and not _fits(literal, schema):
        return f"{name} is never {literal!r}, which its pattern or length rules out"
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


def _fits(text: str, schema: Mapping[str, JsonValue]) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text)):
        return False
    try:
        return re.search(schema.get("pattern", ""), text) is not None
    except re.error:
        return True  # it is no pattern of Python's, so nothing is certain


def _schema(path: tuple[str, ...], scope: Scope) -> Mapping[str, JsonValue] | None:
    if path == ("conversation", "calls"):
        return _CALLS
    if path[0] != "args" or scope.args is None:
        return None
    schema: Mapping[str, JsonValue] = scope.args
    for name in path[1:]:
        inner = schema.get("properties", {}).get(name)
        if not isinstance(inner, Mapping):
            return None
        schema = inner
    return schema if len(path) > 1 else None
