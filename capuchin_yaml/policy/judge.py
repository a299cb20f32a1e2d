"""How a verdict is made: one pure function over an ordered list of sources.

The agent's word is the policy and its list, pinned with the definition. Bounds can only
tighten: today the tool author's `needs_approval`, pinned and as it is installed now. The
verdict is the strictest of all. A person's grant answers an ask of the agent's word, and only
when no bound asks. Later bounds are added to `_bounds`, never elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from capuchin_yaml.items import call_digest
from capuchin_yaml.policy.canonical import InvalidArguments, canonical_arguments
from capuchin_yaml.policy.gating import policy_asks
from capuchin_yaml.policy.grants import Grants
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
    has_preview: bool = False
    """It can say what a call would do before a person is asked."""


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
    grants: Grants | None = None,
) -> list[dict[str, JsonValue]]:
    """Judge the calls of one reply, in order, without running anything.

    Each verdict is `{call_id, tool, verdict, decided_by, reason, arguments, digest,
    distribution, sources, grant, preview}`; `tool` is the identity, `arguments` the canonical
    text, and a call that is `invalid` has empty `arguments` and `digest`; `grant` is the id of
    the grant that let it through, or None; `preview` says whether the tool can show what it
    would do.
    """
    given = grants or Grants((), "")
    return [_judge(spec, definition_hash, injected, call, installed, given) for call in calls]


def _judge(
    spec: AgentSpec,
    definition_hash: str,
    injected: Mapping[str, JsonValue],
    call: Mapping[str, Any],
    installed: Callable[[str], InstalledTool | None],
    grants: Grants,
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

    running = replace(
        tool,
        tool_version=now.tool_version,
        distribution=now.distribution,
        distribution_version=now.distribution_version,
    )
    digest = call_digest(digest_parts(running), arguments, injected, definition_hash)
    word, bounds = _policy(spec, tool), _bounds(tool, now)
    grant = None
    if word.answer == "ask" and all(b.answer == "allow" for b in bounds):
        grant = grants.use(tool.identity, digest)
    if grant is not None:
        word = SourceAnswer("grant", "allow", f"a person allowed it beforehand ({grant})")
    answers = [word, *bounds]
    strictest = max(answers, key=lambda a: _STRICTNESS[a.answer])
    return {
        "call_id": call_id,
        "tool": tool.identity,
        "verdict": strictest.answer,
        "decided_by": strictest.source,
        "reason": "; ".join(a.reason for a in answers if a.answer == strictest.answer),
        "arguments": arguments,
        "digest": digest,
        "distribution": f"{now.distribution} {now.distribution_version}",
        "sources": [{"source": a.source, "answer": a.answer} for a in answers],
        "grant": grant,
        "preview": now.has_preview,
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


def _bounds(tool: ToolSpec, now: InstalledTool) -> list[SourceAnswer]:
    bounds = [_needs_approval(tool, now)]
    return [b for b in bounds if b is not None]


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
        "grant": None,
        "preview": False,
    }
