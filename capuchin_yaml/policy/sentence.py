"""The policy in one sentence, the same in validate, TUI and export."""

from __future__ import annotations

from collections.abc import Sequence

from capuchin_yaml.policy.gating import policy_asks, rules_about
from capuchin_yaml.spec import AgentSpec, ToolSpec


def policy_sentence(spec: AgentSpec) -> str:
    """Say what asks and what runs.

    Such as "denylist: asks before billing.issue_refund; everything else runs".
    """
    name = "no approval block" if spec.approval.policy == "default" else spec.approval.policy
    if not spec.tools:
        return f"{name}: the agent has no tools"
    asking = [t for t in spec.tools if policy_asks(spec.approval, t) or t.needs_approval]
    running = [t for t in spec.tools if t not in asking]
    if not asking:
        sentence = f"{name}: everything runs without asking"
    elif not running:
        sentence = f"{name}: asks before every call"
    else:
        rest = "everything else runs" if len(running) > 3 else f"{_names(running)} runs alone"
        if len(running) in (2, 3):
            rest = f"{_names(running)} run alone"
        if spec.approval.policy == "denylist":
            rest = "everything else runs"
        sentence = f"{name}: asks before {_names(asking)}; {rest}"
    by_author = [t for t in asking if not policy_asks(spec.approval, t)]
    if by_author:
        sentence += f" ({_names(by_author)}: by its author's wish)"
    return sentence + _rules(spec)


def _rules(spec: AgentSpec) -> str:
    """What rules change, such as "; a rule refuses some calls of billing.issue_refund"."""
    parts = []
    for then, words in (("deny", "refuse"), ("ask", "ask before"), ("allow", "let run")):
        every: list[ToolSpec] = []
        some: list[ToolSpec] = []
        for tool in spec.tools:
            rules = [rule for rule in rules_about(spec, tool) if rule.then == then]
            if rules:
                (every if any(rule.when is None for rule in rules) else some).append(tool)
        calls = [("every call", every), ("some calls", some)]
        parts += [f"{words} {what} of {_names(tools)}" for what, tools in calls if tools]
    return f"; rules {', '.join(parts)}" if parts else ""


def _names(tools: Sequence[ToolSpec]) -> str:
    names = sorted({t.identity for t in tools})
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
