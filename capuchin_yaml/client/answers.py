"""What conversations and lists answer, as typed frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from capuchin_yaml.events import ConversationStatus, ItemKind
from capuchin_yaml.items import Item, item_from_json
from capuchin_yaml.messages import Usage
from capuchin_yaml.spec import JsonValue


@dataclass(frozen=True, slots=True)
class SendAnswer:
    """The conversation has the message, for good."""

    message_id: str
    turn: int | None
    """The turn that answers it."""
    queued: bool
    """Whether it waits behind the running turn."""


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """How an item stands now; the other fields tell of the decision that counts."""

    accepted: bool
    """False when it had been decided before, or its time was up."""
    item: str
    choice: str
    by: str
    at: str
    """UTC, ISO 8601."""
    reason: str = ""
    proven: bool = False
    """Whether the decision was signed by its maker; otherwise `by` is asserted only."""
    client: str = ""
    votes: int = 0
    """Approvals so far, where several people must approve and it still waits; else 0."""
    quorum: int = 0
    """How many it takes, in the same case."""


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """Whether a turn was running to be cancelled, and which."""

    accepted: bool
    turn: int | None


@dataclass(frozen=True, slots=True)
class MigrateAnswer:
    """The definition in force until the next turn; empty when none was pinned yet."""

    version: str
    hash: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion took away."""

    runs: int
    """Runs of the conversation, over all roll-overs and reopenings."""
    values: int
    """Large values in the project's store that only this conversation referred to."""
    kept: int = 0
    """Large values that other conversations refer to as well, which stay."""


@dataclass(frozen=True, slots=True)
class Pause:
    """An agent that takes up no new turn."""

    agent: str
    by: str
    at: str
    """UTC, ISO 8601."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message that is answered after the running turn."""

    id: str
    text: str
    by: str


@dataclass(frozen=True, slots=True)
class StillRunning:
    """A call that was given up, and whose code runs on in its worker."""

    call_id: str
    tool: str
    since: str
    """UTC, ISO 8601: when it was given up."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person allowed beforehand, in one conversation."""

    id: str
    scope: str
    """`call`: the very same call; `tool`: every call of the tool."""
    tool: str
    arguments: str
    """Canonical JSON text of the call, with the scope `call`."""
    left: int | None
    """Uses that remain; None is any number."""
    until: str | None
    """UTC, ISO 8601."""
    by: str
    at: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class PinnedDefinition:
    """The definition that a conversation keeps to its end."""

    version: str
    hash: str
    """Hex SHA-256."""
    model: str


@dataclass(frozen=True, slots=True)
class ConversationState:
    """One conversation, as its workflow tells it."""

    conversation: str
    agent: str
    status: ConversationStatus
    waiting: int = 0
    """Items that wait for a person, whatever the status."""
    title: str = ""
    turn: int | None = None
    """The running turn; None while none runs."""
    queued: tuple[QueuedMessage, ...] = ()
    items: tuple[Item, ...] = ()
    grants: tuple[Grant, ...] = ()
    definition: PinnedDefinition | None = None
    """None until the first step has pinned it."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of the whole conversation."""
    events: int = 0
    """Length of the event log, over all runs."""
    entries: int = 0
    """Length of the transcript, over all runs."""
    created_at: str = ""
    updated_at: str = ""
    detail: str = ""
    """Why it is blocked, failed or closed, in words for a person."""
    run: int = 1
    """Which run this is; a roll-over begins the next."""
    paused: Pause | None = None
    """Who holds its turn back before the first step."""
    migrates: bool = False
    """Whether the definition on disk is pinned before the next turn."""
    still_running: tuple[StillRunning, ...] = ()
    """Calls that were given up and run on, as far as their workers have said."""
    raw: Mapping[str, JsonValue] = field(default_factory=dict, repr=False, compare=False)
    """The answer as it came; empty when the workflow could not be asked."""

    @property
    def settled(self) -> bool:
        """Whether nothing goes on without a person or a new message."""
        return self.status != "thinking"


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation as lists show it."""

    id: str
    agent: str
    status: ConversationStatus
    waiting: int
    title: str
    updated_at: str
    """UTC, ISO 8601."""
    created_at: str
    """UTC, ISO 8601; of its newest run when nothing trustworthy says more."""
    detail: str = ""
    """Why it is blocked."""
    verified: bool = True
    """Whether title and count carry the project's seal; without it they are not shown."""


InboxKind: TypeAlias = ItemKind | Literal["unverified"]


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One waiting item as the inbox lists it; the whole item is in the conversation's state."""

    id: str
    kind: InboxKind
    """`unverified`: something waits, but what does not carry the project's seal."""
    conversation: str
    agent: str
    tool: str
    alias: str
    title: str
    args: str
    """Canonical JSON text, cut to 200 characters."""
    args_cut: bool
    digest: str
    revision: int
    requested_at: str
    due: str | None
    then: str
    effect: str = ""
    definition_version: str = ""
    more: int = 0
    """Items of the same conversation that this list has no room for."""
    verified: bool = True
    approvers: tuple[str, ...] = ()
    """Groups that may decide; none: anyone."""
    quorum: int = 1
    """How many people must approve."""
    votes: int = 0
    """How many have."""


@dataclass(frozen=True, slots=True)
class BlockedRow:
    """A conversation whose workflow fails on the installed code."""

    conversation: str
    agent: str
    attempt: int
    """Tries of the failing step so far; 0 when nothing is tried any more."""
    failure: str
    """The newest failure, one line."""
    since: str
    """UTC, ISO 8601; empty when the server does not say."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the server answers, and how many workers listen."""

    server_up: bool
    workers: int
    """Workers of this project seen in the last minute."""
    detail: str = ""
    """What is wrong, in words for a person."""
    address: str = ""
    """The server's."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The newest end of a reply that is still being written; never durable."""

    attempt: int
    """A higher attempt starts the text anew."""
    offset: int
    """Where `tail` begins in the whole reply, in code points."""
    tail: str
    held_up: str = ""
    """Why the model is not writing now, and when it is asked again; empty while it writes."""


def state_from_json(value: Mapping[str, Any]) -> ConversationState:
    """Read the answer of the query `state`; keys of a later release are ignored.

    Raises:
        ValueError: it has not the shape that this release knows.
    """
    try:
        definition = value.get("definition")
        return ConversationState(
            conversation=value["conversation"],
            agent=value["agent"],
            status=value["status"],
            waiting=int(value["waiting"]),
            title=value["title"],
            turn=value["turn"],
            queued=tuple(QueuedMessage(q["id"], q["text"], q["by"]) for q in value["queued"]),
            items=tuple(item_from_json(i) for i in value["items"]),
            grants=tuple(_grant(g) for g in value.get("grants") or ()),
            definition=PinnedDefinition(
                definition["version"], definition["hash"], definition["model"]
            )
            if definition
            else None,
            usage=_usage(value.get("usage") or {}),
            events=int(value["events"]),
            entries=int(value["entries"]),
            created_at=value["created_at"],
            updated_at=value["updated_at"],
            detail=value.get("detail") or "",
            run=int(value.get("run", 1)),
            paused=pause_from_json(value["agent"], value.get("paused")),
            migrates=bool(value.get("migrating")),
            still_running=tuple(
                StillRunning(r["call_id"], r["tool"], r["since"])
                for r in value.get("still_running", ())
            ),
            raw=value,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a conversation's state: {error!r}") from error


def pause_from_json(agent: str, value: Mapping[str, Any] | None) -> Pause | None:
    """Read who paused an agent; None when nobody did."""
    if not value:
        return None
    words = {name: str(value.get(name) or "") for name in ("by", "at", "reason")}
    return Pause(agent, **words)


def inbox_rows(conversation: str, agent: str, memo: Mapping[str, Any]) -> tuple[InboxRow, ...]:
    """Read the sealed inbox memo of one conversation.

    Raises:
        ValueError: it is not the memo of this conversation.
    """
    try:
        version, more = str(memo.get("definition_version", "")), int(memo.get("more", 0))
        rows = tuple(
            InboxRow(
                id=item["id"],
                kind=item["kind"],
                conversation=conversation,
                agent=agent,
                tool=item.get("tool") or "",
                alias=item.get("alias") or "",
                title=item["title"],
                args=item.get("arguments") or "",
                args_cut=bool(item.get("arguments_cut")),
                digest=item["digest"],
                revision=int(item["revision"]),
                requested_at=item["requested_at"],
                due=item.get("due"),
                then=item["then"],
                effect=item.get("effect") or "",
                definition_version=version,
                more=more,
                approvers=tuple(item.get("approvers") or ()),
                quorum=int(item.get("quorum") or 1),
                votes=int(item.get("votes") or 0),
            )
            for item in memo["items"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an inbox memo: {error!r}") from error
    # Why: a seal does not name the conversation, so the memo of one could be shown by another.
    if any(not row.id.startswith(f"{conversation}:") for row in rows):
        raise ValueError("the inbox memo is another conversation's")
    return rows


def unverified_row(conversation: str, agent: str) -> InboxRow:
    """The row that stands for whatever waits behind a memo without the project's seal."""
    return InboxRow(
        id=conversation,
        kind="unverified",
        conversation=conversation,
        agent=agent,
        tool="",
        alias="",
        title="not verified: what waits here does not carry this project's seal",
        args="",
        args_cut=False,
        digest="",
        revision=0,
        requested_at="",
        due=None,
        then="wait",
        verified=False,
    )


def _grant(value: Mapping[str, Any]) -> Grant:
    fields: dict[str, Any] = {name: value.get(name) for name in Grant.__slots__}
    return Grant(**fields)


def _usage(value: Mapping[str, Any]) -> Usage:
    return Usage(**{name: int(value.get(name, 0)) for name in Usage.__slots__})
