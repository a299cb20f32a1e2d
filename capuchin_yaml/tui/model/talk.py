"""One conversation as the screen knows it: a reducer from events to entries. No I/O.

Events carry offsets without gaps, so a repeat is dropped and a hole is found by its number.
Only what the workflow said changes the picture; nothing is drawn before it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.events import (
    AssistantSaid,
    ConversationClosed,
    ConversationRenamed,
    ConversationReopened,
    DefinitionPinned,
    Event,
    GrantUsed,
    ItemDecided,
    ItemEscalated,
    ItemOpened,
    ItemVoted,
    MessageQueued,
    ToolEnded,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from capuchin_yaml.items import Item, item_from_json
from capuchin_yaml.tui.gateway import Partial, Queued, TalkState
from capuchin_yaml.tui.model.changes import (
    Added,
    Change,
    HeadChanged,
    ItemsChanged,
    Prepended,
    Replaced,
    ReplyGrew,
)
from capuchin_yaml.tui.model.entries import (
    AgentSaid,
    CardState,
    Entry,
    Mark,
    ToolCard,
    UserSaid,
)
from capuchin_yaml.tui.model.marks import granted, mark_of
from capuchin_yaml.tui.model.tokens import TokenCount


class EventsMissing(CapuchinError):
    """The log has a hole before this event; the watch must begin again at `since`."""

    def __init__(self, since: int, got: int) -> None:
        super().__init__(f"event {since} was expected and event {got} came")
        self.since = since
        self.got = got


_VERDICTS: Mapping[str, CardState] = {"deny": "denied", "invalid": "invalid"}
_DECISIONS: Mapping[str, CardState] = {
    "approve": "approved",
    "edit": "approved",
    "deny": "denied",
    "expired": "expired",
    "withdrawn": "cancelled",
}


@dataclass(slots=True)
class Talk:
    """One conversation. `apply` takes the next event and says what changed."""

    id: str
    agent: str = ""
    title: str = ""
    status: str = "idle"
    detail: str = ""
    version: str = ""
    definition_hash: str = ""
    model: str = ""
    turn: int = 0
    entries: list[Entry] = field(default_factory=list)
    open_reply: AgentSaid | None = None
    items: dict[str, Item] = field(default_factory=dict)
    decided: dict[str, ItemDecided] = field(default_factory=dict)
    queued: list[Queued] = field(default_factory=list)
    usage: TokenCount = field(default_factory=TokenCount)
    next_offset: int = 0
    known_events: int = 0
    """Events that its log is known to have; fewer are applied while it is being read."""
    log: list[Event] = field(default_factory=list)
    """The events applied so far, from `first_offset` on."""
    first_offset: int = 0
    """Older events were not read yet."""
    is_watched: bool = True
    """Whether its events come in; without that, lists know better."""
    _usage_at: int = 0
    _card_at: dict[str, int] = field(default_factory=dict)
    _open_calls: set[str] = field(default_factory=set)
    """Calls whose result was not seen yet."""
    _attempt: int = -1
    _held_up: str = ""

    @property
    def is_running(self) -> bool:
        """Whether a turn is being answered, so that another message would be queued."""
        return self.status in ("thinking", "waiting", "blocked")

    @property
    def is_current(self) -> bool:
        """Whether all that is known to have happened is applied."""
        return self.next_offset > self.first_offset and self.next_offset >= self.known_events

    @property
    def is_live(self) -> bool:
        """Whether this picture is newer than any list."""
        return self.is_current and (self.is_watched or self.is_over)

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be said here."""
        return self.status in ("closed", "failed")

    @property
    def is_rehearsal(self) -> bool:
        """Whether no real model answers."""
        return self.model.split(":")[0] == "rehearsal"

    def apply(self, event: Event) -> list[Change]:
        """Take one event of the log; one seen before changes nothing.

        Raises:
            EventsMissing: events before this one were never seen.
        """
        if event.offset < self.next_offset:
            return []
        if event.offset > self.next_offset:
            raise EventsMissing(self.next_offset, event.offset)
        self.next_offset = event.offset + 1
        self.log.append(event)
        return _HANDLERS.get(type(event), Talk._on_other)(self, event)

    def begin_at(self, offset: int) -> None:
        """Read the log from here on; what is older comes by `prepend` when it is wanted."""
        if not self.log:
            self.first_offset = self.next_offset = max(offset, 0)

    def prepend(self, older: Sequence[Event]) -> list[Change]:
        """Take events that end where the log begins; none says that no older ones are kept."""
        if not older:
            self.first_offset = 0
            return [HeadChanged()]
        whole = Talk(self.id, first_offset=older[0].offset, next_offset=older[0].offset)
        for event in (*older, *self.log):
            if event.offset > whole.next_offset:
                whole.skip_to(event.offset)
            whole.apply(event)
        added = len(whole.entries) - len(self.entries)
        self.entries, self._card_at = whole.entries, whole._card_at
        self.decided = whole.decided
        self.log, self.first_offset = whole.log, whole.first_offset
        return [Prepended(added), HeadChanged()]

    def skip_to(self, offset: int) -> list[Change]:
        """Go on after events that are no longer kept."""
        missed = offset - self.next_offset
        self.next_offset = offset
        return self._add(Mark("", f"{missed} earlier events are no longer kept", "warn"))

    def is_blocked(self, reason: str) -> list[Change]:
        """The conversation's own code fails; its events tell when it goes on."""
        self.status, self.detail = "blocked", reason
        return [HeadChanged()]

    def is_mended(self) -> list[Change]:
        """What the watch waited for is back."""
        if self.status == "blocked":
            self.detail = ""
            self._settle_status()
        return [HeadChanged()]

    def learn(self, state: TalkState) -> list[Change]:
        """Take what the workflow says of itself; the events stay what the entries are made of."""
        self.agent = state.agent or self.agent
        self.title = state.title or self.title
        self.version = state.version or self.version
        self.definition_hash = state.definition_hash or self.definition_hash
        self.model = state.model or self.model
        self.known_events = max(self.known_events, state.events)
        if state.events < self.next_offset:
            return [HeadChanged()]
        self.status, self.detail = state.status, state.detail
        self.usage, self._usage_at = TokenCount.of(state.usage), state.events
        self.queued = list(state.queued)
        self.items = {i.id: i for i in state.items}
        return [HeadChanged(), ItemsChanged()]

    def grow(self, partial: Partial) -> list[Change]:
        """Take the newest end of the reply being written, or what holds it up."""
        if partial.held_up != self._held_up:
            self._held_up = self.detail = partial.held_up
            return [HeadChanged(), *self.grow(partial)]
        if partial.held_up:
            return []
        old = self.open_reply.text if self.open_reply and partial.attempt == self._attempt else ""
        if partial.attempt < self._attempt and self.open_reply:
            return []
        if partial.offset > len(old):
            text = f"{old}…{partial.tail}"
        else:
            text = old[: partial.offset] + partial.tail
        if len(text) <= len(old) and partial.attempt == self._attempt and self.open_reply:
            return []
        self._attempt = partial.attempt
        self.open_reply = AgentSaid("", text, self.model, is_open=True)
        return [ReplyGrew()]

    def card(self, call_id: str) -> ToolCard | None:
        """The card of a call, if its request was seen."""
        at = self._card_at.get(call_id)
        entry = self.entries[at] if at is not None else None
        return entry if isinstance(entry, ToolCard) else None

    def _add(self, entry: Entry) -> list[Change]:
        self.entries.append(entry)
        return [Added(len(self.entries) - 1)]

    def _set_card(self, call_id: str, **fields: Any) -> list[Change]:
        card = self.card(call_id)
        if card is None:
            return []
        at = self._card_at[call_id]
        self.entries[at] = replace(card, **fields)
        return [Replaced(at)]

    def _end_open_calls(self) -> list[Change]:
        """Show calls without a result as cancelled, when nothing can bring one any more."""
        left, self._open_calls = self._open_calls, set()
        return [c for call_id in left for c in self._set_card(call_id, state="cancelled")]

    def _drop_open(self) -> list[Change]:
        self._attempt = -1
        if self._held_up:
            self._held_up = self.detail = ""
        if self.open_reply is None:
            return []
        self.open_reply = None
        return [ReplyGrew()]

    def _settle_status(self) -> None:
        if not self.is_over:
            self.status = "waiting" if self.items else "thinking"

    def _on_pinned(self, event: DefinitionPinned) -> list[Change]:
        if event.problem:
            return self._add(mark_of(event))
        self.agent, self.version, self.model = event.agent, event.version, event.model
        self.definition_hash = event.definition_hash
        return [HeadChanged(), *self._add(mark_of(event))]

    def _on_queued(self, event: MessageQueued) -> list[Change]:
        if all(q.id != event.message_id for q in self.queued):
            self.queued.append(Queued(event.message_id, event.text, event.by))
        return [HeadChanged()]

    def _on_turn(self, event: TurnStarted) -> list[Change]:
        self.queued = [q for q in self.queued if q.id != event.message_id]
        self.turn, self.status, self.detail = event.turn, "thinking", ""
        self.title = self.title or event.text.split("\n", 1)[0][:80]
        said = UserSaid(event.time, event.text, event.by, event.message_id)
        return [HeadChanged(), *self._drop_open(), *self._add(said)]

    def _on_said(self, event: AssistantSaid) -> list[Change]:
        changes = self._drop_open()
        if event.text.strip():
            changes += self._add(AgentSaid(event.time, event.text, event.model))
        return changes

    def _on_requested(self, event: ToolRequested) -> list[Change]:
        state = _VERDICTS.get(event.verdict, "requested")
        if state == "requested":
            self._open_calls.add(event.call_id)
        card = self.card(event.call_id)
        if card is not None:
            # What a person wrote instead is judged anew: the same call, told again.
            fields: dict[str, Any] = {"arguments": event.arguments}
            if state != "requested":
                fields |= {"state": state, "reason": event.reason}
            return self._set_card(event.call_id, **fields)
        self._card_at[event.call_id] = len(self.entries)
        return self._add(
            ToolCard(
                time=event.time,
                call_id=event.call_id,
                identity=event.tool,
                alias=event.alias,
                arguments=event.arguments,
                state=state,
                reason=event.reason,
            )
        )

    def _on_opened(self, event: ItemOpened) -> list[Change]:
        try:
            item = item_from_json(event.item)
        except ValueError:
            text = "an item of another release waits; see `capuchin inbox`"
            return self._add(Mark(event.time, text, "warn"))
        self.items[item.id] = item
        self.decided.pop(item.id, None)
        self._settle_status()
        changes: list[Change] = [ItemsChanged(), HeadChanged()]
        if item.kind == "approval":
            asked = self.card(item.call_id)
            fields: dict[str, Any] = {"state": "waiting", "reason": item.reason}
            if asked is not None and item.arguments == asked.asked:
                # What was written instead could not run: it is asked as it was.
                fields |= {"arguments": item.arguments, "asked": "", "changed_by": ""}
            changes += self._set_card(item.call_id, **fields)
        elif item.kind == "outcome":
            changes += self._set_card(item.call_id, state="unknown", reason=item.reason)
        return changes

    def _on_decided(self, event: ItemDecided) -> list[Change]:
        item = self.items.pop(event.item_id, None)
        self.decided[event.item_id] = event
        self._settle_status()
        changes: list[Change] = [ItemsChanged(), HeadChanged()]
        if item is not None and item.kind == "approval":
            state = _DECISIONS.get(event.choice, "waiting")
            fields: dict[str, Any] = {"state": state, "decided_by": event.by}
            if event.reason:
                fields["reason"] = event.reason
            if event.arguments:
                card = self.card(item.call_id)
                fields |= {"arguments": event.arguments, "changed_by": event.by}
                fields["asked"] = card.asked or card.arguments if card else item.arguments
            changes += self._set_card(item.call_id, **fields)
            if event.grant:
                changes += self._add(Mark(event.time, granted(event, item.tool)))
        elif event.item_kind in ("limit", "outcome"):
            changes += self._add(mark_of(event))
        return changes

    def _on_voted(self, event: ItemVoted) -> list[Change]:
        item = self.items.get(event.item_id)
        if item is None:
            return []
        self.items[item.id] = item.with_vote(event)
        return [ItemsChanged()]

    def _on_escalated(self, event: ItemEscalated) -> list[Change]:
        item = self.items.get(event.item_id)
        if item is None:
            return []
        self.items[item.id] = item.with_escalation(event)
        return [ItemsChanged(), HeadChanged()]

    def _on_grant_used(self, event: GrantUsed) -> list[Change]:
        left = "" if event.left is None else f", {event.left} more times"
        return self._set_card(event.call_id, reason=f"allowed beforehand{left}")

    def _on_started(self, event: ToolStarted) -> list[Change]:
        self._settle_status()
        self._open_calls.add(event.call_id)
        changes = self._set_card(event.call_id, state="running")
        if not changes:
            self._card_at[event.call_id] = len(self.entries)
            changes = self._add(
                ToolCard(
                    time=event.time,
                    call_id=event.call_id,
                    identity=event.tool,
                    alias=event.alias,
                    arguments=event.arguments,
                    state="running",
                )
            )
        return [*changes, HeadChanged()]

    def _on_ended(self, event: ToolEnded) -> list[Change]:
        self._open_calls.discard(event.call_id)
        fields: dict[str, Any] = {"state": event.status, "result": event.text}
        return self._set_card(event.call_id, **fields, duration_s=event.duration_s)

    def _on_usage(self, event: UsageRecorded) -> list[Change]:
        if event.offset >= self._usage_at:
            self.usage.record(event)
        return [HeadChanged()]

    def _on_renamed(self, event: ConversationRenamed) -> list[Change]:
        self.title = event.title
        return [HeadChanged(), *self._add(mark_of(event))]

    def _on_reopened(self, event: ConversationReopened) -> list[Change]:
        self.status, self.detail = "idle", ""
        return [HeadChanged(), *self._add(mark_of(event))]

    def _on_turn_ended(self, event: TurnEnded) -> list[Change]:
        changes: list[Change] = [HeadChanged()]
        if self.open_reply is not None and event.outcome != "answered":
            cut = replace(self.open_reply, time=event.time, is_open=False, is_cut=True)
            changes += [*self._drop_open(), *self._add(cut)]
        changes += [*self._drop_open(), *self._end_open_calls()]
        if self.items:
            self.items = {}
            changes.append(ItemsChanged())
        self.status, self.detail = "idle", event.detail
        if event.outcome != "answered":
            changes += self._add(mark_of(event))
        return changes

    def _on_closed(self, event: ConversationClosed) -> list[Change]:
        self.status, self.detail = event.status, event.detail
        self.items, self.queued = {}, []
        mark, ended = mark_of(event), self._end_open_calls()
        return [*self._drop_open(), *ended, HeadChanged(), ItemsChanged(), *self._add(mark)]

    def _on_other(self, event: Event) -> list[Change]:
        return self._add(mark_of(event))


_HANDLERS: Mapping[type[Event], Callable[[Talk, Any], list[Change]]] = {
    DefinitionPinned: Talk._on_pinned,
    MessageQueued: Talk._on_queued,
    TurnStarted: Talk._on_turn,
    AssistantSaid: Talk._on_said,
    ToolRequested: Talk._on_requested,
    ItemOpened: Talk._on_opened,
    ItemDecided: Talk._on_decided,
    ItemVoted: Talk._on_voted,
    ItemEscalated: Talk._on_escalated,
    ToolStarted: Talk._on_started,
    ToolEnded: Talk._on_ended,
    GrantUsed: Talk._on_grant_used,
    UsageRecorded: Talk._on_usage,
    ConversationRenamed: Talk._on_renamed,
    ConversationReopened: Talk._on_reopened,
    TurnEnded: Talk._on_turn_ended,
    ConversationClosed: Talk._on_closed,
}
