"""What the server alone can tell of a conversation: whether it works, waits, or cannot go on.

None of it needs a worker, so it also answers why one does not answer.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    EventType,
    PendingActivityState,
    PendingWorkflowTaskState,
    TaskQueueType,
    TimeoutType,
    WorkflowExecutionStatus,
    WorkflowTaskFailedCause,
)
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo, WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.service import RPCError

from capuchin_yaml.client.ids import short_id
from capuchin_yaml.client.link import READ_TIMEOUT, Link, in_our_words, read
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import (
    CapuchinError,
    ConversationBlocked,
    ServerUnavailable,
    WorkerUnavailable,
)
from capuchin_yaml.terminal_text import one_line

T = TypeVar("T")

SEEN_S = 75.0
"""A worker asks for work about every minute; one that did within this counts as there."""
UNTAKEN_S = 10.0
"""Work that no worker has taken for so long means that none is there, whoever asked before."""
_BUSY_S = 60.0
"""Longest time for which a worker that goes on asking for work is believed to come to this too."""
ROLLS_OVER_S = 0.02
"""How long to wait before the newest run is asked for again; by then there is a newer one."""
ROLL_OVER_TRIES = 100
"""After so many nothing came after the run that rolled over: what came after it was deleted."""
_QUICK = timedelta(seconds=2)
_NEWEST_EVENTS = 12
_TAKEN_IN_VAIN = 3
"""Attempt from which a task that only times out counts as failing; a killed worker costs one."""

# Why: these say that a task was given up for the server's or an operator's own reasons.
_NOT_THE_CODE = frozenset(
    {
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FAILOVER_CLOSE_COMMAND,
    }
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker that asked for work."""

    identity: str
    ago_s: float


@dataclass(frozen=True, slots=True)
class Failing:
    """A workflow task that fails instead of completing."""

    attempt: int
    failure: str
    since: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One conversation as the server sees it."""

    info: WorkflowExecutionInfo
    open: bool
    thinking: bool
    """Whether a step runs or is about to."""
    paused: bool
    """Whether its turn is held back because the agent is paused."""
    untaken: bool
    """Whether work waits that no worker has taken."""
    failing: Failing | None
    last_event_at: str
    """UTC, ISO 8601."""
    newest: tuple[HistoryEvent, ...]
    """Newest first."""


async def workers(link: Link) -> tuple[Seen, ...]:
    """Return the workers that the server remembers of the project, also some that have ended.

    Raises:
        RPCError: the server did not answer.
    """
    answer = await link.temporal.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=link.namespace,
            task_queue=TaskQueue(name=link.queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        ),
        retry=False,
        timeout=_QUICK,
    )
    now = time.time()
    return tuple(
        Seen(p.identity, max(now - p.last_access_time.ToNanoseconds() / 1e9, 0.0))
        for p in answer.pollers
    )


async def probe(link: Link, conversation: str, known: Probe | None = None) -> Probe:
    """Ask the server how a conversation stands; no worker is needed.

    What is `known` from before is not fetched again when the history has not grown.

    Raises:
        ConversationNotFound: there is none.
        ServerUnavailable: the server does not answer.
    """
    if known is None:
        description, newest = await asyncio.gather(
            describe(link, conversation), _newest_events(link, conversation)
        )
        return probed(description, newest)
    description = await describe(link, conversation)
    info = description.workflow_execution_info
    is_same_run = info.execution.run_id == known.info.execution.run_id
    if is_same_run and known.newest and known.newest[0].event_id == info.history_length:
        return probed(description, known.newest)
    return probed(description, await _newest_events(link, conversation))


async def describe(
    link: Link, conversation: str, run_id: str = ""
) -> DescribeWorkflowExecutionResponse:
    """Return the server's own description of a conversation's newest (or the given) run.

    Raises:
        ConversationNotFound: there is none.
        ServerUnavailable: the server does not answer.
    """
    request = DescribeWorkflowExecutionRequest(
        namespace=link.namespace,
        execution=WorkflowExecution(workflow_id=conversation, run_id=run_id),
    )
    service = link.temporal.workflow_service
    for attempt in count(1):
        found = await read(
            link,
            lambda: service.describe_workflow_execution(request, retry=False, timeout=READ_TIMEOUT),
            conversation,
        )
        is_passing = not run_id and rolled_over(found.workflow_execution_info.status)
        if not is_passing or attempt == ROLL_OVER_TRIES:
            break
        await asyncio.sleep(ROLLS_OVER_S)
    return found


def rolled_over(status: int) -> bool:
    """Whether a run has ended because the conversation went on in a new one.

    Why: the server picks the newest run first and looks at it after, so that whoever asks about
    a conversation while it rolls over may be told of the run before. That is no end.
    """
    return status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW


def probed(
    description: DescribeWorkflowExecutionResponse, newest: tuple[HistoryEvent, ...]
) -> Probe:
    """Judge a description together with the newest events, newest first."""
    info = description.workflow_execution_info
    task = description.pending_workflow_task
    has_task = description.HasField("pending_workflow_task")
    is_open = info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    scheduled = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    activities = description.pending_activities
    return Probe(
        info=info,
        open=is_open,
        thinking=is_open and (has_task or (bool(activities) and not is_held(activities))),
        paused=is_open and not has_task and is_held(activities),
        untaken=is_open
        and (
            (
                has_task
                and task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
            )
            or any(a.state == scheduled and a.attempt <= 1 for a in activities)
        ),
        failing=_failing(task.attempt if has_task else 0, newest) if is_open else None,
        last_event_at=iso(newest[0].event_time) if newest else iso(info.start_time),
        newest=newest,
    )


def is_held(activities: Sequence[PendingActivityInfo]) -> bool:
    """Whether all that goes on is the waiting of a paused agent."""
    names = {a.activity_type.name for a in activities}
    return names == {contract.UNTIL_RESUMED}


def held_up(step: PendingActivityInfo) -> str | None:
    """Return why a step waits for its next attempt, and until when; None when it does not."""
    waits = step.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    if not waits or step.attempt <= 1 or not step.HasField("last_failure"):
        return None
    again = step.next_attempt_schedule_time.seconds or step.scheduled_time.seconds
    at = f"{datetime.fromtimestamp(again, UTC):%H:%M:%S} UTC"
    of = f" of {step.maximum_attempts}" if step.maximum_attempts else ""
    return f"tried again at {at} (attempt {step.attempt}{of}): {step.last_failure.message}"


async def why_silent(link: Link, conversation: str, silent_s: float) -> CapuchinError | None:
    """Return why nothing answers since `silent_s`; None when it may only be slow.

    A server that is away is no answer here: whoever waits decides how long that may take.
    """
    try:
        seen = await workers(link)
        if not seen:
            return no_worker(link)
        found = await probe(link, conversation)
    except (RPCError, ServerUnavailable):
        return None
    except CapuchinError as error:
        return error
    if found.failing is not None:
        return blocked(link, conversation, found.failing)
    if found.untaken and silent_s >= UNTAKEN_S and not _is_busy(seen, silent_s):
        return no_worker(link, seen)
    return None


def _is_busy(seen: tuple[Seen, ...], silent_s: float) -> bool:
    """Whether a worker lives and only has much to do: it has asked for work since this waits."""
    return silent_s < _BUSY_S and any(s.ago_s < silent_s - UNTAKEN_S / 2 for s in seen)


async def attended(
    link: Link,
    conversation: str,
    work: Coroutine[Any, Any, T],
    *,
    look_every_s: float = 5.0,
    must_answer: bool = False,
) -> T:
    """Return the result of `work`, or raise why it stays silent.

    With `must_answer`, a server that is away and 10 s without an answer end the wait too.

    Raises:
        WorkerUnavailable: no worker takes the work.
        ConversationBlocked: its code fails.
        ServerUnavailable: only with `must_answer`.
    """
    task = asyncio.ensure_future(work)
    began = time.monotonic()
    try:
        while not (await asyncio.wait({task}, timeout=look_every_s))[0]:
            silent_s = time.monotonic() - began
            error = await why_silent(link, conversation, silent_s)
            if error is None and must_answer:
                error = await _out_of_patience(link, silent_s)
            if error is not None and not task.done():
                raise error
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            # Why: the SDK turns the cancellation of an update into an error of its own.
            await asyncio.gather(task, return_exceptions=True)
        elif not task.cancelled():
            task.exception()  # asyncio complains of an error that nobody has looked at


async def _out_of_patience(link: Link, silent_s: float) -> CapuchinError | None:
    try:
        seen = await workers(link)
    except RPCError as error:
        return in_our_words(link, error)
    late = silent_s >= UNTAKEN_S and not _is_busy(seen, silent_s)
    return no_worker(link, seen) if late else None


def no_worker(link: Link, seen: tuple[Seen, ...] = ()) -> WorkerUnavailable:
    """Return the error that names the missing worker and the command to start it."""
    command = "start one with `capuchin up`, or `capuchin worker PATH` beside a server of your own"
    if not seen:
        return WorkerUnavailable(f"no worker serves project {link.project!r}; {command}")
    ago_s = min(s.ago_s for s in seen)
    return WorkerUnavailable(
        f"no worker of project {link.project!r} takes work (one was last seen {ago_s:.0f} s ago);"
        f" {command}"
    )


def blocked(link: Link, conversation: str, failing: Failing) -> ConversationBlocked:
    """Return the error for a conversation whose own code fails."""
    goes_on = "its worker runs the release that it was made with"
    if os.strerror(errno.ENOSPC) in failing.failure:
        goes_on = "there is room on its worker's disk"
    return ConversationBlocked(
        f"conversation {short_id(link.project, conversation)!r} is blocked: {failing.failure};"
        f" it goes on by itself once {goes_on}"
    )


def iso(stamp: Timestamp) -> str:
    """Return a server's time as UTC, ISO 8601; empty when it is unset."""
    if not stamp.seconds:
        return ""
    return datetime.fromtimestamp(stamp.ToNanoseconds() / 1e9, UTC).isoformat()


async def _newest_events(link: Link, conversation: str) -> tuple[HistoryEvent, ...]:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=link.namespace,
        execution=WorkflowExecution(workflow_id=conversation),
        maximum_page_size=_NEWEST_EVENTS,
    )
    service = link.temporal.workflow_service
    answer = await read(
        link,
        lambda: service.get_workflow_execution_history_reverse(
            request, retry=False, timeout=READ_TIMEOUT
        ),
        conversation,
    )
    return tuple(answer.history.events)


def _failing(attempt: int, newest: tuple[HistoryEvent, ...]) -> Failing | None:
    for event in newest:
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                return None
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                failed = event.workflow_task_failed_event_attributes
                if failed.cause in _NOT_THE_CODE:
                    return None
                return Failing(attempt, _words(failed.failure), iso(event.event_time))
            case EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT if attempt >= _TAKEN_IN_VAIN:
                timed_out = event.workflow_task_timed_out_event_attributes
                if timed_out.timeout_type != TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE:
                    return None  # no worker had taken it in time
                words = f"its workflow task was taken {attempt - 1} times and never completed"
                return Failing(attempt, words, iso(event.event_time))
    return None


def _words(failure: Failure) -> str:
    kind = failure.application_failure_info.type
    message = failure.message or "its workflow task fails"
    return one_line(f"{kind}: {message}" if kind else message, 300)
