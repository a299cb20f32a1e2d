"""How a verdict is made: one pure function over an ordered list of sources.

The agent's word is the policy and its list, pinned with the definition. Bounds can only
tighten: today the tool author's `needs_approval`, pinned and as it is installed now. The
verdict is the strictest of all. Later sources are added to `_sources`, never elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from capuchin_yaml.items import call_digest
from capuchin_yaml.policy.canonical import InvalidArguments, canonical_arguments
from capuchin_yaml.policy.gating import policy_asks
from capuchin_yaml.spec import AgentSpec, JsonValue, ToolSpec

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


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What one source says of a call, and why."""

    source: str
    answer: Answer
    reason: str


def judge_calls(
    spec: AgentSpec,
    definition_hash: str,
    injected: Mapping[str, JsonValue],
    calls: Sequence[Mapping[str, Any]],
    installed: Callable[[str], InstalledTool | None],
) -> list[dict[str, JsonValue]]:
    """Judge the calls of one reply, in order, without running anything.

    Each verdict is `{call_id, tool, verdict, decided_by, reason, arguments, digest,
    distribution, sources}`; `tool` is the identity, `arguments` the canonical text, and a
    call that is `invalid` has empty `arguments` and `digest`.
    """
    return [_judge(spec, definition_hash, injected, call, installed) for call in calls]


def _judge(
    spec: AgentSpec,
    definition_hash: str,
    injected: Mapping[str, JsonValue],
    call: Mapping[str, Any],
    installed: Callable[[str], InstalledTool | None],
) -> dict[str, JsonValue]:
    call_id, alias = str(call["call_id"]), str(call["tool"])
    tool = spec.tool_by_alias(alias)
    if tool is None:
        names = ", ".join(t.alias for t in spec.tools) or "none"
        return _invalid(call_id, alias, f"there is no tool named {alias!r}; the tools are: {names}")
    now = installed(tool.identity)
    if now is None:
        return _invalid(
            call_id, tool.identity, f"{tool.identity} is no longer installed where this agent runs"
        )
    if call.get("problem"):
        return _invalid(call_id, tool.identity, str(call["problem"]))
    try:
        arguments = canonical_arguments(tool.input_schema, call["input"])
    except InvalidArguments as error:
        return _invalid(call_id, tool.identity, str(error))

    answers = _sources(spec, tool, now)
    strictest = max(answers, key=lambda a: _STRICTNESS[a.answer])
    running = replace(
        tool,
        tool_version=now.tool_version,
        distribution=now.distribution,
        distribution_version=now.distribution_version,
    )
    return {
        "call_id": call_id,
        "tool": tool.identity,
        "verdict": strictest.answer,
        "decided_by": strictest.source,
        "reason": strictest.reason,
        "arguments": arguments,
        "digest": call_digest(digest_parts(running), arguments, injected, definition_hash),
        "distribution": f"{now.distribution} {now.distribution_version}",
        "sources": [{"source": a.source, "answer": a.answer} for a in answers],
    }


def digest_parts(tool: ToolSpec) -> dict[str, JsonValue]:
    """The fields of a tool that `call_digest` binds."""
    return {
        "identity": tool.identity,
        "tool_version": tool.tool_version,
        "distribution": tool.distribution,
        "distribution_version": tool.distribution_version,
        "config": dict(tool.config),
    }


def _sources(spec: AgentSpec, tool: ToolSpec, now: InstalledTool) -> list[SourceAnswer]:
    word = _policy(spec, tool)
    bounds = [_needs_approval(tool, now)]
    return [word, *(b for b in bounds if b is not None)]


def _policy(spec: AgentSpec, tool: ToolSpec) -> SourceAnswer:
    asks = policy_asks(spec.approval, tool)
    policy = spec.approval.policy
    if policy == "default":
        reason = (
            f"no approval block: {tool.effect} tools ask"
            if asks
            else "no approval block: read tools run"
        )
    elif policy in ("allowlist", "denylist"):
        on_list = asks == (policy == "denylist")
        reason = f"{policy}: {tool.identity} is {'' if on_list else 'not '}on the list"
    else:
        reason = f"policy {policy}"
    return SourceAnswer("policy", "ask" if asks else "allow", reason)


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
    }
