"""The policy in one sentence, the same in validate, TUI and export."""

from __future__ import annotations

from collections.abc import Sequence

from capuchin_yaml.policy.gating import asks, policy_asks
from capuchin_yaml.spec import AgentSpec, ToolSpec


def policy_sentence(spec: AgentSpec) -> str:
    """Say what asks and what runs.

    Such as "denylist: asks before billing.issue_refund; everything else runs".
    """
    name = "no approval block" if spec.approval.policy == "default" else spec.approval.policy
    if not spec.tools:
        return f"{name}: the agent has no tools"
    asking = [t for t in spec.tools if asks(spec, t)]
    running = [t for t in spec.tools if not asks(spec, t)]
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
    return sentence


def _names(tools: Sequence[ToolSpec]) -> str:
    names = sorted({t.identity for t in tools})
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
