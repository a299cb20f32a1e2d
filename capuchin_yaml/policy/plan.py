"""What an agent may do, as far as its definition and the operator's floor say before any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from capuchin_yaml.policy.cel_text import Token, tokens
from capuchin_yaml.policy.cel_types import numeric_names, plain_schema
from capuchin_yaml.policy.gating import answers, policy_asks
from capuchin_yaml.policy.judge import Floor, policy_reason
from capuchin_yaml.policy.rule_failure import as_it_answers
from capuchin_yaml.policy.rules import is_about
from capuchin_yaml.spec import AgentSpec, JsonValue, RuleAnswer, RuleSpec, ToolSpec

Course: TypeAlias = Literal["runs", "asks", "never", "depends"]
"""A call runs alone, asks a person, is always refused, or that depends on a condition."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that is said of a tool's calls."""

    source: str
    """`policy`, `needs_approval`, `rule 2` or `floor 1`."""
    answer: RuleAnswer
    when: str | None
    """The condition; None is always."""
    reason: str


@dataclass(frozen=True, slots=True)
class Cap:
    """A most that a rule or the tool's own schema sets."""

    most: int | float
    what: str
    """A numeric argument, or `calls`."""
    per: Literal["call", "conversation"]
    source: str


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """One tool as the agent may use it."""

    tool: ToolSpec
    course: Course
    clauses: tuple[Clause, ...]
    """In the order in which they are looked at; the last always answers."""
    caps: tuple[Cap, ...]


def tool_plans(spec: AgentSpec, floor: Floor) -> tuple[ToolPlan, ...]:
    """Every tool of the agent, in the order of its file."""
    return tuple(
        ToolPlan(
            tool,
            course(answers(spec, tool), tool, floor),
            tuple(_clauses(spec, tool, floor)),
            tuple(_caps(spec, tool, floor)),
        )
        for tool in spec.tools
    )


def course(word: frozenset[RuleAnswer], tool: ToolSpec, floor: Floor) -> Course:
    """What happens with calls of a tool that the agent's own word and the floor are about."""
    found = set(word)
    for _, rule in _placed(floor.rules, tool):
        if rule.when is not None:
            found.add(rule.then)
        elif rule.then == "deny":
            return "never"
        else:
            found = (found - {"allow"}) | {"ask"} if "allow" in found else found
    if floor.problem and "allow" in found:
        found = (found - {"allow"}) | {"ask"}
    only: dict[RuleAnswer, Course] = {"allow": "runs", "ask": "asks", "deny": "never"}
    return only[found.pop()] if len(found) == 1 else "depends"


def tool_plan_json(plan: ToolPlan) -> dict[str, JsonValue]:
    """The plan of a tool for programs."""
    tool = plan.tool
    return {
        "tool": tool.identity,
        "alias": tool.alias,
        "course": plan.course,
        "effect": tool.effect,
        "idempotent": tool.idempotent,
        "package": f"{tool.distribution} {tool.distribution_version}",
        "clauses": [
            {"source": c.source, "answer": c.answer, "when": c.when, "reason": c.reason}
            for c in plan.clauses
        ],
        "caps": [
            {"most": c.most, "what": c.what, "per": c.per, "source": c.source} for c in plan.caps
        ],
    }


def _clauses(spec: AgentSpec, tool: ToolSpec, floor: Floor) -> Iterator[Clause]:
    for place, rule in _placed(floor.rules, tool):
        yield Clause(f"floor {place}", rule.then, rule.when, rule.reason)
    if floor.problem:
        yield Clause("floor", "ask", None, floor.problem)
    rules = list(_placed(spec.approval.rules, tool))
    for place, rule in rules:
        if rule.then == "deny":
            yield Clause(f"rule {place}", "deny", rule.when, rule.reason)
            if rule.when is None:
                return
    for place, rule in rules:
        if rule.then != "deny":
            yield Clause(f"rule {place}", rule.then, rule.when, rule.reason)
            if rule.when is None:
                break
    else:
        asks = policy_asks(spec.approval, tool)
        yield Clause("policy", "ask" if asks else "allow", None, policy_reason(spec, tool))
    if tool.needs_approval:
        yield Clause("needs_approval", "ask", None, "its author wants a person to decide")


def _placed(rules: Sequence[RuleSpec], tool: ToolSpec) -> Iterator[tuple[int, RuleSpec]]:
    for place, rule in enumerate(rules, 1):
        if is_about(rule, tool):
            yield place, as_it_answers(rule, tool)


def _caps(spec: AgentSpec, tool: ToolSpec, floor: Floor) -> Iterator[Cap]:
    """What the calls cannot exceed, read from the schema and from rules of a plain form.

    A cap is only claimed where it is certain: of a condition that does more than one comparison
    nothing is said.
    """
    schema = plain_schema(tool.input_schema)
    for name in numeric_names(schema):
        most = schema["properties"][name].get("maximum")
        if isinstance(most, int | float):
            yield Cap(most, name, "call", "the tool's schema")
    for kind, rules in (("rule", spec.approval.rules), ("floor", floor.rules)):
        for place, rule in _placed(rules, tool):
            if rule.then == "deny" and rule.when is not None:
                cap = _cap(rule.when, schema)
                if cap is not None:
                    yield Cap(*cap, f"{kind} {place}")


def _cap(
    condition: str, schema: Mapping[str, JsonValue]
) -> tuple[int | float, str, Literal["call", "conversation"]] | None:
    words = tokens(condition)
    signs = [i for i, t in enumerate(words) if t.text in (">", ">=")]
    if len(signs) != 1 or len(words) != signs[0] + 2 or words[-1].kind != "number":
        return None
    left, strict = words[: signs[0]], words[signs[0]].text == ">"
    limit = _number(words[-1])
    if limit is None:
        return None
    sides = _sum_of_paths(left)
    if sides == [("conversation", "calls")]:
        return (limit + 1 if strict else limit), "calls", "conversation"
    names = {path[-1] for path in sides}
    if len(names) != 1:
        return None
    [name] = names
    kind = numeric_names(schema).get(name)
    if kind is None or (not strict and kind == "number"):
        return None
    most = limit if strict else limit - 1
    if sorted(sides) == [("args", name)]:
        return most, name, "call"
    if sorted(sides) == [("args", name), ("conversation", "total", name)]:
        return most, name, "conversation"
    return None


def _sum_of_paths(words: Sequence[Token]) -> list[tuple[str, ...]]:
    """The paths of `a.b + c.d`; nothing for any other form."""
    text = "".join(t.text for t in words)
    if any(t.kind != "name" and t.text not in (".", "+") for t in words):
        return []
    return [tuple(part.split(".")) for part in text.split("+")]


def _number(token: Token) -> int | float | None:
    try:
        return int(token.text)
    except ValueError:
        try:
            return float(token.text)
        except ValueError:
            return None
