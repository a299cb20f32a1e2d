"""Requests to a conversation: made once with an id and a time, repeated until they are answered.

An answered request is durable. The same id never acts twice, so a request whose fate is not
known may be sent again, by this process or the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, TypeVar

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.client import RPCTimeoutOrCancelledError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.diagnosis import attended, blocked, describe, probe
from capuchin_yaml.client.ids import agent_of, new_request_id, short_id
from capuchin_yaml.client.link import TRANSIENT, Link, in_our_words
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import (
    NotSent,
    RequestRefused,
    ServerUnavailable,
    UnsafeState,
    WorkerUnavailable,
)
from capuchin_yaml.spec import JsonValue, canonical_json
from capuchin_yaml.terminal_text import one_line

T = TypeVar("T")

PATIENCE_S = 30.0
"""How long a request is repeated before it counts as not sent."""
_ATTEMPT_S = 10.0
_FIRST_PAUSE_S = 0.03
_LONGEST_PAUSE_S = 1.0
_ID_BYTES = 128
_NAME_BYTES = 256
_ACCEPTED_THEN_CLOSED = "AcceptedUpdateCompletedWorkflow"


class Envelope(TypedDict):
    """The fields that all requests share."""

    conversation: str
    id: str
    by: str
    client: str
    sent_at: str


def envelope(
    link: Link, conversation: str, kind: str, by: str, request_id: str | None = None
) -> Envelope:
    """Return the common fields of a new request, stamped with a time and an id.

    Raises:
        RequestRefused: the id or the name cannot be used.
    """
    if request_id is not None:
        checked_text("the message id", request_id, _ID_BYTES)
    return {
        "conversation": conversation,
        "id": request_id if request_id is not None else new_request_id(kind),
        "by": checked_text("the name of who asks", by, _NAME_BYTES),
        "client": link.client,
        "sent_at": datetime.now(UTC).isoformat(),
    }


def checked_text(what: str, text: str, max_bytes: int, *, may_be_blank: bool = False) -> str:
    """Return `text` when a conversation can keep it.

    Raises:
        RequestRefused: it is blank, too long, or no valid Unicode.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise RequestRefused(
            f"{what} holds half a character (a lone surrogate) at position {error.start};"
            " send valid Unicode text"
        ) from error
    if size > max_bytes:
        raise RequestRefused(f"{what} has {size:,} bytes; the most is {max_bytes:,}, so shorten it")
    if not may_be_blank and not text.strip():
        raise RequestRefused(f"{what} is blank; write something")
    return text


def checked_message(text: str) -> str:
    """Return a user message when it can be sent.

    Raises:
        RequestRefused: it is blank, too long, or no valid Unicode.
    """
    return checked_text("the message", text, contract.MAX_MESSAGE_BYTES)


def checked_values(what: str, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return start values when a conversation can keep them.

    Raises:
        RequestRefused: they are no JSON, or too large.
    """
    try:
        size = len(canonical_json(dict(values)).encode())
    except (TypeError, ValueError) as error:
        raise RequestRefused(f"{what} cannot be written as JSON: {error}") from error
    if size > contract.MAX_START_BYTES:
        raise RequestRefused(
            f"{what} have {size:,} bytes; the most is {contract.MAX_START_BYTES:,}"
        )
    return dict(values)


async def deliver(link: Link, update: str, request: contract.Request) -> Mapping[str, Any]:
    """Send a request to an open conversation and return the answer.

    Raises:
        RequestRefused: the conversation refused it, or is closed.
        ConversationNotFound: there is no such conversation.
        ConversationBlocked: its code fails.
        WorkerUnavailable: no worker takes it.
        NotSent: nobody confirmed it within `PATIENCE_S`.
    """
    handle = link.temporal.get_workflow_handle(request.conversation)

    def attempt(timeout: timedelta) -> Awaitable[Any]:
        return handle.execute_update(update, request, id=request.id, rpc_timeout=timeout)

    return sealed(await insist(link, request, attempt))


async def insist(
    link: Link, request: contract.Request, attempt: Callable[[timedelta], Awaitable[Any]]
) -> Any:
    """Repeat `attempt` until it is answered; it must carry the request's id each time.

    Raises:
        As `deliver`, and whatever else `attempt` raises.
    """
    try:
        return await attended(link, request.conversation, _repeat(link, request, attempt))
    except WorkerUnavailable as error:
        # Why: the server keeps what it was sent for a while, and nothing can take it back.
        raise WorkerUnavailable(
            f"{error}; it was not confirmed, and may still be taken when one starts"
            f" (request {request.id!r} never acts twice)"
        ) from error


def sealed(answer: Any) -> Mapping[str, Any]:
    """Return an answer that carries the project's seal.

    Raises:
        UnsafeState: it does not.
    """
    if not isinstance(answer, Mapping):
        raise UnsafeState(
            "the conversation's answer does not carry this project's seal: the key here is not"
            " its worker's; point CAPUCHIN_KEY_FILE or CAPUCHIN_HOME at the worker's"
        )
    return answer


async def _repeat(
    link: Link, request: contract.Request, attempt: Callable[[timedelta], Awaitable[Any]]
) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    pause_s = _FIRST_PAUSE_S
    while True:
        left_s = deadline - time.monotonic()
        try:
            return await attempt(timedelta(seconds=max(min(_ATTEMPT_S, left_s), 0.1)))
        except RPCTimeoutOrCancelledError as error:
            # Why: the SDK turns our own cancellation into this error as well.
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None
            why = "no answer in time"
        except WorkflowUpdateFailedError as error:
            why = await _refusal(link, request.conversation, error)
        except RPCError as error:
            why = await _failure(link, request.conversation, error)
        if time.monotonic() + pause_s >= deadline:
            raise NotSent(
                f"not sent: nobody confirmed it within {PATIENCE_S:.0f} s ({why});"
                f" send it again, request {request.id!r} never acts twice"
            )
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


async def _refusal(link: Link, conversation: str, error: WorkflowUpdateFailedError) -> str:
    """Return why a rejected request should be repeated, or raise that it should not."""
    cause = error.cause
    kind = cause.type if isinstance(cause, ApplicationError) else None
    if kind == contract.ROLLING_OVER:
        return "the conversation is moving to a new run"
    if kind == _ACCEPTED_THEN_CLOSED:
        return await _open_again(link, conversation)
    said = cause.message if isinstance(cause, ApplicationError) else str(cause)
    raise RequestRefused(said or "the conversation refused the request") from error


async def _failure(link: Link, conversation: str, error: RPCError) -> str:
    """Return why a failed call should be repeated, or raise that it should not."""
    match error.status:
        case RPCStatusCode.NOT_FOUND:
            return await _open_again(link, conversation)
        case RPCStatusCode.FAILED_PRECONDITION:
            found = await _or_nothing(probe(link, conversation))
            if found is not None and found.failing is not None:
                raise blocked(link, conversation, found.failing) from error
            return one_line(error.message, 200)
        case status if status in TRANSIENT:
            return one_line(error.message, 200)
        case _:
            raise in_our_words(link, error, conversation) from error


async def _open_again(link: Link, conversation: str) -> str:
    """Tell a conversation that went on in a new run from one that has ended."""
    description = await _or_nothing(describe(link, conversation))
    if description is None:
        return "the server does not answer"
    status = description.workflow_execution_info.status
    if status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING:
        return "the conversation has moved to a new run"
    has_failed = status in (
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
    )
    raise _ended(link, conversation, "has failed" if has_failed else "is closed")


def _ended(link: Link, conversation: str, how: str) -> RequestRefused:
    agent, name = agent_of(link.project, conversation), short_id(link.project, conversation)
    again = f"`capuchin reopen {name}` opens it again, " if how == "is closed" else ""
    return RequestRefused(
        f"conversation {name!r} {how}; {again}`capuchin chat {agent}` starts a new one"
    )


async def _or_nothing(found: Awaitable[T]) -> T | None:
    try:
        return await found
    except ServerUnavailable:
        return None
