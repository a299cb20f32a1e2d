"""The desk: one gateway, what it has told so far, and the tasks that keep that fresh.

Screens read the desk and ask it to act; it tells them by `on_change` what to draw again.
A watched conversation has one task; all others live on one poll a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

from capuchin_yaml.errors import (
    CapuchinError,
    NotSent,
    ServerUnavailable,
    WorkerUnavailable,
)
from capuchin_yaml.events import Choice, Event, TurnStarted
from capuchin_yaml.events import MessageQueued as MessageQueuedEvent
from capuchin_yaml.items import Item
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tui import lookups
from capuchin_yaml.tui.gateway import Broken, Decided, Gateway, Health, Mended, Partial, Pulse
from capuchin_yaml.tui.lookups import Lookups, What
from capuchin_yaml.tui.model.changes import Change as TalkChange
from capuchin_yaml.tui.model.changes import HeadChanged, ItemsChanged
from capuchin_yaml.tui.model.fleet import Fleet
from capuchin_yaml.tui.model.outbox import Outbox, Pending
from capuchin_yaml.tui.model.talk import EventsMissing, Talk

_log = logging.getLogger(__name__)

POLL_S = 1.0
AGENTS_S = 5.0
OLDER_EVENTS = 400
HEALTH_LIMIT_S = 0.9
"""A heartbeat without an answer counts as none after this long."""
_RETRY_S = 1.0
_AWAY = (NotSent, ServerUnavailable, WorkerUnavailable)


@dataclass(frozen=True, slots=True)
class TalkChanged:
    """Something of one conversation changed."""

    talk: str
    changes: tuple[TalkChange, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something went wrong that nobody foresaw; the desk goes on without it."""

    text: str


DeskChange: TypeAlias = What | TalkChanged | Fault
Connect: TypeAlias = Callable[[], Awaitable[Gateway]]


class Desk:
    """What the screens share. `on_change` is called on the loop for every change."""

    def __init__(
        self,
        connect: Connect,
        on_change: Callable[[DeskChange], None],
        clock: Callable[[], float] = monotonic,
        poll_s: float = POLL_S,
    ) -> None:
        self.fleet = Fleet()
        self.outbox = Outbox()
        self.gateway: Gateway | None = None
        self.clock = clock
        self._connect = connect
        self._on_change = on_change
        self._poll_s = poll_s
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: dict[str, asyncio.Lock] = {}
        self._reading: set[str] = set()
        self.look = Lookups(self.fleet, self._gateway, self._on_change)
        """What screens ask for beside what the polls tell."""
        self._last_agents = float("-inf")

    def talk(self, conversation: str) -> Talk:
        """The picture of a conversation, empty until it is attached."""
        if conversation not in self.fleet.talks:
            row = self.fleet.rows.get(conversation)
            talk = Talk(conversation, row.agent if row else "", row.title if row else "")
            self.fleet.talks[conversation] = talk
        return self.fleet.talks[conversation]

    async def run(self) -> None:
        """Connect, then keep lists and link fresh until cancelled; never ends by itself."""
        while self.gateway is None:
            try:
                self.gateway = await self._connect()
            except CapuchinError as error:
                self._note_health(None, str(error))
                await asyncio.sleep(_RETRY_S)
        for conversation in list(self.fleet.talks):
            self.attach(conversation)
        while True:
            try:
                await self.refresh()
            except Exception as error:
                # Why: the screen with its drafts outlives whatever a poll runs into.
                self._note_fault(error)
            await asyncio.sleep(self._poll_s)

    async def refresh(self) -> None:
        """One heartbeat and, when the server answers, one look at list and inbox."""
        gateway = self.gateway
        if gateway is None:
            return
        health: Health | None = None
        why = "no answer"
        try:
            # Why not `wait_for`: before Python 3.12 it may lose a cancellation.
            async with asyncio.timeout(HEALTH_LIMIT_S):
                health = await gateway.health()
        except TimeoutError:
            pass
        except CapuchinError as error:
            why = str(error)
        self._note_health(health, why)
        if health is None or not health.server:
            return
        try:
            if self.fleet.set_rows(await gateway.list()):
                self._on_change(What.ROWS)
            if self.fleet.set_inbox(await gateway.inbox()):
                self._on_change(What.INBOX)
            if not self.fleet.agents or self.clock() - self._last_agents > AGENTS_S:
                self._last_agents = self.clock()
                agents = await gateway.agents()
                if agents != self.fleet.agents:
                    self.fleet.agents = agents
                    self._on_change(What.AGENTS)
        except CapuchinError as error:
            self._note_health(None, str(error))

    def attach(self, conversation: str) -> Talk:
        """Watch a conversation from where it was left."""
        talk = self.talk(conversation)
        task = self._watches.get(conversation)
        if self.gateway is not None and (task is None or task.done()):
            task = asyncio.create_task(self._watch(talk))
            task.add_done_callback(self._look_after)
            self._watches[conversation] = task
        return talk

    def detach(self, conversation: str) -> None:
        """Stop watching; what is known stays."""
        task = self._watches.pop(conversation, None)
        if task is not None:
            task.cancel()
        self.fleet.workerless.discard(conversation)
        self.talk(conversation).is_watched = False

    async def older(self, conversation: str, count: int = OLDER_EVENTS) -> bool:
        """Read events before those that are known; False when there is nothing to read now.

        Raises:
            CapuchinError: they could not be read.
        """
        talk = self.talk(conversation)
        until = talk.first_offset
        if not until or conversation in self._reading:
            return False
        self._reading.add(conversation)
        try:
            since = max(until - count, 0)
            found = await self._gateway().events(conversation, since, until)
        finally:
            self._reading.discard(conversation)
        if talk.first_offset == until:
            self._tell(talk, talk.prepend(found))
        return True

    def send(self, conversation: str, text: str) -> Pending:
        """Send a message, or hold it while nobody could take it."""
        message_id = self.outbox.id_again(conversation, text) or secrets.token_hex(8)
        entry = self.outbox.add(message_id, conversation, text, hold=self._hold())
        self._on_change(What.OUTBOX)
        if entry.state == "sending":
            self.spawn(self._deliver(entry))
        return entry

    async def start(
        self, agent: str, variables: Mapping[str, JsonValue], injected: Mapping[str, JsonValue]
    ) -> str:
        """Open a conversation and return its id.

        Raises:
            CapuchinError: it was refused or could not be reached.
        """
        conversation = await self._gateway().start(agent, variables, injected)
        talk = self.talk(conversation)
        talk.agent = agent
        return conversation

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
        """Answer an item; what changes on the screen comes from its event alone.

        Raises:
            CapuchinError: it was not taken.
        """
        if not self.fleet.link.is_up:
            raise ServerUnavailable("the server is away, nothing was decided")
        return await self._gateway().decide(
            item, choice, reason, result, arguments=arguments, grant=grant
        )

    async def claim(self, item: Item) -> None:
        """Say to others that one looks at an item; it binds nobody, so no fault matters."""
        with contextlib.suppress(CapuchinError):
            await self._gateway().claim(item)

    async def revoke(self, conversation: str, grant: str) -> bool:
        """Take a grant back; False when there is none any more.

        Raises:
            CapuchinError: it was not taken.
        """
        done = await self._gateway().revoke(conversation, grant)
        left = tuple(g for g in self.fleet.grants.get(conversation, ()) if g.id != grant)
        self.fleet.grants[conversation] = left
        self._on_change(What.GRANTS)
        return done

    async def reopen(self, conversation: str) -> None:
        """Open a closed conversation again, and watch it anew.

        Raises:
            CapuchinError: it was not taken.
        """
        await self._gateway().reopen(conversation)
        if conversation in self._watches:
            self.detach(conversation)
            self.attach(conversation)

    async def read_item(self, conversation: str, item_id: str) -> Item | None:
        """The whole item, read from its workflow now; None when it waits no more.

        Raises:
            CapuchinError: it could not be read.
        """
        state = await self._gateway().state(conversation)
        self._tell(self.talk(conversation), self.talk(conversation).learn(state))
        return next((i for i in state.items if i.id == item_id), None)

    async def rename(self, conversation: str, title: str) -> str:
        """Give a conversation a title, and return it as it is kept.

        Raises:
            CapuchinError: it was not taken.
        """
        return await self._gateway().rename(conversation, title)

    async def cancel_turn(self, conversation: str) -> bool:
        """End the running turn; False when none ran.

        Raises:
            CapuchinError: it was not taken.
        """
        return await self._gateway().cancel_turn(conversation)

    async def close_talk(self, conversation: str) -> None:
        """End a conversation for good.

        Raises:
            CapuchinError: it was not taken.
        """
        await self._gateway().close_talk(conversation)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the screens until it is done or the desk is shut."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._look_after)

    async def shut(self) -> None:
        """Stop every task and let go of the gateway."""
        tasks = [*self._watches.values(), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.gateway is not None:
            with contextlib.suppress(CapuchinError):
                await self.gateway.aclose()

    def _look_after(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._note_fault(error)

    def _note_fault(self, error: Exception) -> None:
        _log.error("a fault in the TUI's desk", exc_info=error)
        self._on_change(Fault(f"{type(error).__name__}: {error}"))

    def _gateway(self) -> Gateway:
        if self.gateway is None:
            raise ServerUnavailable("still starting: the server is not reached yet")
        return self.gateway

    def _hold(self) -> str:
        return self.fleet.hold if self.gateway is not None else "still starting"

    def _note_health(self, health: Health | None, why: str) -> None:
        if self.fleet.note_health(health, why, self.clock()):
            self._on_change(What.LINK)
        self._release()

    def _release(self) -> None:
        if self.gateway is not None and not self._hold():
            for entry in self.outbox.release():
                self._on_change(What.OUTBOX)
                self.spawn(self._deliver(entry))

    async def _deliver(self, entry: Pending) -> None:
        # Why: a lock wakes its waiters in order, so messages arrive in the order written.
        async with self._lanes.setdefault(entry.conversation, asyncio.Lock()):
            await self._deliver_now(entry)

    async def _deliver_now(self, entry: Pending) -> None:
        try:
            await self._gateway().send(entry.conversation, entry.text, entry.id)
        except _AWAY as error:
            hold = self._hold()
            self.outbox.set(entry.id, "held" if hold else "unsent", hold or str(error))
        except CapuchinError as error:
            self.outbox.set(entry.id, "unsent", str(error))
        else:
            self.outbox.set(entry.id, "taken")
            if self._watches.get(entry.conversation) is None:
                self.outbox.seen(entry.id)
        self._on_change(What.OUTBOX)

    async def _watch(self, talk: Talk) -> None:
        gateway = self._gateway()
        learned, missed = False, -1
        while True:
            try:
                if not learned:
                    state = await gateway.state(talk.id)
                    talk.begin_at(state.events - lookups.FIRST_EVENTS)
                    self._tell(talk, talk.learn(state))
                    learned = talk.is_watched = True
                async for pulse in gateway.watch(talk.id, talk.next_offset):
                    self._take(talk, pulse)
                self.fleet.workerless.discard(talk.id)
                return
            except EventsMissing as missing:
                if missing.since == missed:
                    # The same hole twice: the server keeps these events no longer.
                    self._tell(talk, talk.skip_to(missing.got))
                missed = missing.since
            except CapuchinError as error:
                talk.detail = str(error)
                self._tell(talk, [HeadChanged()])
                await asyncio.sleep(_RETRY_S)

    def _take(self, talk: Talk, pulse: Pulse) -> None:
        match pulse:
            case Event():
                self._tell(talk, talk.apply(pulse))
                if isinstance(pulse, TurnStarted | MessageQueuedEvent):
                    self.outbox.seen(pulse.message_id)
                    self._on_change(What.OUTBOX)
            case Partial():
                self._tell(talk, talk.grow(pulse))
            case Broken(reason, "server"):
                self._note_health(None, reason)
            case Broken(reason, "worker"):
                self.fleet.workerless.add(talk.id)
                self._on_change(What.LINK)
            case Broken(reason):
                self._tell(talk, talk.is_blocked(reason))
            case Mended():
                self.fleet.workerless.discard(talk.id)
                self._tell(talk, talk.is_mended())
                self._on_change(What.LINK)
                self._release()

    def _tell(self, talk: Talk, changes: list[TalkChange]) -> None:
        if not changes:
            return
        self._on_change(TalkChanged(talk.id, tuple(changes)))
        if any(isinstance(c, ItemsChanged) for c in changes):
            self._on_change(What.INBOX)
        if any(isinstance(c, HeadChanged) for c in changes):
            self._on_change(What.ROWS)
