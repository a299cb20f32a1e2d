"""A scripted gateway whose clock the test holds: conversations, items and faults at will."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from capuchin_yaml.client.answers import Grant
from capuchin_yaml.errors import ConversationNotFound, NotSent, RequestRefused, ServerUnavailable
from capuchin_yaml.events import (
    Choice,
    Event,
    ItemDecided,
    ItemKind,
    ToolRequested,
    UsageRecorded,
    decode,
)
from capuchin_yaml.items import Item
from capuchin_yaml.messages import Usage
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tui.gateway import (
    AgentCard,
    Broken,
    Decided,
    Health,
    InboxRow,
    Mended,
    Partial,
    Pulse,
    Queued,
    Sent,
    TalkRow,
    TalkState,
)

REFUND: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "amount_cents": {"type": "integer", "minimum": 1, "description": "How much, in cents."},
        "order_id": {"type": "string", "pattern": "^[A-Z]-[0-9]+$"},
        "reason": {"type": "string", "description": "For the customer."},
    },
    "required": ["amount_cents", "order_id"],
    "additionalProperties": False,
}
BEGIN = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@dataclass
class FakeTalk:
    """One conversation: its log, its open items, and who watches."""

    id: str
    agent: str
    status: str = "idle"
    title: str = ""
    log: list[Event] = field(default_factory=list)
    items: dict[str, Item] = field(default_factory=dict)
    queued: list[Queued] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    partial: Partial | None = None
    model: str = "scripted:demo"
    turns: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Tell the watchers."""
        old, self.news = self.news, asyncio.Event()
        old.set()


def usage_of(log: list[Event]) -> Usage:
    """The tokens of a log."""
    used = [e for e in log if isinstance(e, UsageRecorded)]
    return Usage(
        sum(e.input_tokens for e in used),
        sum(e.output_tokens for e in used),
        sum(e.cache_read_tokens for e in used),
        sum(e.cache_write_tokens for e in used),
    )


class FakeGateway:
    """The gateway Protocol, driven by the test instead of a server."""

    def __init__(self, *, now: datetime = BEGIN) -> None:
        self.project = "demo"
        self.user = "anna"
        self.rings = False
        self.now = now
        self.talks: dict[str, FakeTalk] = {}
        self.cards: tuple[AgentCard, ...] = ()
        self.agents_told = asyncio.Event()
        """Cleared, it holds back the answer which agents there are, and nothing else."""
        self.agents_told.set()
        self.is_up = True
        self.workers: int | None = 1
        self.decisions: list[tuple[str, int, str, str, str]] = []
        """Every decision that was offered: item, revision, choice, reason, result."""
        self.sent: list[tuple[str, str]] = []
        self.cancelled: list[str] = []
        self.closed: list[str] = []
        self.started: list[tuple[str, dict[str, JsonValue], dict[str, JsonValue]]] = []
        self.refuse_sends: str = ""
        self.edits: list[tuple[str, str]] = []
        """Every edit that was offered: item, arguments."""
        self.given: list[dict[str, JsonValue]] = []
        """What approvals allowed beforehand."""
        self.revoked: list[str] = []
        self.claims: list[str] = []
        self.reopened: list[str] = []
        self.tool_schemas: dict[str, dict[str, JsonValue]] = {"billing.issue_refund": REFUND}
        self.pages: list[tuple[int, int]] = []
        """Every page of older events that was asked for."""
        self.answers_decisions = True
        """False: a decision is recorded, but its event is left to the test."""
        self._seen_ids: set[str] = set()
        self._numbers = itertools.count(1)

    # What the test does.

    def add(self, agent: str = "billing", *, id: str = "", title: str = "") -> FakeTalk:
        """A conversation that exists."""
        talk = FakeTalk(id or f"demo.{agent}-{next(self._numbers):06}", agent, title=title)
        self.talks[talk.id] = talk
        return talk

    def tick(self, seconds: float = 1.0) -> str:
        """Move the clock, and say what time it is."""
        self.now += timedelta(seconds=seconds)
        return self.now.isoformat()

    def emit(self, talk: FakeTalk, kind: str, **fields: Any) -> Event:
        """Append one event to a log."""
        event = decode({"kind": kind, "offset": len(talk.log), "time": self.tick(), **fields})
        talk.log.append(event)
        talk.wake()
        return event

    def pin(self, talk: FakeTalk, model: str = "scripted:demo") -> None:
        """Fix the definition."""
        talk.model = model
        self.emit(
            talk,
            "definition_pinned",
            agent=talk.agent,
            version="1.2.0",
            definition_hash="3f2a91bc" * 8,
            model=model,
        )

    def turn(self, talk: FakeTalk, text: str, message_id: str = "") -> None:
        """A user message is being answered."""
        talk.turns += 1
        talk.status = "thinking"
        talk.title = talk.title or text[:60]
        self.emit(
            talk,
            "turn_started",
            turn=talk.turns,
            message_id=message_id or f"m{talk.turns}",
            text=text,
            by=self.user,
        )

    def say(self, talk: FakeTalk, text: str) -> None:
        """The model replied."""
        talk.partial = None
        self.emit(talk, "assistant_message", turn=talk.turns, step=1, text=text, model=talk.model)

    def stream(self, talk: FakeTalk, text: str, attempt: int = 1) -> None:
        """So much of the reply has come in."""
        talk.partial = Partial(attempt, 0, text)
        talk.wake()

    def spend(self, talk: FakeTalk, tokens: int, model: str = "") -> None:
        """A model call used so many tokens in, and a tenth of them out."""
        self.emit(
            talk,
            "usage_recorded",
            model=model or talk.model,
            input_tokens=tokens,
            output_tokens=tokens // 10,
            cache_read_tokens=0,
            cache_write_tokens=0,
        )

    def end(self, talk: FakeTalk, outcome: str = "answered", detail: str = "") -> None:
        """The turn is over."""
        talk.status = "idle"
        talk.items.clear()
        self.emit(talk, "turn_ended", turn=talk.turns, outcome=outcome, detail=detail)

    def call(
        self,
        talk: FakeTalk,
        n: int,
        tool: str = "billing.issue_refund",
        arguments: str = '{"amount_cents":4200,"order_id":"A-1001"}',
        verdict: str = "ask",
        alias: str = "refund",
    ) -> str:
        """The model asked for a call."""
        call_id = f"{talk.id}:{n}"
        self.emit(
            talk,
            "tool_requested",
            call_id=call_id,
            tool=tool,
            alias=alias,
            arguments=arguments,
            verdict=verdict,
            reason="",
        )
        return call_id

    def run(self, talk: FakeTalk, call_id: str, result: str, status: str = "ok") -> None:
        """A call ran."""
        asked = [e for e in talk.log if isinstance(e, ToolRequested) and e.call_id == call_id]
        common = {"call_id": call_id, "tool": asked[0].tool, "alias": asked[0].alias}
        self.emit(talk, "tool_started", **common, arguments="{}")
        self.emit(talk, "tool_ended", **common, status=status, text=result, duration_s=0.31)

    def open_item(
        self,
        talk: FakeTalk,
        n: int = 1,
        *,
        kind: ItemKind = "approval",
        revision: int = 1,
        tool: str = "billing.issue_refund",
        alias: str = "refund",
        effect: str = "write",
        arguments: str = '{"amount_cents":4200,"order_id":"A-1001"}',
        title: str = "Refund 4200 cents of order A-1001",
        due_s: float | None = 86400.0,
        then: str = "deny",
        by: str = "",
        rule: str = "",
    ) -> Item:
        """Something waits for a person."""
        letter = {"approval": "a", "outcome": "o", "limit": "l"}.get(kind, "q")
        digest = hashlib.sha256(f"{tool}{arguments}{revision}".encode()).hexdigest()
        due = (self.now + timedelta(seconds=due_s)).isoformat() if due_s is not None else None
        item = Item(
            id=f"{talk.id}:{letter}{n}",
            kind=kind,
            conversation=talk.id,
            digest=digest,
            revision=revision,
            title=title,
            requested_at=self.now.isoformat(),
            due=due,
            then=then,
            call_id=f"{talk.id}:{n}",
            tool=tool,
            alias=alias,
            effect=effect,
            distribution="capuchin-billing 0.1.0",
            arguments=arguments,
            config={"currency": "USD"},
            injected={"tenant": "7"},
            definition_hash="3f2a91bc" * 8,
            reason="denylist: asks before billing.issue_refund",
            rule=rule,
        )
        talk.items[item.id] = item
        talk.status = "waiting"
        fields = {name: getattr(item, name) for name in Item.__slots__}
        self.emit(talk, "item_opened", item=fields)
        return item

    def settle(
        self, item: Item, choice: Choice, by: str = "bert", reason: str = "", **more: Any
    ) -> None:
        """An item was answered by somebody."""
        talk = self.talks[item.conversation]
        talk.items.pop(item.id, None)
        talk.status = "waiting" if talk.items else "thinking"
        self.emit(
            talk,
            "item_decided",
            item_id=item.id,
            item_kind=item.kind,
            choice=choice,
            by=by,
            reason=reason,
            **more,
        )

    def allow(self, talk: FakeTalk, scope: str = "tool", left: int | None = 3) -> Grant:
        """A grant that stands."""
        grant = Grant(
            f"{talk.id}:g{len(talk.grants) + 1}",
            scope,
            "billing.issue_refund",
            '{"amount_cents":4200,"order_id":"A-1001"}' if scope == "call" else "",
            left,
            None,
            self.user,
            self.now.isoformat(),
        )
        talk.grants.append(grant)
        return grant

    def go_down(self) -> None:
        """The server is gone."""
        self.is_up = False
        for talk in self.talks.values():
            talk.wake()

    def come_back(self) -> None:
        """The server is there again, with everything it knew."""
        self.is_up = True
        for talk in self.talks.values():
            talk.wake()

    # What the TUI asks.

    async def agents(self) -> tuple[AgentCard, ...]:
        """The cards that the test put here."""
        await self.agents_told.wait()
        self._check()
        return self.cards

    async def list(self) -> tuple[TalkRow, ...]:
        """All talks."""
        self._check()
        return tuple(
            TalkRow(
                t.id,
                t.agent,
                t.status,
                len(t.items),
                t.title,
                t.log[-1].time if t.log else self.now.isoformat(),
                t.log[0].time if t.log else self.now.isoformat(),
            )
            for t in self.talks.values()
        )

    async def inbox(self) -> tuple[InboxRow, ...]:
        """All items, with arguments cut as the memo does."""
        self._check()
        return tuple(
            InboxRow(
                id=i.id,
                kind=i.kind,
                conversation=t.id,
                agent=t.agent,
                title=i.title,
                requested_at=i.requested_at,
                due=i.due,
                then=i.then,
                tool=i.tool,
                alias=i.alias,
                arguments=i.arguments[:200],
                digest=i.digest,
                revision=i.revision,
            )
            for t in self.talks.values()
            for i in t.items.values()
        )

    async def state(self, conversation: str) -> TalkState:
        """A talk as its workflow tells it."""
        self._check()
        talk = self._talk(conversation)
        return TalkState(
            talk.id,
            talk.agent,
            talk.status,
            title=talk.title,
            items=tuple(talk.items.values()),
            queued=tuple(talk.queued),
            grants=tuple(talk.grants),
            version="1.2.0",
            definition_hash="3f2a91bc" * 8,
            model=talk.model,
            events=len(talk.log),
            usage=usage_of(talk.log),
        )

    async def events(self, conversation: str, since: int, until: int) -> tuple[Event, ...]:
        """A part of the log."""
        self._check()
        self.pages.append((since, until))
        return tuple(self._talk(conversation).log[since:until])

    async def watch(self, conversation: str, since: int) -> AsyncIterator[Pulse]:
        """The log from `since` on, partial replies, and the loss of the server."""
        talk = self._talk(conversation)
        at, partial, was_up = since, None, True
        while True:
            if self.is_up and not was_up:
                yield Mended()
            elif not self.is_up and was_up:
                yield Broken("connection refused")
            was_up = self.is_up
            news = talk.news
            while self.is_up and at < len(talk.log):
                event = talk.log[at]
                at += 1
                yield event
            if self.is_up and talk.partial is not None and talk.partial != partial:
                partial = talk.partial
                yield partial
            if talk.status in ("closed", "failed") and at >= len(talk.log):
                return
            if news is talk.news:
                await news.wait()

    async def start(
        self,
        agent: str,
        variables: Mapping[str, JsonValue],
        injected: Mapping[str, JsonValue],
        text: str | None = None,
    ) -> str:
        """A new talk."""
        self._check()
        if agent not in {c.name for c in self.cards}:
            raise RequestRefused(f"no agent named {agent!r}")
        self.started.append((agent, dict(variables), dict(injected)))
        talk = self.add(agent)
        self.pin(talk)
        return talk.id

    async def send(self, conversation: str, text: str, message_id: str) -> Sent:
        """Take a message: a turn when idle, else the queue."""
        self._check()
        if not self.workers:
            raise NotSent("no worker answered in 30 s")
        if self.refuse_sends:
            raise RequestRefused(self.refuse_sends)
        talk = self._talk(conversation)
        if message_id in self._seen_ids:
            return Sent(None, False)
        self._seen_ids.add(message_id)
        self.sent.append((conversation, text))
        if talk.status == "idle":
            self.turn(talk, text, message_id)
            return Sent(talk.turns, False)
        talk.queued.append(Queued(message_id, text, self.user))
        self.emit(talk, "message_queued", message_id=message_id, text=text, by=self.user)
        return Sent(None, True)

    async def decide(
        self,
        item: Item,
        choice: Choice,
        reason: str = "",
        result: str = "",
        *,
        arguments: str = "",
        grant: Mapping[str, JsonValue] | None = None,
    ) -> Decided:
        """Take a decision once, bound to the digest."""
        self._check()
        talk = self._talk(item.conversation)
        self.decisions.append((item.id, item.revision, choice, reason, result))
        at = self.now.isoformat()
        open_item = talk.items.get(item.id)
        if open_item is None:
            for event in talk.log:
                if isinstance(event, ItemDecided) and event.item_id == item.id:
                    return Decided(False, event.choice, event.by, event.time, event.reason)
            raise RequestRefused(f"no item {item.id!r}")
        if open_item.digest != item.digest:
            raise RequestRefused("the item changed, so its digest is another one")
        if choice == "edit":
            self.edits.append((item.id, arguments))
        if grant is not None:
            self.given.append(dict(grant))
        if self.answers_decisions:
            more = {"arguments": arguments, "grant": dict(grant) if grant is not None else None}
            self.settle(item, choice, self.user, reason, **more)
        return Decided(True, choice, self.user, at, reason)

    async def cancel_turn(self, conversation: str) -> bool:
        """End the turn."""
        self._check()
        self.cancelled.append(conversation)
        talk = self._talk(conversation)
        if talk.status not in ("thinking", "waiting"):
            return False
        self.end(talk, "cancelled")
        return True

    async def schemas(self, conversation: str) -> Mapping[str, Mapping[str, JsonValue]]:
        """What the talk pinned."""
        self._check()
        self._talk(conversation)
        return self.tool_schemas

    async def revoke(self, conversation: str, grant: str) -> bool:
        """Take a grant back."""
        self._check()
        self.revoked.append(grant)
        talk = self._talk(conversation)
        before = len(talk.grants)
        talk.grants = [g for g in talk.grants if g.id != grant]
        return len(talk.grants) < before

    async def claim(self, item: Item) -> bool:
        """Note who looks at what."""
        self._check()
        self.claims.append(item.id)
        return item.id in self._talk(item.conversation).items

    async def reopen(self, conversation: str) -> None:
        """Open a talk again."""
        self._check()
        talk = self._talk(conversation)
        if talk.status != "closed":
            raise RequestRefused("it is open")
        self.reopened.append(conversation)
        talk.status = "idle"
        self.emit(talk, "conversation_reopened", by=self.user, previous_run_id="0a1b")

    async def rename(self, conversation: str, title: str) -> str:
        """Give a talk a title."""
        self._check()
        talk = self._talk(conversation)
        talk.title = " ".join(title.split())
        if not talk.title:
            raise RequestRefused("the title is blank")
        self.emit(talk, "conversation_renamed", title=talk.title, by=self.user)
        return talk.title

    async def close_talk(self, conversation: str, reason: str = "") -> None:
        """End the talk."""
        self._check()
        self.closed.append(conversation)
        talk = self._talk(conversation)
        talk.status = "closed"
        self.emit(talk, "conversation_closed", status="closed", by=self.user, detail=reason)

    async def health(self) -> Health:
        """Whether the test lets the server be up."""
        return Health(self.is_up, self.workers, "" if self.is_up else "connection refused")

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _check(self) -> None:
        if not self.is_up:
            raise ServerUnavailable("connection refused")

    def _talk(self, conversation: str) -> FakeTalk:
        if conversation not in self.talks:
            raise ConversationNotFound(f"no conversation {conversation!r}")
        return self.talks[conversation]
