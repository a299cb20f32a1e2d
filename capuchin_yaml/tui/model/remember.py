"""What an approval may allow beforehand, shown as the rule that it is. No I/O.

A grant lives in one conversation. What shall hold for all of them is a rule of the agent's file,
which is offered as YAML to paste: a person who edits the file sees the whole policy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from capuchin_yaml.client.answers import Grant
from capuchin_yaml.items import Item
from capuchin_yaml.spec import JsonValue, canonical_json

Scope: TypeAlias = Literal["call", "tool"]
MAX_TIMES = 1_000
LIMITS_OF_ALL = (
    "It never answers for the tool's author, the operator's floor or a rule that denies."
)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a person is about to allow beside the call on show."""

    scope: Scope
    times: int | None = None
    until: str | None = None
    """UTC, ISO 8601."""

    def to_json(self) -> dict[str, JsonValue]:
        """In the form that a decision carries."""
        return {"scope": self.scope, "times": self.times, "until": self.until}


def remembered(scope: str, times: str, lasting_s: float | None, now: datetime) -> Remembered:
    """What was chosen, when it can be kept.

    Raises:
        ValueError: it never ends, or not as a grant can end; the text says what to write.
    """
    if scope not in ("call", "tool"):
        raise ValueError("choose what it is for: this very call, or the tool")
    count: int | None = None
    if times.strip():
        if not times.strip().isdecimal() or not 1 <= int(times) <= MAX_TIMES:
            raise ValueError(f"how often is a number from 1 to {MAX_TIMES:,}")
        count = int(times)
    if lasting_s is not None and lasting_s <= 0:
        raise ValueError("a grant must end later than now")
    until = (now + timedelta(seconds=lasting_s)).isoformat() if lasting_s is not None else None
    if count is None and until is None:
        raise ValueError("say how often, or for how long: a grant must end")
    return Remembered("call" if scope == "call" else "tool", count, until)


def seconds(text: str) -> float | None:
    """Seconds of `30s`, `5m`, `1h30m`; None of an empty text.

    Raises:
        ValueError: it is no duration.
    """
    import re

    if not text.strip():
        return None
    found = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip())
    if not found or not any(found.groups()):
        raise ValueError(f"{text.strip()!r} is not a duration; write 30m, 2h or 1d")
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return days * 86400.0 + hours * 3600 + minutes * 60 + rest


def rule_text(scope: str, tool: str, times: int | None, until: str | None) -> str:
    """The rule in one sentence."""
    what = f"every call of {tool}" if scope == "tool" else f"this very call of {tool}"
    ends = []
    if times is not None:
        ends.append("once more" if times == 1 else f"up to {times:,} more times")
    if until is not None:
        ends.append(f"until {until[:16].replace('T', ' ')} UTC")
    return f"in this conversation, {what} runs without asking {' and '.join(ends)}".rstrip()


def grant_text(grant: Grant) -> str:
    """A standing grant in one sentence, as the rule that it is."""
    return rule_text(grant.scope, grant.tool, grant.left, grant.until)


def lets_through(item: Item, scope: str) -> list[str]:
    """Calls that it lets through; with the scope `tool` the risky neighbours first."""
    this = _call(item.tool, item.arguments)
    if scope == "call":
        return [this]
    return [*(_call(item.tool, a) for a in _neighbours(item.arguments)), this][:3]


def still_asks(item: Item, scope: str) -> list[str]:
    """Calls that ask all the same."""
    if scope == "tool":
        return ["every other tool", f"{item.tool} in every other conversation"]
    others = [_call(item.tool, a) for a in _neighbours(item.arguments)][:2]
    return [*others, "the same call with another release of its package or of the agent"]


def yaml_rule(item: Item) -> str:
    """A rule for the agent's file that lets calls like this run in every conversation."""
    conditions, left_out = _conditions(item.arguments)
    lines = ["approval:", "  rules:", f"    - tool: {item.tool}"]
    if left_out:
        names = canonical_json(", ".join(left_out))
        lines.insert(0, f"# whatever is in {names}: add a condition for it")
    if conditions:
        lines.append(f"      when: {canonical_json(' && '.join(conditions))}")
    return "\n".join([*lines, "      then: allow", ""])


def _call(tool: str, arguments: str) -> str:
    return f"{tool} {arguments}"


def _neighbours(arguments: str) -> list[str]:
    """The same call with one value changed: a number a hundred times as large, another text."""
    value = _object(arguments)
    out: list[str] = []
    for name, inner in value.items():
        other: JsonValue
        if isinstance(inner, bool):
            other = not inner
        elif isinstance(inner, int | float):
            other = inner * 100 or 100
        elif isinstance(inner, str):
            other = "…anything else…"
        else:
            continue
        out.append(canonical_json({**value, name: other}))
    return sorted(out, key=lambda a: "…" in a)


def _conditions(arguments: str) -> tuple[list[str], list[str]]:
    """Conditions for the plain values, and the names of the others."""
    out: list[str] = []
    left_out: list[str] = []
    for name, inner in _object(arguments).items():
        if name.isidentifier() and isinstance(inner, str | bool | int | float):
            out.append(f"args.{name} == {canonical_json(inner)}")
        else:
            left_out.append(name)
    return out, left_out


def _object(arguments: str) -> Mapping[str, Any]:
    try:
        value = json.loads(arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
