"""The event log of a conversation: append-only, each event with `kind`, `offset` and `time`.

Events cross as JSON objects and are decoded by dispatch on `kind`; a kind that this release
does not know becomes an `UnknownEvent`, so an old client can watch a newer conversation.
Keep in step with schemas/event.v1.schema.json (tests/test_events.py compares them).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from capuchin_yaml.messages import ResultStatus
from capuchin_yaml.spec import JsonValue

ItemKind: TypeAlias = Literal["approval", "outcome", "question", "limit"]
Choice: TypeAlias = Literal[
    "approve",
    "deny",
    "edit",
    "happened",
    "rerun",
    "failed",
    "go_on",
    "stop",
    "expired",
    "withdrawn",
]
"""What was decided of an item. `expired` and `withdrawn` are never a person's:
the time ran out, or the turn was cancelled or the talk closed while it waited."""
ConversationStatus: TypeAlias = Literal[
    "idle", "thinking", "waiting", "blocked", "closed", "failed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events share."""

    kind: ClassVar[str]
    offset: int
    """Place in the conversation's log, from 0, without gaps, also across roll-overs."""
    time: str
    """UTC, ISO 8601, by the workflow's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionPinned(Event):
    """The agent's definition was fixed for this conversation."""

    kind: ClassVar[str] = "definition_pinned"
    agent: str
    version: str
    definition_hash: str
    model: str
    problem: str = ""
    """Why a migration did not succeed; the definition named here stays in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued(Event):
    """A message arrived while a turn was running; it is answered after it."""

    kind: ClassVar[str] = "message_queued"
    message_id: str
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """A user message is being answered."""

    kind: ClassVar[str] = "turn_started"
    turn: int
    message_id: str
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSaid(Event):
    """The model replied; `text` may be empty when it only asked for tools."""

    kind: ClassVar[str] = "assistant_message"
    turn: int
    step: int
    text: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequested(Event):
    """The model asked for a call, and this is the verdict on it."""

    kind: ClassVar[str] = "tool_requested"
    call_id: str
    tool: str
    """Identity; the name as the model wrote it when no such tool exists."""
    alias: str
    arguments: str
    """Canonical JSON text: byte for byte what would run."""
    verdict: Literal["allow", "ask", "deny", "invalid"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOpened(Event):
    """Something waits for a person. `item` is the item as the inbox shows it."""

    kind: ClassVar[str] = "item_opened"
    item: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDecided(Event):
    """An item was answered, once."""

    kind: ClassVar[str] = "item_decided"
    item_id: str
    item_kind: ItemKind
    choice: Choice
    by: str
    """The name given; empty when the clock or a cancel decided."""
    proven: bool = False
    """Whether the decision was signed by its maker; otherwise the name is asserted only."""
    client: str = ""
    reason: str = ""
    waited_s: float = 0.0
    arguments: str = ""
    """For `edit`: the canonical arguments that a person wrote; the item has the model's."""
    grant: Mapping[str, JsonValue] | None = None
    """For `approve`: what else it allowed in this conversation."""
    receipt: Mapping[str, JsonValue] | None = None
    """The proof that came with a late result, where no `tool_ended` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemVoted(Event):
    """One of several people approved an item; it waits for the others."""

    kind: ClassVar[str] = "item_voted"
    item_id: str
    by: str
    votes: int
    """Approvals that count now, this one included."""
    quorum: int
    proven: bool = False
    """Whether it was signed; otherwise the name is asserted only."""
    client: str = ""
    reason: str = ""
    waited_s: float = 0.0
    dropped: tuple[str, ...] = ()
    """People whose earlier approval no longer counts: they have left the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReminded(Event):
    """An item still waits, and was brought to mind."""

    kind: ClassVar[str] = "item_reminded"
    item_id: str
    next: str
    """UTC, ISO 8601: when it is the next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEscalated(Event):
    """An item's time was up, so another group may decide as well."""

    kind: ClassVar[str] = "item_escalated"
    item_id: str
    to: str
    due: str
    """UTC, ISO 8601: when it is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUsed(Event):
    """A call ran without asking because a person allowed it beforehand."""

    kind: ClassVar[str] = "grant_used"
    grant_id: str
    call_id: str
    left: int | None
    """Uses that remain; None is any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRevoked(Event):
    """A grant was taken back."""

    kind: ClassVar[str] = "grant_revoked"
    grant_id: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """The call was handed to a worker."""

    kind: ClassVar[str] = "tool_started"
    call_id: str
    tool: str
    alias: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded(Event):
    """The call has its result."""

    kind: ClassVar[str] = "tool_ended"
    call_id: str
    tool: str
    alias: str
    status: ResultStatus
    text: str
    duration_s: float | None = None
    """Time inside the tool; None when it was never entered."""
    artifacts: Mapping[str, JsonValue] = dataclasses.field(default_factory=dict)
    """Files that the call made, `{name, media_type, bytes}` by their SHA-256 in the store."""
    receipt: Mapping[str, JsonValue] | None = None
    """The tool's proof of what it did; the model never sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached(Event):
    """A limit of the agent paused the turn."""

    kind: ClassVar[str] = "limit_reached"
    limit: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecorded(Event):
    """Tokens of one model call; the four classes never overlap."""

    kind: ClassVar[str] = "usage_recorded"
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledOver(Event):
    """The conversation went on in a new run with a fresh history."""

    kind: ClassVar[str] = "rolled_over"
    previous_run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRenamed(Event):
    """A person gave the conversation a title."""

    kind: ClassVar[str] = "conversation_renamed"
    title: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationReopened(Event):
    """A closed conversation was opened again under its id, in a new chain of runs."""

    kind: ClassVar[str] = "conversation_reopened"
    by: str
    previous_run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(Event):
    """The agent is idle again."""

    kind: ClassVar[str] = "turn_ended"
    turn: int
    outcome: Literal["answered", "cancelled", "stopped", "model_rejected", "model_unavailable"]
    detail: str = ""
    """Why, in words for a person, when the outcome is not `answered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationClosed(Event):
    """The last event of a conversation, unless it is opened again."""

    kind: ClassVar[str] = "conversation_closed"
    status: Literal["closed", "failed"]
    by: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent(Event):
    """An event of a kind this release does not know; `data` is the whole JSON object."""

    kind: ClassVar[str] = "unknown"
    name: str
    data: Mapping[str, JsonValue]


EVENT_TYPES: tuple[type[Event], ...] = (
    DefinitionPinned,
    MessageQueued,
    TurnStarted,
    AssistantSaid,
    ToolRequested,
    ItemOpened,
    ItemDecided,
    ItemVoted,
    ItemReminded,
    ItemEscalated,
    GrantUsed,
    GrantRevoked,
    ToolStarted,
    ToolEnded,
    LimitReached,
    UsageRecorded,
    RolledOver,
    ConversationRenamed,
    ConversationReopened,
    TurnEnded,
    ConversationClosed,
)
_BY_KIND = {cls.kind: cls for cls in EVENT_TYPES}
_FIELDS = {cls: tuple(f.name for f in dataclasses.fields(cls)) for cls in EVENT_TYPES}


def to_json(event: Event) -> dict[str, JsonValue]:
    """The event as a JSON object with its `kind` first."""
    if isinstance(event, UnknownEvent):
        return dict(event.data)
    out: dict[str, JsonValue] = {"kind": event.kind}
    for name in _FIELDS[type(event)]:
        value = getattr(event, name)
        if isinstance(value, tuple):
            out[name] = list(value)
        else:
            out[name] = dict(value) if isinstance(value, Mapping) else value
    return out


def decode(value: Mapping[str, Any]) -> Event:
    """Read one event; unknown fields are ignored, an unknown kind or shape is an `UnknownEvent`."""
    kind, offset = value.get("kind"), value.get("offset")
    cls = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if cls is not None:
        try:
            found: dict[str, Any] = {
                name: tuple(value[name]) if isinstance(value[name], list) else value[name]
                for name in _FIELDS[cls]
                if name in value
            }
            return cls(**found)
        except TypeError:
            pass  # a required field is missing: a shape of another release
    return UnknownEvent(
        offset=offset if isinstance(offset, int) else -1,
        time=str(value.get("time", "")),
        name=str(kind),
        data=dict(value),
    )
