"""All conversations of one project: start, find, list, and everything that waits for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError

from capuchin_yaml.client.answers import BlockedRow, ConversationRow, Health, InboxRow, Pause
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.diagnosis import SEEN_S, describe, no_worker, workers
from capuchin_yaml.client.histories import histories
from capuchin_yaml.client.identity import client_name
from capuchin_yaml.client.ids import full_id, is_address, is_whole, short_id
from capuchin_yaml.client.inbox import waiting_rows
from capuchin_yaml.client.link import Link, in_our_words
from capuchin_yaml.client.listing import Looks, blocked_rows, conversation_rows
from capuchin_yaml.client.pausing import pause_agent, paused_agents, resume_agent
from capuchin_yaml.client.served import Served, served_agents
from capuchin_yaml.client.start import start_conversation
from capuchin_yaml.client.visibility import found_page, of_project, quoted
from capuchin_yaml.errors import ConversationNotFound
from capuchin_yaml.events import ConversationStatus
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line

_CANDIDATES = 10
_ENDS = 1000
"""Conversations that the end of an id is looked for in."""
_HEALTH_TIMEOUT = timedelta(seconds=2)


class Capuchin:
    """The conversations of one project, on a connected and sealed Temporal client.

    `async with` lets go of the server at the end.
    """

    def __init__(
        self,
        temporal: Client,
        *,
        project: str,
        program: str = "python",
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Speak for `project`; requests are recorded as coming from `program` on this host.

        Raises:
            ValueError: no project can have this name.
        """
        quoted(project)
        self._link = Link(temporal, project, client_name(program))
        self._looks = Looks()
        self._on_close = on_close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def project(self) -> str:
        """The project whose conversations these are."""
        return self._link.project

    @property
    def temporal(self) -> Client:
        """The sealed client below, for what is not offered here."""
        return self._link.temporal

    @property
    def address(self) -> str:
        """The server's host and port."""
        return self._link.address

    async def start(
        self,
        agent: str,
        text: str | None,
        *,
        by: str,
        variables: Mapping[str, JsonValue] | None = None,
        injected: Mapping[str, JsonValue] | None = None,
        message_id: str | None = None,
    ) -> Conversation:
        """Start a conversation with an agent and its first message, in one step on the server.

        With `text` None it starts without one. Whether the agent exists and the variables fit
        is found by the conversation's first step, and told by its state.

        Raises:
            RequestRefused: the text or the values cannot be sent.
            WorkerUnavailable: no worker serves the project.
            ServerUnavailable, NotSent: the server does not answer.
        """
        conversation = await start_conversation(
            self._link,
            agent,
            text,
            by=by,
            variables=variables or {},
            injected=injected or {},
            message_id=message_id,
        )
        return Conversation(self._link, conversation)

    def conversation(self, address: str) -> Conversation:
        """Return the handle of a conversation by its whole or short id, asking nobody."""
        return Conversation(self._link, full_id(self.project, address))

    async def find(self, prefix: str) -> Conversation:
        """Return the one conversation whose id, whole or short, begins with `prefix`.

        The six characters at an id's end, which screens show behind a `#`, name it as well. A
        whole id is found at once; others through the server's lists, which lag a moment, and an
        end among the newest conversations only.

        Raises:
            ConversationNotFound: there is none, or several; the text names the candidates.
            ServerUnavailable: the server does not answer.
        """
        prefix = prefix.removeprefix("#")
        if not is_address(prefix):
            raise ConversationNotFound(f"{prefix!r} cannot be the id of a conversation")
        whole = full_id(self.project, prefix)
        if is_whole(whole):
            try:
                await describe(self._link, whole)
            except ConversationNotFound:
                pass
            else:
                return Conversation(self._link, whole)
        query = of_project(self._link, f"WorkflowId STARTS_WITH {quoted(whole)}")
        found, more = await found_page(self._link, query, page_rows=_CANDIDATES + 1)
        ids = sorted({info.execution.workflow_id for info in found})
        if not ids and is_whole(f"-{prefix}"):
            found, _ = await found_page(self._link, of_project(self._link), page_rows=_ENDS)
            every = {info.execution.workflow_id for info in found}
            ids = sorted(i for i in every if i.endswith(f"-{prefix}"))
        if len(ids) == 1:
            return Conversation(self._link, ids[0])
        if not ids:
            raise ConversationNotFound(
                f"no conversation of project {self.project!r} begins with {prefix!r};"
                " `capuchin list` shows them"
            )
        names = [short_id(self.project, i) for i in ids[:_CANDIDATES]]
        raise ConversationNotFound(
            f"{prefix!r} could be {', '.join(names)}"
            + (" or one of more" if more or len(ids) > _CANDIDATES else "")
            + "; write more of the id"
        )

    async def pause(self, agent: str, *, by: str, reason: str = "") -> Pause:
        """Have the agent take up no new turn; messages are accepted and wait.

        Turns that began go on. Works with no worker. Once this returns no worker begins a turn;
        an agent that was paused before stays so, and the answer tells by whom.

        Raises:
            RequestRefused: no agent can have this name.
            ServerUnavailable: the server does not answer.
        """
        return await pause_agent(self._link, agent, by=by, reason=reason)

    async def resume(self, agent: str) -> Pause | None:
        """Let the agent take up turns again; return the pause that ends, None when there was none.

        Raises:
            As `pause`.
        """
        return await resume_agent(self._link, agent)

    async def pauses(self) -> tuple[Pause, ...]:
        """Return the paused agents.

        Raises:
            ServerUnavailable: the server does not answer.
        """
        return await paused_agents(self._link)

    async def served(self) -> Sequence[Served]:
        """Return the agents that workers of the project say to serve, by name; works with none.

        Raises:
            ServerUnavailable: the server does not answer.
        """
        return await served_agents(self._link)

    def histories(
        self, conversations: Sequence[str] | None = None
    ) -> AsyncIterator[WorkflowHistory]:
        """Yield the raw history of every run of these conversations, by whole id.

        Without any, of every open conversation of the project. Payloads are sealed as they lie.

        Raises:
            ConversationNotFound, ServerUnavailable: as the names say.
        """
        return histories(self._link, conversations)

    async def inbox(self, limit: int = 200) -> list[InboxRow]:
        """Return what waits for a person, the nearest deadline first; works with no worker.

        Rows are for choosing: read the whole item from the conversation's state before deciding.

        Raises:
            ServerUnavailable: the server does not answer.
        """
        return await waiting_rows(self._link, limit)

    async def blocked(self) -> list[BlockedRow]:
        """Return the open conversations whose code fails on the installed release.

        Raises:
            ServerUnavailable: the server does not answer.
        """
        return await blocked_rows(self._link)

    async def check(self) -> Health:
        """Ask the server once whether it is up and who works; never raises, never waits long."""
        try:
            serves = await self.temporal.service_client.check_health(
                retry=False, timeout=_HEALTH_TIMEOUT
            )
            seen = await workers(self._link)
        except RPCError as error:
            return self._unhealthy(str(in_our_words(self._link, error)))
        except RuntimeError as error:
            # Why: a client that never was connected says so in this way.
            return self._unhealthy(f"the server cannot be reached: {one_line(str(error), 200)}")
        if not serves:
            return Health(False, 0, "the server says that it does not serve", self.address)
        fresh = sum(1 for worker in seen if worker.ago_s <= SEEN_S)
        detail = "" if fresh else str(no_worker(self._link, seen))
        return Health(True, fresh, detail, self.address)

    async def list(
        self,
        limit: int = 50,
        agent: str | None = None,
        status: ConversationStatus | None = None,
        *,
        max_age_s: float = 5.0,
    ) -> list[ConversationRow]:
        """Return the newest conversations, the last touched first; works with no worker.

        The status is the server's own knowledge, so it is true even then. One that was idle when
        this object looked at it is looked at again only after `max_age_s`.

        Raises:
            ServerUnavailable: the server does not answer.
        """
        if agent is not None and not is_address(agent):
            return []
        return await conversation_rows(
            self._link, self._looks, limit=limit, max_age_s=max_age_s, agent=agent, status=status
        )

    async def close(self) -> None:
        """Let go of the server; conversations go on."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            await on_close()

    def _unhealthy(self, detail: str) -> Health:
        return Health(False, 0, detail, self.address)
