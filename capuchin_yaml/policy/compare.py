"""What changed between two definitions of one agent, the loosened first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from capuchin_yaml.policy.gating import answers, asks_fewer, loosened, policy_asks, rules_about
from capuchin_yaml.policy.judge import Floor
from capuchin_yaml.policy.needs import needs_of
from capuchin_yaml.policy.plan import course
from capuchin_yaml.spec import AgentSpec, BudgetSpec, RuleSpec, ToolSpec, canonical_json

_WORDS = {
    "runs": "runs alone",
    "asks": "asks",
    "never": "is refused",
    "depends": "depends on rules",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it was."""

    kind: Literal["loosened", "added", "removed", "tightened", "changed"]
    what: str
    """A tool's identity, or a key of the file."""
    text: str


def changes(old: AgentSpec, new: AgentSpec) -> tuple[Change, ...]:
    """Everything that differs, what lets more happen before the rest."""
    found = [*_tools(old, new), *_rest(old, new)]
    order = ("loosened", "added", "removed", "tightened", "changed")
    return tuple(sorted(found, key=lambda change: order.index(change.kind)))


def _tools(old: AgentSpec, new: AgentSpec) -> Iterator[Change]:
    before = {(t.identity, t.alias): t for t in old.tools}
    after = {(t.identity, t.alias): t for t in new.tools}
    loose = set(loosened(old, new))
    for key, tool in after.items():
        was = before.get(key)
        if was is None:
            kind: Literal["loosened", "added"] = "loosened" if tool.identity in loose else "added"
            yield Change(kind, tool.identity, f"is new, {tool.effect}, and {_course(new, tool)}")
            continue
        yield from _one_tool(old, was, new, tool, tool.identity in loose)
    for key, tool in before.items():
        if key not in after:
            yield Change("removed", tool.identity, "is gone")


def _one_tool(
    old: AgentSpec, was: ToolSpec, new: AgentSpec, tool: ToolSpec, is_loose: bool
) -> Iterator[Change]:
    name = tool.identity
    first, then = _course(old, was), _course(new, tool)
    rules = _rule_changes(rules_about(old, was), rules_about(new, tool))
    rest = _rest_of_calls(old, was), _rest_of_calls(new, tool)
    text = "; ".join(
        [
            *([f"{first} → {then}"] if first != then else []),
            *rules,
            *(
                [f"what no rule decides {rest[0]} → {rest[1]}"]
                if rest[0] != rest[1] and all(rest)
                else []
            ),
        ]
    )
    if text:
        could, can = answers(old, was), answers(new, tool)
        more = is_loose or ("deny" in could and "deny" not in can)
        yield Change("loosened" if more else "tightened", name, text)
    if was.effect != tool.effect:
        kind: Literal["loosened", "changed"] = (
            "loosened" if tool.effect == "destructive" or was.effect == "read" else "changed"
        )
        yield Change(kind, name, f"was {was.effect}, is {tool.effect}")
    if was.needs_approval and not tool.needs_approval:
        yield Change("loosened", name, "its author no longer asks for a person")
    package, now = _package(was), _package(tool)
    if package != now:
        yield Change("changed", name, f"{package} → {now}")
    for key in ("config", "input_schema", "timeout_s", "description", "idempotent"):
        if canonical_json(_plain(getattr(was, key))) != canonical_json(_plain(getattr(tool, key))):
            yield Change("changed", name, f"another {key.removesuffix('_s').replace('_', ' ')}")


def _rest_of_calls(spec: AgentSpec, tool: ToolSpec) -> str:
    """What policy and list say, where rules leave anything to them."""
    if not rules_about(spec, tool):
        return ""
    return "asks" if policy_asks(spec.approval, tool) else "runs alone"


def _rule_changes(old: tuple[RuleSpec, ...], new: tuple[RuleSpec, ...]) -> list[str]:
    def said(rule: RuleSpec) -> str:
        who = [
            *([f"{rule.quorum} people"] if rule.quorum is not None else []),
            *([f"of {rule.approvers}"] if rule.approvers is not None else []),
            *(["not who asks"] if rule.exclude_requester else []),
            *([f"in the end {rule.escalate_to}"] if rule.escalate_to is not None else []),
        ]
        asked = f" {', '.join(who)}" if who else ""
        return f"{rule.then}{asked}{f' when {rule.when}' if rule.when else ''}"

    before, after = [said(r) for r in old], [said(r) for r in new]
    gone = [f"without the rule: {text}" for text in before if text not in after]
    added = [f"with the rule: {text}" for text in after if text not in before]
    if not gone and not added and before != after:
        return ["its rules stand in another order"]
    return [*gone, *added]


def _rest(old: AgentSpec, new: AgentSpec) -> Iterator[Change]:
    for limit in ("max_steps", "max_tool_calls", "max_parallel_calls", "same_call"):
        was, now = getattr(old.limits, limit), getattr(new.limits, limit)
        if was != now:
            kind: Literal["loosened", "tightened"] = "loosened" if now > was else "tightened"
            yield Change(kind, f"limits.{limit}", f"{was} → {now}")
    first, then = _waiting(old), _waiting(new)
    if first != then:
        weaker = asks_fewer(old.approval, new.approval)
        yield Change("loosened" if weaker else "changed", "approval", f"{first} → {then}")
    yield from _needs(old, new)
    yield from _budget(old.budget, new.budget)
    for key in ("model", "version"):
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            yield Change("changed", key, f"{was or 'none'} → {now or 'none'}")
    if old.model_settings != new.model_settings:
        yield Change("changed", "model", "is asked in another way")
    for key in ("prompt", "description", "variables", "injected", "price", "listing"):
        if getattr(old, key) != getattr(new, key):
            yield Change("changed", key, "is another")


def _needs(old: AgentSpec, new: AgentSpec) -> Iterator[Change]:
    """What it reaches beyond itself; more is loosened, whoever grants it."""
    before, after = needs_of(old), needs_of(new)
    for need in after:
        if need not in before:
            yield Change("loosened", "needs", f"also {need}")
    for need in before:
        if need not in after:
            yield Change("tightened", "needs", f"no longer {need}")


def _budget(old: BudgetSpec | None, new: BudgetSpec | None) -> Iterator[Change]:
    if old == new:
        return
    if old is None:
        yield Change("tightened", "budget", "is new")
        return
    if new is None:
        yield Change("loosened", "budget", "is gone")
        return
    for key, grows in (("max_usd", Decimal), ("max_tokens", int)):
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            more = now is None or (was is not None and grows(now) > grows(was))
            text = f"{was or 'none'} → {now or 'none'}"
            yield Change("loosened" if more else "tightened", f"budget.{key}", text)
    if old.per != new.per:
        kind: Literal["loosened", "tightened"] = (
            "loosened" if new.per == "conversation" else "tightened"
        )
        yield Change(kind, "budget.per", f"{old.per} → {new.per}")
    if old.on_exceed != new.on_exceed:
        kind = "loosened" if new.on_exceed == "warn" or old.on_exceed == "stop" else "tightened"
        yield Change(kind, "budget.on_exceed", f"{old.on_exceed} → {new.on_exceed}")


def _course(spec: AgentSpec, tool: ToolSpec) -> str:
    return _WORDS[course(answers(spec, tool), tool, Floor())]


def _waiting(spec: AgentSpec) -> str:
    approval = spec.approval
    who = f" for {approval.quorum} of {approval.approvers or 'anyone'}"
    who = "" if approval.approvers is None and approval.quorum == 1 else who
    if approval.exclude_requester:
        who += ", not for who asks"
    if approval.timeout_s is None:
        return f"waits{who} for ever"
    return f"waits{who} {approval.timeout_s:g} s, then {approval.on_timeout}"


def _package(tool: ToolSpec) -> str:
    return f"{tool.distribution} {tool.distribution_version}"


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, dict) else value
