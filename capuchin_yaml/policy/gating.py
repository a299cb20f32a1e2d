"""Which tools of an agent wait for a person before they run, as far as the file alone says."""

from __future__ import annotations

from capuchin_yaml.policy.rule_failure import as_it_answers
from capuchin_yaml.policy.rules import is_about
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, RuleAnswer, RuleSpec, ToolSpec


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


def answers(spec: AgentSpec, tool: ToolSpec) -> frozenset[RuleAnswer]:
    """Every answer that a valid call of this tool can get, conditions taken as open."""
    rules = rules_about(spec, tool)
    denying = [rule for rule in rules if rule.then == "deny"]
    if any(rule.when is None for rule in denying):
        return frozenset({"deny"})
    found: set[RuleAnswer] = {"deny"} if denying else set()
    for rule in rules:
        if rule.then != "deny":
            found.add(rule.then)
            if rule.when is None:
                break
    else:
        found.add("ask" if policy_asks(spec.approval, tool) else "allow")
    if tool.needs_approval and "allow" in found:
        found = (found - {"allow"}) | {"ask"}
    return frozenset(found)


def rules_about(spec: AgentSpec, tool: ToolSpec) -> tuple[RuleSpec, ...]:
    """The agent's rules that can be about this tool, in order and as they answer for it."""
    return tuple(as_it_answers(rule, tool) for rule in spec.approval.rules if is_about(rule, tool))


def asks(spec: AgentSpec, tool: ToolSpec) -> bool:
    """Whether no call of this tool runs alone: it waits for a person, or is refused."""
    return "allow" not in answers(spec, tool)


def loosened(old: AgentSpec, new: AgentSpec) -> tuple[str, ...]:
    """Identities of which some call asked or was refused under `old` and runs alone under `new`.

    Conditions are compared as they are written, so a rule that asks or denies and is changed in
    any way counts. What asks counts when fewer people, or others, can let it through. A tool that
    `old` does not have counts when it is not read-only and some call of it runs alone: it is new
    power that nobody was asked about. Sorted.
    """
    weaker = asks_fewer(old.approval, new.approval)
    before = {(t.identity, t.alias): t for t in old.tools}
    known = {t.identity for t in old.tools}
    found = set()
    for tool in new.tools:
        if (weaker or _terms_changed(old, new, tool)) and "ask" in answers(new, tool):
            found.add(tool.identity)
        if asks(new, tool):
            continue
        was = before.get((tool.identity, tool.alias))
        if was is not None:
            asked = policy_asks(old.approval, was) and not policy_asks(new.approval, tool)
            rules = rules_about(old, was), rules_about(new, tool)
            loose = asked or asks(old, was) or _loosens(*rules)
        elif tool.identity in known:
            loose = any(asks(old, t) for t in old.tools if t.identity == tool.identity)
        else:
            loose = tool.effect != "read"
        if loose:
            found.add(tool.identity)
    return tuple(sorted(found))


def asks_fewer(old: ApprovalSpec, new: ApprovalSpec) -> bool:
    """Whether fewer people, or others, can let through what the block asks about."""
    return (
        new.quorum < old.quorum
        or (old.exclude_requester and not new.exclude_requester)
        or (old.approvers is not None and new.approvers != old.approvers)
        or (new.escalate_to is not None and new.escalate_to != old.escalate_to)
    )


def _terms_changed(old: AgentSpec, new: AgentSpec, tool: ToolSpec) -> bool:
    """Whether a rule about this tool that has terms of its own is gone or has others."""
    before, after = ({_terms(r) for r in rules_about(s, tool)} for s in (old, new))
    return not before - {_NO_TERMS} <= after


def _terms(rule: RuleSpec) -> tuple[object, ...]:
    if rule.then != "ask":
        return _NO_TERMS
    return (rule.approvers, rule.quorum, rule.exclude_requester, rule.escalate_to)


_NO_TERMS: tuple[object, ...] = (None, None, None, None)


def _loosens(old: tuple[RuleSpec, ...], new: tuple[RuleSpec, ...]) -> bool:
    """Whether a rule that holds calls back is gone, or one that lets calls run is new."""
    held = {_meaning(rule) for rule in old if rule.then != "allow"}
    holds = {_meaning(rule) for rule in new if rule.then != "allow"}
    let = {_meaning(rule) for rule in old if rule.then == "allow"}
    lets = {_meaning(rule) for rule in new if rule.then == "allow"}
    return not held <= holds or not lets <= let or (bool(lets) and old != new)


def _meaning(rule: RuleSpec) -> tuple[str, str]:
    return rule.then, " ".join((rule.when or "").split())
