"""How a verdict is made: one pure function over an ordered list of sources.

The agent's word is its rules, then its policy and list, pinned with the definition. Bounds can
only tighten: the operator's floor and the tool author's `needs_approval`, as they are now. The
verdict is the strictest of all. A person's grant answers an ask of the agent's word, and only
when no bound asks. Later bounds are added to `_bounds`, never elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from capuchin_yaml.items import call_digest, terms_of
from capuchin_yaml.policy.canonical import InvalidArguments, canonical_arguments
from capuchin_yaml.policy.gating import policy_asks
from capuchin_yaml.policy.grants import Grants
from capuchin_yaml.policy.rules import Facts, Meter, is_about, match, sentence
from capuchin_yaml.spec import AgentSpec, JsonValue, RuleSpec, ToolSpec
from capuchin_yaml.tally import Tally

Answer: TypeAlias = Literal["allow", "ask", "deny"]
Verdict: TypeAlias = Literal["allow", "ask", "deny", "invalid"]
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class InstalledTool:
    """A tool as this worker would run it now."""

    tool_version: str
    distribution: str
    distribution_version: str
    needs_approval: bool
    has_preview: bool = False
    """It can say what a call would do before a person is asked."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What one source says of a call, and why."""

    source: str
    answer: Answer
    reason: str
    rule: RuleSpec | None = None
    """The agent's rule that answers, with its terms for an ask."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What the operator of the worker asks of every agent, as it is now."""

    rules: tuple[RuleSpec, ...] = ()
    problem: str = ""
    """Why the operator's word cannot be read; then every call asks."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What surrounds the calls of one reply."""

    injected: Mapping[str, JsonValue]
    facts: Facts
    tallies: Mapping[str, Tally]
    """By identity: what ran before this reply, and what is open, as if it ran."""
    floor: Floor = Floor()


NOTHING_BEFORE = CallContext({}, Facts(datetime.fromtimestamp(0, UTC)), {})
"""The first call of a conversation that nobody gave anything."""


def judge_calls(
    spec: AgentSpec,
    definition_hash: str,
    context: CallContext,
    calls: Sequence[Mapping[str, Any]],
    installed: Callable[[str], InstalledTool | None],
    grants: Grants | None = None,
) -> list[dict[str, JsonValue]]:
    """Judge the calls of one reply, in order, without running anything.

    Each verdict is `{call_id, tool, verdict, decided_by, reason, arguments, digest,
    distribution, sources, grant, preview, terms}`; `tool` is the identity, `arguments` the
    canonical text, and a call that is `invalid` has empty `arguments` and `digest`; `grant` is
    the id of the grant that let it through, or None; `preview` says whether the tool can show
    what it would do; `terms` are those of an ask (`items.terms_of`). A call that is neither
    denied nor invalid counts for those after it as if it ran.
    """
    judge = _Judge(spec, definition_hash, context, installed, grants or Grants((), ""))
    return [judge.call(call) for call in calls]


class _Judge:
    def __init__(
        self,
        spec: AgentSpec,
        definition_hash: str,
        context: CallContext,
        installed: Callable[[str], InstalledTool | None],
        grants: Grants,
    ) -> None:
        self._spec = spec
        self._hash = definition_hash
        self._context = context
        self._installed = installed
        self._grants = grants
        self._tallies = dict(context.tallies)
        self._meter = Meter()

    def call(self, call: Mapping[str, Any]) -> dict[str, JsonValue]:
        call_id, alias = str(call["call_id"]), str(call["tool"])
        tool = self._spec.tool_by_alias(alias)
        if tool is None:
            names = ", ".join(t.alias for t in self._spec.tools) or "none"
            return _invalid(
                call_id, alias, f"there is no tool named {alias!r}; the tools are: {names}"
            )
        now = self._installed(tool.identity)
        if now is None:
            return _invalid(
                call_id,
                tool.identity,
                f"{tool.identity} is no longer installed where this agent runs",
            )
        if call.get("problem"):
            return _invalid(call_id, tool.identity, str(call["problem"]))
        try:
            arguments = canonical_arguments(tool.input_schema, call["input"])
        except InvalidArguments as error:
            return _invalid(call_id, tool.identity, str(error))

        values = json.loads(arguments)
        tally = self._tallies.get(tool.identity, Tally())
        running = replace(
            tool,
            tool_version=now.tool_version,
            distribution=now.distribution,
            distribution_version=now.distribution_version,
        )
        digest = call_digest(digest_parts(running), arguments, self._context.injected, self._hash)
        word = self._rules(tool, values, tally) or _policy(self._spec, tool)
        bounds = self._bounds(tool, now, values, tally)
        # Why: a bound that asks for a call which the rule lets run has no terms of its own.
        asking = word.rule if word.answer == "ask" else None
        terms = terms_of(self._spec.approval, asking)
        grant = None
        if word.answer == "ask" and all(b.answer == "allow" for b in bounds):
            grant = self._grants.use(tool.identity, digest, terms)
        if grant is not None:
            word = SourceAnswer("grant", "allow", f"a person allowed it beforehand ({grant})")
        answers = [word, *bounds]
        strictest = max(answers, key=lambda a: _STRICTNESS[a.answer])
        if strictest.answer != "deny":
            self._tallies[tool.identity] = tally.with_call(tool.input_schema, values)
        return {
            "call_id": call_id,
            "tool": tool.identity,
            "verdict": strictest.answer,
            "decided_by": strictest.source,
            "reason": "; ".join(a.reason for a in answers if a.answer == strictest.answer),
            "arguments": arguments,
            "digest": digest,
            "distribution": f"{now.distribution} {now.distribution_version}",
            "sources": [
                {"source": a.source, "answer": a.answer, "reason": a.reason} for a in answers
            ],
            "grant": grant,
            "preview": now.has_preview,
            "terms": terms if strictest.answer == "ask" else None,
        }

    def _bounds(
        self, tool: ToolSpec, now: InstalledTool, values: JsonValue, tally: Tally
    ) -> list[SourceAnswer]:
        bounds = [self._floor(tool, values, tally), _needs_approval(tool, now)]
        return [b for b in bounds if b is not None]

    def _rules(self, tool: ToolSpec, values: JsonValue, tally: Tally) -> SourceAnswer | None:
        """The agent's own rules: any that denies, else the first that answers."""
        answers = self._answers("rule", self._spec.approval.rules, tool, values, tally)
        denying = next((a for a in answers if a.answer == "deny"), None)
        return denying or next(iter(answers), None)

    def _floor(self, tool: ToolSpec, values: JsonValue, tally: Tally) -> SourceAnswer | None:
        """The strictest of the operator's rules that answer."""
        floor = self._context.floor
        answers = self._answers("floor", floor.rules, tool, values, tally)
        if floor.problem:
            answers.append(SourceAnswer("floor", "ask", f"the operator's rules: {floor.problem}"))
        return max(answers, key=lambda a: _STRICTNESS[a.answer], default=None)

    def _answers(
        self,
        kind: str,
        rules: Sequence[RuleSpec],
        tool: ToolSpec,
        values: JsonValue,
        tally: Tally,
    ) -> list[SourceAnswer]:
        answers = []
        for place, rule in enumerate(rules, 1):
            if not is_about(rule, tool):
                continue
            matched, why = match(rule, tool, values, tally, self._context.facts, self._meter)
            source = f"{kind} {place}"
            if matched == "yes":
                answers.append(SourceAnswer(source, rule.then, sentence(rule, place), rule))
            elif matched == "failed":
                # Why: a rule that cannot be evaluated must never let a call pass.
                answers.append(
                    SourceAnswer(
                        source,
                        "deny" if rule.then == "deny" else "ask",
                        f"{kind} {place} could not be evaluated: {why}",
                        rule,
                    )
                )
        return answers


def digest_parts(tool: ToolSpec) -> dict[str, JsonValue]:
    """The fields of a tool that `call_digest` binds."""
    return {
        "identity": tool.identity,
        "tool_version": tool.tool_version,
        "distribution": tool.distribution,
        "distribution_version": tool.distribution_version,
        "config": dict(tool.config),
    }


def policy_reason(spec: AgentSpec, tool: ToolSpec) -> str:
    """Why policy and list say of this tool what they say."""
    asks = policy_asks(spec.approval, tool)
    policy = spec.approval.policy
    if policy == "default":
        if asks:
            return f"no approval block: {tool.effect} tools ask"
        return "no approval block: read tools run"
    if policy in ("allowlist", "denylist"):
        on_list = asks == (policy == "denylist")
        return f"{policy}: {tool.identity} is {'' if on_list else 'not '}on the list"
    return f"policy {policy}"


def offline_verdict(
    spec: AgentSpec, tool: ToolSpec, arguments: JsonValue, context: CallContext
) -> dict[str, JsonValue]:
    """The verdict on one call as it would be with the packages that the spec was compiled with."""
    pinned = InstalledTool(
        tool.tool_version, tool.distribution, tool.distribution_version, tool.needs_approval
    )
    call = {"call_id": "call:1", "tool": tool.alias, "input": arguments, "problem": None}
    [verdict] = judge_calls(spec, spec.definition_hash, context, [call], lambda _: pinned)
    return verdict


def _policy(spec: AgentSpec, tool: ToolSpec) -> SourceAnswer:
    asks = policy_asks(spec.approval, tool)
    return SourceAnswer("policy", "ask" if asks else "allow", policy_reason(spec, tool))


def _needs_approval(tool: ToolSpec, now: InstalledTool) -> SourceAnswer | None:
    if tool.needs_approval or now.needs_approval:
        return SourceAnswer(
            "needs_approval", "ask", f"the author of {tool.identity} wants a person to decide"
        )
    return None


def _invalid(call_id: str, tool: str, reason: str) -> dict[str, JsonValue]:
    return {
        "call_id": call_id,
        "tool": tool,
        "verdict": "invalid",
        "decided_by": "arguments",
        "reason": reason,
        "arguments": "",
        "digest": "",
        "distribution": "",
        "sources": [],
        "grant": None,
        "preview": False,
        "terms": None,
    }
