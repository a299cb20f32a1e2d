"""The real gateway: the client's conversations in the TUI's shapes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing

from capuchin_yaml.client.answers import ConversationState
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.watch import Reconnected, Reconnecting
from capuchin_yaml.compiler.given import check_injected, check_variables
from capuchin_yaml.errors import CapuchinError, ConversationBlocked, WorkerUnavailable
from capuchin_yaml.events import (
    AssistantSaid,
    Choice,
    ConversationClosed,
    Event,
    ItemDecided,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from capuchin_yaml.items import Item
from capuchin_yaml.spec import AgentSpec, JsonValue
from capuchin_yaml.tui.gateway import (
    AgentCard,
    Broken,
    Cause,
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

_LISTED = 200
_NEAR_S = 0.1
"""Pause between looks at a growing reply on a server of this machine."""
_FAR_S = 1.0
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class LiveGateway:
    """The conversations of one project; it owns `fleet` and lets go of it at the end."""

    def __init__(
        self,
        fleet: Capuchin,
        *,
        user: str,
        agents: Callable[[], Awaitable[Sequence[AgentCard]]] | None = None,
        rings: bool = False,
    ) -> None:
        """Speak as `user`; `agents` tells, at any time, which agents can be started.

        It may raise `CapuchinError` when it cannot be told.
        """
        self._fleet = fleet
        self._user = user
        self._agents = agents or _nobody
        self._rings = rings
        self._talks: dict[str, Conversation] = {}
        self._partial_s = _NEAR_S if fleet.address.startswith(_LOOPBACK) else _FAR_S

    @property
    def project(self) -> str:
        """The project whose conversations these are."""
        return self._fleet.project

    @property
    def user(self) -> str:
        """The name that decisions are made under, as asserted."""
        return self._user

    @property
    def rings(self) -> bool:
        """Whether the operator of this machine wants the bell for everything that waits."""
        return self._rings

    async def agents(self) -> tuple[AgentCard, ...]:
        """The agents that can be started."""
        return tuple(await self._agents())

    async def list(self) -> tuple[TalkRow, ...]:
        """The newest conversations."""
        return tuple(
            TalkRow(r.id, r.agent, r.status, r.waiting, r.title, r.updated_at, r.created_at)
            for r in await self._fleet.list(_LISTED)
        )

    async def inbox(self) -> tuple[InboxRow, ...]:
        """Every waiting item."""
        return tuple(
            InboxRow(
                id=r.id,
                kind=r.kind,
                conversation=r.conversation,
                agent=r.agent,
                title=r.title,
                requested_at=r.requested_at,
                due=r.due,
                then=r.then,
                tool=r.tool,
                alias=r.alias,
                arguments=r.args,
                digest=r.digest,
                revision=r.revision,
            )
            for r in await self._fleet.inbox()
        )

    async def state(self, conversation: str) -> TalkState:
        """One conversation, read from its workflow."""
        return _state(await self._talk(conversation).state())

    async def events(self, conversation: str, since: int, until: int) -> tuple[Event, ...]:
        """Events from offset `since` up to `until` (excluded), as far as they are kept."""
        return tuple(await self._talk(conversation).events(since, until))

    async def watch(self, conversation: str, since: int) -> AsyncIterator[Pulse]:
        """Events from `since` on, and partial replies while a turn runs."""
        talk = self._talk(conversation)
        news: asyncio.Queue[Pulse | CapuchinError | None] = asyncio.Queue(maxsize=1000)
        writing = asyncio.Event()
        tasks = [
            asyncio.create_task(_events(talk, since, news, writing)),
            asyncio.create_task(_partials(talk, news, writing, self._partial_s)),
        ]
        try:
            while True:
                pulse = await news.get()
                if pulse is None:
                    return
                if isinstance(pulse, CapuchinError):
                    raise pulse
                yield pulse
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def start(
        self,
        agent: str,
        variables: Mapping[str, JsonValue],
        injected: Mapping[str, JsonValue],
        text: str | None = None,
    ) -> str:
        """Open a conversation and return its id."""
        card = next((c for c in await self._agents() if c.name == agent), None)
        if card is not None:
            spec = AgentSpec(
                name=agent, prompt="", variables=card.variables, injected=card.injected
            )
            variables = check_variables(spec, variables)
            injected = check_injected(spec, injected)
        talk = await self._fleet.start(
            agent, text, by=self._user, variables=variables, injected=injected
        )
        self._talks[talk.id] = talk
        return talk.id

    async def send(self, conversation: str, text: str, message_id: str) -> Sent:
        """Say something; a repeat with the same id is the same message."""
        answer = await self._talk(conversation).send(text, by=self._user, message_id=message_id)
        return Sent(answer.turn, answer.queued)

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
        """Answer exactly this revision of an item."""
        answer = await self._talk(item.conversation).decide(
            item.id,
            digest=item.digest,
            choice=choice,
            by=self._user,
            reason=reason,
            result=result,
            arguments=arguments,
            grant=grant,
        )
        return Decided(answer.accepted, answer.choice, answer.by, answer.at, answer.reason)

    async def schemas(self, conversation: str) -> Mapping[str, Mapping[str, JsonValue]]:
        """The JSON Schema of each tool's arguments, by identity."""
        return await self._talk(conversation).input_schemas()

    async def revoke(self, conversation: str, grant: str) -> bool:
        """Take back what an approval allowed beforehand."""
        return await self._talk(conversation).revoke(grant, by=self._user)

    async def claim(self, item: Item) -> bool:
        """Say to others that one looks at an item."""
        return await self._talk(item.conversation).claim(item.id, by=self._user)

    async def reopen(self, conversation: str) -> None:
        """Open a closed conversation again."""
        await self._talk(conversation).reopen(by=self._user)

    async def rename(self, conversation: str, title: str) -> str:
        """Give a conversation a title."""
        return await self._talk(conversation).rename(title, by=self._user)

    async def cancel_turn(self, conversation: str) -> bool:
        """End the running turn; False when none was running."""
        return (await self._talk(conversation).cancel_turn(by=self._user)).accepted

    async def close_talk(self, conversation: str, reason: str = "") -> None:
        """End a conversation for good."""
        await self._talk(conversation).close(by=self._user, reason=reason)

    async def health(self) -> Health:
        """Ask the server once."""
        found = await self._fleet.check()
        return Health(found.server_up, found.workers, found.detail, found.address)

    async def aclose(self) -> None:
        """Let go of the server."""
        await self._fleet.close()

    def _talk(self, conversation: str) -> Conversation:
        if conversation not in self._talks:
            self._talks[conversation] = self._fleet.conversation(conversation)
        return self._talks[conversation]


async def _nobody() -> Sequence[AgentCard]:
    return ()


async def _events(
    talk: Conversation,
    since: int,
    news: asyncio.Queue[Pulse | CapuchinError | None],
    writing: asyncio.Event,
) -> None:
    try:
        async with aclosing(talk.watch(since)) as watch:
            async for found in watch:
                match found:
                    case Event():
                        _note_writing(found, writing)
                        await news.put(found)
                    case Reconnecting(error):
                        await news.put(Broken(str(error), _cause(error)))
                    case Reconnected():
                        await news.put(Mended())
    except CapuchinError as error:
        await news.put(error)
    else:
        await news.put(None)


async def _partials(
    talk: Conversation,
    news: asyncio.Queue[Pulse | CapuchinError | None],
    writing: asyncio.Event,
    pause_s: float,
) -> None:
    last: Partial | None = None
    while True:
        await writing.wait()
        try:
            found = await talk.partial()
        except CapuchinError:
            # The events of the same conversation tell what is wrong.
            found = None
        if found is not None:
            partial = Partial(found.attempt, found.offset, found.tail, found.held_up)
            if partial != last and writing.is_set():
                last = partial
                await news.put(partial)
        await asyncio.sleep(pause_s)


def _note_writing(event: Event, writing: asyncio.Event) -> None:
    """Keep track of whether a reply may be being written."""
    if isinstance(event, TurnStarted | ToolEnded | ItemDecided):
        writing.set()
    elif isinstance(event, AssistantSaid | TurnEnded | ConversationClosed):
        writing.clear()


def _cause(error: CapuchinError) -> Cause:
    match error:
        case WorkerUnavailable():
            return "worker"
        case ConversationBlocked():
            return "code"
        case _:
            return "server"


def _state(found: ConversationState) -> TalkState:
    definition = found.definition
    return TalkState(
        id=found.conversation,
        agent=found.agent,
        status=found.status,
        title=found.title,
        items=found.items,
        grants=found.grants,
        queued=tuple(Queued(q.id, q.text, q.by) for q in found.queued),
        version=definition.version if definition else "",
        definition_hash=definition.hash if definition else "",
        model=definition.model if definition else "",
        detail=found.detail,
        events=found.events,
        usage=found.usage,
    )
