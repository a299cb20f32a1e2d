"""`approval` of a checked file: the policy and what its list means."""

from __future__ import annotations

from collections.abc import Mapping

from capuchin_yaml.compiler.bind_terms import check_terms, read_terms
from capuchin_yaml.compiler.bind_tools import ToolUses
from capuchin_yaml.compiler.document import Node
from capuchin_yaml.compiler.nearest import certain, nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.spec import ApprovalSpec, PolicyName, RuleSpec

_POLICIES: Mapping[str, PolicyName] = {
    "auto": "auto",
    "all": "all",
    "allowlist": "allowlist",
    "denylist": "denylist",
}


def bind_approval(
    reading: Reading, tools: ToolUses, rules: tuple[RuleSpec, ...] = ()
) -> ApprovalSpec:
    """The approval block; without one, `read` tools run and every other tool asks."""
    block = reading.document.node(("approval",))
    if block is None:
        return ApprovalSpec()
    if block.kind == "scalar":
        return ApprovalSpec(policy=_POLICIES.get(reading.text(("approval",)) or "all", "all"))
    # Why: what cannot be read falls to the strictest policy; the error it comes with already
    # means that there is no spec at all.
    policy = _policy(reading)
    listed = _listed(reading, tools, policy)
    terms = read_terms(reading, ("approval",))
    check_terms(reading, ("approval",), terms)
    return ApprovalSpec(
        policy=policy,
        tools=listed,
        rules=rules,
        timeout_s=terms.timeout_s,
        on_timeout=terms.on_timeout or "deny",
        approvers=terms.approvers,
        quorum=terms.quorum or 1,
        exclude_requester=terms.exclude_requester or False,
        escalate_to=terms.escalate_to,
        remind_s=terms.remind_s,
    )


def _policy(reading: Reading) -> PolicyName:
    if reading.document.node(("approval", "policy")) is None:
        return "default"
    return _POLICIES.get(reading.text(("approval", "policy")) or "all", "all")


def _listed(reading: Reading, tools: ToolUses, policy: PolicyName) -> tuple[str, ...]:
    path = ("approval", "tools")
    block = reading.document.node(path)
    if block is None or block.kind != "list":
        return ()
    if not block.items and policy == "denylist":
        reading.warning(
            "no-effect",
            "a denylist that is empty gates nothing",
            block.span,
            "list the tools that must ask, or write policy: auto",
        )
    covered: set[int] = set()
    for i, item in enumerate(block.items):
        if not reading.checked.usable((*path, i)):
            continue
        means = _meant_uses(item.text, tools)
        if not means:
            _names_nothing(reading, item, tools, gates=policy == "denylist")
        elif means <= covered:
            reading.warning(
                "listed-twice",
                f"{shown(item.text)} is already listed",
                item.span,
                "remove this entry",
            )
        covered |= means
    return reading.texts(path)


def _meant_uses(entry: str, tools: ToolUses) -> set[int]:
    if "." in entry:
        return {i for i, use in enumerate(tools.uses) if use.identity == entry}
    return {i for i, use in enumerate(tools.uses) if use.alias == entry}


def _names_nothing(reading: Reading, item: Node, tools: ToolUses, *, gates: bool) -> None:
    if not tools.complete:
        # An entry of tools that cannot be read may be the one that is meant.
        return
    same_tool = [use for use in tools.uses if use.identity.partition(".")[2] == item.text]
    names = {name for use in tools.uses for name in (use.identity, use.alias)}
    meant = same_tool[0].identity if same_tool else nearest(item.text, names)
    kind = "identity" if "." in item.text else "alias"
    reading.error(
        "names-no-tool",
        f"{shown(item.text)} is no {kind} of a tool of this agent",
        item.span,
        f"did you mean {meant!r}?"
        if meant is not None
        else "add it to tools, or remove it from this list",
        # Why: only where one more name means that more asks.
        fix=certain(item.text, names) if gates else None,
    )
