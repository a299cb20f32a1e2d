"""Which tools of an agent wait for a person before they run."""

from __future__ import annotations

from capuchin_yaml.spec import AgentSpec, ApprovalSpec, ToolSpec


def is_listed(approval: ApprovalSpec, tool: ToolSpec) -> bool:
    """Whether the policy's list names this tool.

    An entry with a dot is an identity and means every entry of it; one without is an alias.
    """
    return any(
        entry == tool.identity if "." in entry else entry == tool.alias for entry in approval.tools
    )


def policy_asks(approval: ApprovalSpec, tool: ToolSpec) -> bool:
    """Whether the agent's own policy and list gate this tool."""
    match approval.policy:
        case "auto":
            return False
        case "all":
            return True
        case "allowlist":
            return not is_listed(approval, tool)
        case "denylist":
            return is_listed(approval, tool)
        case "default":
            return tool.effect != "read"


def asks(spec: AgentSpec, tool: ToolSpec) -> bool:
    """Whether a call of this tool waits for a person: by the policy, or by the tool's author."""
    return policy_asks(spec.approval, tool) or tool.needs_approval


def loosened(old: AgentSpec, new: AgentSpec) -> tuple[str, ...]:
    """Identities that asked under `old` and run alone under `new`, sorted.

    A tool that `old` does not have counts when it is not read-only and runs alone: it is new
    power that nobody was asked about.
    """
    before = {(t.identity, t.alias): asks(old, t) for t in old.tools}
    known = {t.identity for t in old.tools}
    found = set()
    for tool in new.tools:
        if asks(new, tool):
            continue
        asked = before.get((tool.identity, tool.alias))
        if asked is None:
            asked = (
                any(a for (identity, _), a in before.items() if identity == tool.identity)
                if tool.identity in known
                else tool.effect != "read"
            )
        if asked:
            found.add(tool.identity)
    return tuple(sorted(found))
