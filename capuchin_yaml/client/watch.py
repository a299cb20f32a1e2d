"""Watching without polling: the server's history is the wake-up call, a query brings the news.

The server holds a call open until the history grows, so an idle watcher costs nothing. The
history itself is not read for content: only whether a workflow task has completed, whether it put
more work on the way, and whether a model's reply asks for nothing more. Such a reply ends a turn,
so the question is asked at once: the server answers it with the task that takes the reply.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from temporalio.api.common.v1 import Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
)
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.answers import ConversationState
from capuchin_yaml.client.diagnosis import UNTAKEN_S, describe, why_silent
from capuchin_yaml.client.link import TRANSIENT, Link, in_our_words
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.storage import StoredValueMissing
from capuchin_yaml.errors import (
    CapuchinError,
    ConversationBlocked,
    ServerUnavailable,
    WorkerUnavailable,
)
from capuchin_yaml.events import Event

NewEvents: TypeAlias = Callable[[int], AsyncIterator[Event]]

_LONG_POLL = timedelta(seconds=60)
_LOOK_AFTER_S = UNTAKEN_S
"""A history that stays still for so long is looked at: it may lack a worker."""
_LOOK_SOON_S = 2.0
"""The same at the beginning, and while a worker is known to be away."""
_SERVER_MAY_BE_AWAY_S = 30.0
_MORE_WITHIN_S = 0.08
"""Pause in which a step that follows at once is waited for; fast steps are read together."""
_BURST_S = 0.25
"""Longest time for which steps that follow one another at once are read together."""
_TASK_S = 0.015
"""Pause before the next call while a workflow task is on its way: most are done within it."""
_AHEAD_UNTIL = contract.ROLL_OVER_EVENTS - 20
"""Events of a run up to which a turn's end is asked for ahead; a later one may roll over, and a
question that is left with the old run costs a replay of it."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0

_TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_TASK_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
_TASK_SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
_STEP_COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
_MORE_TO_COME = frozenset({EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, _TASK_SCHEDULED})
_ENDS = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
    }
)
_ROLLED_OVER = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The watch waits for a server or worker that is away, or for code that fails."""

    error: CapuchinError
    attempt: int
    """From 1, until it is back."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The watch goes on; nothing was missed."""


@dataclass(slots=True)
class Bookmark:
    """Where the history of a conversation was last read, so that the next reader skips to there.

    Why: the server has no other way to begin than at the first event of the run.
    """

    run_id: str = ""
    token: bytes = b""


class HistoryFeed:
    """Wake-up calls from the history of a conversation's newest run, following roll-overs."""

    def __init__(self, link: Link, conversation: str, bookmark: Bookmark) -> None:
        self._link = link
        self._conversation = conversation
        self._bookmark = bookmark
        self._run_id = ""
        self._token = b""
        self._known = 0
        """Events of the run up to which nothing wakes: they were there when it was attached."""
        self._fetch: asyncio.Task[GetWorkflowExecutionHistoryResponse] | None = None
        self._forget()
        self._stumbled = False
        self._grown_at = time.monotonic()
        self.ended = False
        """Whether the conversation has ended."""
        self.busy = False
        """Whether a step was on the way when it was attached."""

    @property
    def attached(self) -> bool:
        """Whether wake-up calls come from here on."""
        return bool(self._run_id)

    @property
    def still_s(self) -> float:
        """How long the history has not grown, as far as was seen."""
        return time.monotonic() - self._grown_at

    async def attach(self) -> None:
        """Begin at the newest run as it is now; whoever reads afterwards misses nothing.

        Raises:
            ConversationNotFound, ServerUnavailable: as the names say.
        """
        description = await describe(self._link, self._conversation)
        info = description.workflow_execution_info
        self._known = info.history_length
        self._forget()
        self._grown_at = time.monotonic()
        self._run_id = info.execution.run_id
        is_marked = self._bookmark.run_id == self._run_id
        self._token = self._bookmark.token if is_marked else b""
        self.busy = bool(description.pending_activities) or description.HasField(
            "pending_workflow_task"
        )
        self.ended = info.status != WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING

    def _forget(self) -> None:
        self._changed = False
        self._changed_at = 0.0
        self._more_to_come = False
        self._task_runs = False
        self._step_result: Payloads | None = None
        """What a step gave that no completed task has taken yet."""
        self._turn_ends = False
        """Whether the task that runs ends a turn."""
        self._told_ahead = False
        """Whether the news of the task that runs was asked for before it completed."""

    async def wake(self, within_s: float, *, when_quiet: bool = False) -> bool:
        """Return True when there is news to ask for, False when there is none in time.

        False also at once when a workflow task has failed.

        A task that put more work on the way wakes a moment later, so that what follows at once
        is read together with it; with `when_quiet` it does not wake at all. One that ends a turn
        wakes while it still runs.

        Raises:
            ConversationNotFound, ServerUnavailable: as the names say.
        """
        deadline = time.monotonic() + within_s
        self._stumbled = False
        while not self.ended:
            if self._stumbled:
                return False
            if self._turn_ends or (self._changed and not self._more_to_come):
                break
            until = deadline
            if self._changed and not when_quiet:
                until = min(until, self._changed_at + _BURST_S, self._grown_at + _MORE_WITHIN_S)
            if not await self._next_page(until):
                if self._changed and not when_quiet:
                    break
                return False
        turn_ends = self._turn_ends
        self._forget()
        self._told_ahead = turn_ends
        if not self.ended and not turn_ends:
            self._fetching()
        return True

    async def aclose(self) -> None:
        """Give up the call that is held open."""
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.gather(self._fetch, return_exceptions=True)
            self._fetch = None

    async def _next_page(self, deadline: float) -> bool:
        """Read the next page; False when none came before the deadline."""
        if self._fetch is None and self._task_runs:
            await asyncio.sleep(_TASK_S)
        fetch = self._fetching()
        done, _ = await asyncio.wait({fetch}, timeout=max(deadline - time.monotonic(), 0))
        if not done:
            return False
        self._fetch = None
        try:
            answer = fetch.result()
        except RPCError as error:
            if error.status is RPCStatusCode.DEADLINE_EXCEEDED:
                return True
            if error.status not in TRANSIENT:
                self._run_id = self._bookmark.run_id = ""
            raise in_our_words(self._link, error, self._conversation) from error
        self._token = answer.next_page_token
        for event in answer.history.events:
            self._take(event)
            self._grown_at = time.monotonic()
        if self._step_result is not None:
            self._turn_ends = await self._asks_nothing(self._step_result)
            self._step_result = None
        if self._token:
            self._bookmark.run_id, self._bookmark.token = self._run_id, self._token
        return True

    async def _asks_nothing(self, result: Payloads) -> bool:
        """Whether a step's result is a model's reply that ends its turn; only ever a hint."""
        try:
            [value] = await self._link.temporal.data_converter.decode(list(result.payloads))
        except (StoredValueMissing, ValueError):
            return False
        entry = value.get("entry") if isinstance(value, Mapping) else None
        blocks = entry.get("blocks") if isinstance(entry, Mapping) else None
        return isinstance(blocks, list) and all(block.get("type") != "call" for block in blocks)

    def _fetching(self) -> asyncio.Task[GetWorkflowExecutionHistoryResponse]:
        if self._fetch is None:
            request = GetWorkflowExecutionHistoryRequest(
                namespace=self._link.namespace,
                execution=WorkflowExecution(workflow_id=self._conversation, run_id=self._run_id),
                next_page_token=self._token,
                wait_new_event=True,
                skip_archival=True,
            )
            service = self._link.temporal.workflow_service
            self._fetch = asyncio.ensure_future(
                service.get_workflow_execution_history(request, retry=False, timeout=_LONG_POLL)
            )
        return self._fetch

    def _take(self, event: HistoryEvent) -> None:
        kind = event.event_type
        if kind == _ROLLED_OVER:
            went_on = event.workflow_execution_continued_as_new_event_attributes
            self._run_id = went_on.new_execution_run_id
            self._token, self._known = b"", 0
            self._forget()
            self._changed, self._changed_at, self._more_to_come = True, time.monotonic(), True
        elif event.event_id <= self._known:
            return
        elif kind in _ENDS:
            self.ended = True
        elif kind == _TASK_COMPLETED:
            if not self._changed:
                self._changed_at = time.monotonic()
            self._changed = self._changed or not self._told_ahead
            self._more_to_come = self._task_runs = self._turn_ends = self._told_ahead = False
            self._step_result = None
        elif kind in _MORE_TO_COME:
            self._more_to_come = True
            self._task_runs = kind == _TASK_SCHEDULED
        elif kind == _STEP_COMPLETED and event.event_id < _AHEAD_UNTIL:
            self._step_result = event.activity_task_completed_event_attributes.result
        elif kind == _TASK_FAILED:
            self._stumbled = True


async def watched(
    link: Link, conversation: str, bookmark: Bookmark, since: int, new_events: NewEvents
) -> AsyncGenerator[Event | Reconnecting | Reconnected, None]:
    """Yield events from offset `since` on, once and in order, until the conversation ends."""
    feed = HistoryFeed(link, conversation, bookmark)
    outage = _Outage()
    offset, unread = since, True
    try:
        while True:
            try:
                if not feed.attached:
                    await feed.attach()
                    unread = True
                if unread:
                    ended = feed.ended
                    async for event in new_events(offset):
                        offset = max(event.offset, offset) + 1
                        yield event
                    unread = False
                    if ended:
                        return
                elif not (unread := await feed.wake(outage.look_after_s()) or feed.ended):
                    error = await why_silent(link, conversation, feed.still_s)
                    if error is not None:
                        raise error
                if outage.over():
                    yield Reconnected()
            except (ServerUnavailable, WorkerUnavailable, ConversationBlocked) as error:
                yield Reconnecting(error, outage.again())
                await outage.pause()
    finally:
        await feed.aclose()


async def settled(
    link: Link,
    conversation: str,
    bookmark: Bookmark,
    state: Callable[[], Awaitable[ConversationState]],
) -> ConversationState:
    """Return the state once nothing goes on without a person."""
    feed = HistoryFeed(link, conversation, bookmark)
    outage = _Outage()
    try:
        while True:
            try:
                if not feed.attached:
                    await feed.attach()
                if not feed.busy:
                    found = await state()
                    if found.settled:
                        return found
                feed.busy = not await feed.wake(outage.look_after_s(), when_quiet=True)
                if feed.busy:
                    error = await why_silent(link, conversation, feed.still_s)
                    if isinstance(error, ConversationBlocked):
                        return await state()
                    if error is not None:
                        raise error
                outage.over()
            except ServerUnavailable:
                outage.again()
                if outage.lasts_s > _SERVER_MAY_BE_AWAY_S:
                    raise
                await outage.pause()
    finally:
        await feed.aclose()


class _Outage:
    """Counts the attempts of one outage and spaces them."""

    def __init__(self) -> None:
        self._attempt = 0
        self._began = 0.0
        self._is_new = True

    def look_after_s(self) -> float:
        """How long a still history is believed to be in order."""
        soon, self._is_new = self._is_new or self._attempt > 0, False
        return _LOOK_SOON_S if soon else _LOOK_AFTER_S

    @property
    def lasts_s(self) -> float:
        """How long the outage lasts, from its first failed attempt."""
        return time.monotonic() - self._began if self._attempt else 0.0

    def again(self) -> int:
        """Count one more failed attempt."""
        if not self._attempt:
            self._began = time.monotonic()
        self._attempt += 1
        return self._attempt

    def over(self) -> bool:
        """Whether an outage ends with this success."""
        was_out = self._attempt > 0
        self._attempt = 0
        return was_out

    async def pause(self) -> None:
        """Wait before the next attempt: longer each time, never longer than a second or so."""
        pause_s = min(_FIRST_PAUSE_S * 2 ** (self._attempt - 1), _LONGEST_PAUSE_S)
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
