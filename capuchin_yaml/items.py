"""Items: what waits for a person, in the JSON form that history, memo and inbox share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from capuchin_yaml.events import Choice, ItemEscalated, ItemKind, ItemVoted
from capuchin_yaml.spec import ApprovalSpec, JsonValue, RuleSpec, canonical_json
from capuchin_yaml.terminal_text import one_line

CHOICES: Mapping[str, tuple[Choice, ...]] = {
    "approval": ("approve", "deny", "edit"),
    "outcome": ("happened", "rerun", "failed"),
    "limit": ("go_on", "stop"),
    "question": (),
}
"""What a person may answer to each kind of item."""


def unanswerable(kind: str, conversation: str) -> str:
    """What a person can do about an item of a kind that this release has no answer for."""
    return (
        f"this release has no answer for an item of kind {one_line(kind, 40)}: a newer one may; "
        f"`capuchin cancel {conversation}` ends its turn and takes it back"
    )


STOPPING: tuple[Choice, ...] = ("deny", "stop")
"""Choices that let nothing happen: one person is enough, also one who asked for the call."""

_TERMS = (
    "approvers",
    "quorum",
    "exclude_requester",
    "timeout_s",
    "on_timeout",
    "escalate_to",
    "remind_s",
)


@dataclass(frozen=True, slots=True)
class Item:
    """One item, whole: all that a decision is bound to."""

    id: str
    """`<conversation>:a<n>` for an approval of call n, `:o<n>` its outcome, `:l<k>` a limit."""
    kind: ItemKind
    conversation: str
    digest: str
    """Hex SHA-256 that a decision names, so that what is decided is what was shown."""
    revision: int
    title: str
    """One sentence for a person: what would happen on yes."""
    requested_at: str
    due: str | None
    """UTC, ISO 8601; None waits for ever."""
    then: str
    """What happens at `due`: deny, wait, escalate or close; for other kinds `wait`."""
    call_id: str = ""
    tool: str = ""
    """Identity, shown before the alias."""
    alias: str = ""
    effect: str = ""
    distribution: str = ""
    """`name version` of the package that would run."""
    arguments: str = ""
    """Canonical JSON text: byte for byte what would run."""
    config: Mapping[str, JsonValue] | None = None
    injected: Mapping[str, JsonValue] | None = None
    definition_hash: str = ""
    preview: str = ""
    """What the tool says that the call would do, cut at 4 KB, or why it could not say."""
    reason: str = ""
    """Why a person is asked: the policy and list, or the tool's author."""
    rule: str = ""
    """The rule that asks, as written and with its file and line; empty when none did."""
    requested_by: str = ""
    """Who wants this to run: the model, or the person whose edit is asked about."""
    before: str = ""
    """The model's own arguments, when a person changed them."""
    claimed_by: str = ""
    """Who said to be looking at it, until `claimed_until`; binds nobody."""
    claimed_until: str = ""
    claimed_process: str = ""
    """Where from: machine, process number and start; a process that has ended looks no more."""
    approvers: tuple[str, ...] = ()
    """Groups of the operator's config whose people may decide; none: anyone."""
    may_decide: tuple[str, ...] = ()
    """Who was in these groups when it was asked; who is in them now counts."""
    quorum: int = 1
    """How many different people must approve; one refusal is enough."""
    exclude: tuple[str, ...] = ()
    """Who may not approve it, because they asked for it."""
    votes: tuple[Mapping[str, JsonValue], ...] = ()
    """Approvals that count so far: `{by, at, client, proven, reason, waited_s}`."""
    remind_at: str | None = None
    """UTC, ISO 8601: when it is brought to mind the next time."""
    escalate_to: str = ""
    """The group that may decide as well from `due` on, while `then` is escalate."""
    escalated: str = ""
    """The group that may decide as well since the first due time has passed."""

    @property
    def needed(self) -> int:
        """How many more people must approve."""
        return max(self.quorum - len(self.votes), 0)

    def with_vote(self, event: ItemVoted) -> Item:
        """The item after one of several people has approved it."""
        kept = tuple(v for v in self.votes if v["by"] not in event.dropped)
        vote = {n: getattr(event, n) for n in ("by", "client", "proven", "reason", "waited_s")}
        return replace(self, votes=(*kept, {**vote, "at": event.time}))

    def with_escalation(self, event: ItemEscalated) -> Item:
        """The item after its time was up and another group may decide as well."""
        groups = sorted({*self.approvers, event.to}) if self.approvers else ()
        return replace(
            self,
            approvers=tuple(groups),
            escalated=event.to,
            escalate_to="",
            due=event.due,
            then="deny",
        )


def item_from_json(value: Mapping[str, Any]) -> Item:
    """Read an item; unknown keys are ignored.

    Raises:
        ValueError: a required key is missing.
    """
    kept: dict[str, Any] = {name: value[name] for name in Item.__slots__ if name in value}
    try:
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()
        }
        return Item(**values)
    except TypeError as error:
        raise ValueError(f"not an item: {error}") from error


def call_digest(
    tool: Mapping[str, JsonValue],
    arguments: str,
    injected: Mapping[str, JsonValue],
    definition_hash: str,
) -> str:
    """Hex SHA-256 over all that an approval of this call is bound to.

    `tool` is a `ToolSpec` in its JSON form with the package version that would run;
    `arguments` is the canonical text that is shown, approved and handed to the tool.
    """
    bound = {
        "tool": tool["identity"],
        "tool_version": tool["tool_version"],
        "distribution": tool["distribution"],
        "distribution_version": tool["distribution_version"],
        "config": tool.get("config") or {},
        "arguments": arguments,
        "injected": dict(injected),
        "definition": definition_hash,
    }
    return hashlib.sha256(canonical_json(bound).encode("utf-8", "surrogatepass")).hexdigest()


def shown_digest(digest: str, preview_hash: str) -> str:
    """Hex SHA-256 that an approval names: that of the call, and of its preview if there is one."""
    if not preview_hash:
        return digest
    return hashlib.sha256(f"{digest}\0preview\0{preview_hash}".encode()).hexdigest()


def limit_digest(item_id: str, limit: str, value: int) -> str:
    """Hex SHA-256 that a decision about going on past a limit is bound to."""
    return hashlib.sha256(f"{item_id}\0{limit}\0{value}".encode()).hexdigest()


def who_may(item: Item) -> str:
    """Who may decide an item, for a person; empty when anyone may, alone."""
    if not item.approvers and not item.exclude and item.quorum < 2:
        return ""
    groups = " or ".join(item.approvers)
    people = ", ".join(item.may_decide) or "nobody the operator's config of the worker knows"
    words = f"{groups}: {people}" if item.approvers else "anyone"
    asked = f"; not {', '.join(item.exclude)}, who asked for it" if item.exclude else ""
    return words + asked


def who_has(item: Item) -> str:
    """Who approved so far, of how many; empty where one is enough."""
    if item.quorum < 2:
        return ""
    names = ", ".join(f"{v['by']}{'' if v['proven'] else ' (not proven)'}" for v in item.votes)
    count = f"{len(item.votes)} of {item.quorum} approved"
    return f"{count}: {names}; {item.needed} more needed" if names else count


def terms_of(approval: ApprovalSpec, rule: RuleSpec | None = None) -> dict[str, JsonValue]:
    """Who decides an asked call, how many must, and by when, in JSON form.

    `{approvers: groups, quorum, exclude_requester, timeout_s, on_timeout, escalate_to, remind_s}`;
    what the rule that asks does not say is as the block says. No groups: anyone may decide.
    """
    terms: dict[str, JsonValue] = {}
    for name in _TERMS:
        said = None if rule is None else getattr(rule, name)
        terms[name] = getattr(approval, name) if said is None else said
    terms["approvers"] = [terms["approvers"]] if terms["approvers"] is not None else []
    return terms


def strictest_terms(approval: ApprovalSpec) -> dict[str, JsonValue]:
    """The terms of a call of which nobody can tell which rule asks: the strictest of all of them.

    Who is in no group that the file names may not decide; the longest quorum counts.
    """
    every = [terms_of(approval), *(terms_of(approval, r) for r in approval.rules)]
    return {
        **every[0],
        "approvers": sorted({group for terms in every for group in terms["approvers"]}),
        "quorum": max(terms["quorum"] for terms in every),
        "exclude_requester": any(terms["exclude_requester"] for terms in every),
    }
