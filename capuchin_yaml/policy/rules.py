"""Rules at work: which rule a call meets, and what its condition says of it.

Conditions run on plain values, where an absent argument is an error and never a quiet 0. A
condition that gives anything but true or false makes its rule answer deny if it says deny,
else ask. Evaluation is bounded before it starts: CEL has no time limit of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from capuchin_yaml.policy.cel_text import tokens
from capuchin_yaml.policy.cel_types import plain_schema
from capuchin_yaml.spec import JsonValue, RuleSpec, ToolSpec
from capuchin_yaml.tally import Tally

MOST_SECONDS = 0.5
"""Estimated time that all conditions of one request to the judge may take."""
MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
_SEARCHES = frozenset({"contains", "matches"})
_MOST_ITERATIONS = 10_000
"""The budget of CEL itself."""

Matched: TypeAlias = Literal["yes", "no", "failed"]


@dataclass(slots=True)
class Meter:
    """What is left of the time for conditions; shared by all calls of one request."""

    left_s: float = MOST_SECONDS


@dataclass(frozen=True, slots=True)
class Facts:
    """What a condition may look at besides the call itself."""

    now: datetime
    variables: Mapping[str, JsonValue] = field(default_factory=dict)
    injected: Mapping[str, JsonValue] = field(default_factory=dict)
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A condition that gave neither true nor false."""

    reason: str


def is_about(rule: RuleSpec, tool: ToolSpec) -> bool:
    """Whether the rule's `tool` means this one: identity, alias, `package.*`, `*` or absent."""
    return is_named(rule, tool.identity, tool.alias)


def is_named(rule: RuleSpec, identity: str, alias: str) -> bool:
    """Whether the rule's `tool` means the tool with this identity and alias."""
    name = rule.tool
    if name is None or name == "*":
        return True
    if name.endswith(".*"):
        return identity.startswith(name[:-1])
    return name == (identity if "." in name else alias)


def match(
    rule: RuleSpec,
    tool: ToolSpec,
    arguments: Mapping[str, JsonValue],
    tally: Tally,
    facts: Facts,
    meter: Meter,
) -> tuple[Matched, str]:
    """Whether the rule matches the call, and why not if it could not be told."""
    if not is_about(rule, tool):
        return "no", ""
    if rule.when is None:
        return "yes", ""
    condition = rule.runs or rule.when
    data = {
        "args": fitted(plain_schema(tool.input_schema), arguments),
        "tool": tool.identity,
        "alias": tool.alias,
        "variables": dict(facts.variables),
        "injected": dict(facts.injected),
        "conversation": {
            "calls": tally.calls,
            "total": _totals(tool, tally),
            "untrusted": facts.untrusted,
        },
        "now": facts.now,
    }
    meter.left_s -= estimated_s(condition, data)
    if meter.left_s < 0:
        return "failed", "the arguments are too large for its condition"
    value = evaluate(condition, data)
    if isinstance(value, bool):
        return ("yes" if value else "no"), ""
    return "failed", value.reason


def evaluate(condition: str, data: Mapping[str, Any]) -> bool | Failed:
    """Run a condition on plain values; never raises."""
    from cel_expr_python import cel

    try:
        value = _expression(condition).eval(data=dict(data))
        kind = value.type()
        if kind == cel.Type.BOOL and isinstance(value.value(), bool):
            return bool(value.value())
        said = str(value.value()) if kind == cel.Type.ERROR else f"it gave {kind.name().lower()}"
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        said = str(error)
    said = re.sub(r"^[A-Z_]+: ", "", said).splitlines()[0] if said else "no answer"
    return Failed(said[:200])


def estimated_s(condition: str, data: Mapping[str, Any]) -> float:
    """An upper estimate of the time that a condition takes on values of this size.

    Measured with cel-expr-python 0.1.3: a step costs 2 µs and 3 ns for each byte it may copy;
    a search of text in text that the caller chooses both grows with the square.
    """
    words = tokens(condition)
    loops = sum(1 for t in words if t.text in MACROS)
    steps = 1 + sum(1 for t in words if t.kind in ("name", "sign"))
    size, longest = _measure([data.get("args"), data.get("variables"), data.get("injected")])
    size += len(condition)
    rounds = min(max(longest, len(words)) ** loops, _MOST_ITERATIONS) if loops else 1
    step_s = 2e-6 + size * 3e-9
    searches = sum(1 for t in words if t.text in _SEARCHES)
    return float(rounds * (steps * step_s + searches * size * size * 8e-12))


def fitted(schema: Mapping[str, JsonValue], value: JsonValue) -> JsonValue:
    """The value with each number as its schema has it: 5 is 5.0 where a `number` is asked for."""
    match value:
        case bool():
            return value
        case int() | float():
            kinds = _kinds(schema)
            if "number" in kinds and "integer" not in kinds:
                return float(value)
            if "integer" in kinds and "number" not in kinds and float(value).is_integer():
                return int(value)
            return value
        case Mapping():
            properties = schema.get("properties")
            known = properties if isinstance(properties, Mapping) else {}
            return {k: fitted(known.get(k) or {}, v) for k, v in value.items()}
        case list() | tuple():
            items = schema.get("items")
            inner = items if isinstance(items, Mapping) else {}
            return [fitted(inner, v) for v in value]
        case _:
            return value


def sentence(rule: RuleSpec, place: int) -> str:
    """The rule as a reason: its own, else its number and condition."""
    if rule.reason:
        return rule.reason
    about = rule.tool or "every tool"
    return f"rule {place} ({about}{f': {rule.when}' if rule.when else ''}) says {rule.then}"


def as_written(rule: RuleSpec) -> str:
    """The rule with its keys, on one line."""
    keys = (("tool", rule.tool), ("when", rule.when), ("then", rule.then), ("reason", rule.reason))
    return " · ".join(f"{key}: {' '.join(value.split())}" for key, value in keys if value)


def _totals(tool: ToolSpec, tally: Tally) -> JsonValue:
    schema = plain_schema(tool.input_schema)
    properties = schema.get("properties", {})
    zero = {
        name: 0
        for name, inner in properties.items()
        if isinstance(inner, Mapping) and inner.get("type") in ("integer", "number")
    }
    return fitted(schema, {**zero, **tally.total})


def _kinds(schema: Mapping[str, JsonValue]) -> set[str]:
    kind = schema.get("type")
    kinds = {kind} if isinstance(kind, str) else set(kind or ())
    for word in ("anyOf", "oneOf"):
        branches: Sequence[Any] = schema.get(word) or ()
        for branch in branches:
            if isinstance(branch, Mapping):
                kinds |= _kinds(branch)
    return kinds


def _measure(values: Sequence[Any]) -> tuple[int, int]:
    """Characters in all, and the longest list or map."""
    size = longest = 0
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            longest = max(longest, len(value))
            todo.extend(value.keys())
            todo.extend(value.values())
        elif isinstance(value, list | tuple):
            longest = max(longest, len(value))
            todo.extend(value)
        else:
            size += 8
    return size, longest


@lru_cache(maxsize=1024)
def _expression(condition: str) -> Any:
    return _run_env().compile(condition)


@lru_cache(maxsize=1)
def _run_env() -> Any:
    from cel_expr_python import cel

    kind = cel.Type
    return cel.NewEnv(
        variables={
            "args": kind.DYN,
            "variables": kind.DYN,
            "injected": kind.DYN,
            "conversation": kind.DYN,
            "tool": kind.STRING,
            "alias": kind.STRING,
            "now": kind.TIMESTAMP,
        }
    )
