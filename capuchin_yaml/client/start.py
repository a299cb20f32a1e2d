"""Starting a conversation: its first message goes with the start, in one step on the server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
)
from temporalio.client import WithStartWorkflowOperation
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from capuchin_yaml.client.diagnosis import UNTAKEN_S, no_worker, workers
from capuchin_yaml.client.ids import is_address, new_conversation_id, short_id
from capuchin_yaml.client.link import READ_TIMEOUT, Link, read
from capuchin_yaml.client.requests import (
    checked_message,
    checked_values,
    deliver,
    envelope,
    insist,
    sealed,
)
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import CapuchinError, NotSent, RequestRefused, WorkerUnavailable
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line

MEMO_STARTED = "CapuchinStarted"
"""When the first run was started, UTC, ISO 8601; only the client writes and reads it."""
TITLE_CHARACTERS = 60
TASK_TIMEOUT = timedelta(seconds=5)
_DRAWS = 5
_LOOK_FOR_WORKER_S = 0.5


class _IdTaken(Exception):
    """Another conversation has the id that was drawn."""


async def start_conversation(
    link: Link,
    agent: str,
    text: str | None,
    *,
    by: str,
    variables: Mapping[str, JsonValue],
    injected: Mapping[str, JsonValue],
    message_id: str | None,
) -> str:
    """Start a conversation under a fresh id, with its first message if there is one; return the id.

    Raises:
        As `Capuchin.start`.
    """
    if not is_address(agent) or "." in agent:
        raise RequestRefused(f"{agent!r} is not the name of an agent")
    if text is not None:
        checked_message(text)
    variables = checked_values("the variables", variables)
    injected = checked_values("the injected values", injected)
    await _worker_is_there(link)
    for _ in range(_DRAWS):
        conversation = new_conversation_id(link.project, agent)
        start = contract.StartConversation(
            **envelope(link, conversation, "s", by),
            agent=agent,
            project=link.project,
            variables=variables,
            injected=injected,
        )
        message = None
        if text is not None:
            message = contract.SendMessage(
                **envelope(link, conversation, "m", by, message_id), text=text
            )
        with contextlib.suppress(_IdTaken):
            await _start(link, start, message)
            return conversation
    raise RequestRefused(f"{_DRAWS} fresh ids in a row were taken; try again")


async def _worker_is_there(link: Link) -> None:
    """Wait a little for a worker, so that nothing is left half started when there is none.

    Raises:
        WorkerUnavailable: none came.
        ServerUnavailable: the server does not answer.
    """
    deadline = time.monotonic() + UNTAKEN_S
    while not await read(link, lambda: workers(link)):
        if time.monotonic() >= deadline:
            raise no_worker(link)
        await asyncio.sleep(_LOOK_FOR_WORKER_S)


async def _start(
    link: Link, start: contract.StartConversation, message: contract.SendMessage | None
) -> None:
    if message is None:
        await insist(link, start, lambda timeout: _start_silently(link, start, timeout))
        return
    try:
        answer = await insist(
            link, message, lambda timeout: _start_with(link, start, message, timeout)
        )
    except RequestRefused:
        # Why: the server keeps the started conversation when the update in it is rejected.
        await _withdraw(link, start)
        raise
    except (WorkerUnavailable, NotSent) as error:
        raise type(error)(
            f"{error}; it was the first message of conversation"
            f" {short_id(link.project, start.conversation)!r}, which may have been started"
        ) from error
    sealed(answer)


async def _start_silently(
    link: Link, start: contract.StartConversation, timeout: timedelta
) -> None:
    try:
        await link.temporal.start_workflow(
            contract.WORKFLOW,
            start,
            id=start.conversation,
            task_queue=link.queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            task_timeout=TASK_TIMEOUT,
            memo=_memo(start, ""),
            search_attributes=search_attributes(start),
            rpc_timeout=timeout,
        )
    except WorkflowAlreadyStartedError:
        await _is_ours(link, start)


async def _start_with(
    link: Link,
    start: contract.StartConversation,
    message: contract.SendMessage,
    timeout: timedelta,
) -> Any:
    operation: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
        contract.WORKFLOW,
        start,
        id=start.conversation,
        task_queue=link.queue,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        task_timeout=TASK_TIMEOUT,
        memo=_memo(start, message.text),
        search_attributes=search_attributes(start),
    )
    try:
        return await link.temporal.execute_update_with_start_workflow(
            contract.SEND_MESSAGE,
            message,
            start_workflow_operation=operation,
            id=message.id,
            rpc_timeout=timeout,
        )
    except WorkflowAlreadyStartedError:
        await _is_ours(link, start)
        return await deliver(link, contract.SEND_MESSAGE, message)
    finally:
        # Why: asyncio complains of a future whose exception nobody has looked at.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(0.1):
                await operation.workflow_handle()


async def _is_ours(link: Link, start: contract.StartConversation) -> None:
    """Tell our own start, whose answer was lost, from another conversation under the same id.

    Raises:
        _IdTaken: it is another conversation.
    """
    request = GetWorkflowExecutionHistoryRequest(
        namespace=link.namespace,
        execution=WorkflowExecution(workflow_id=start.conversation),
        maximum_page_size=1,
    )
    service = link.temporal.workflow_service
    answer = await read(
        link,
        lambda: service.get_workflow_execution_history(request, retry=False, timeout=READ_TIMEOUT),
        start.conversation,
    )
    found = await started_with(link, answer)
    if found is None or found.get("id") != start.id:
        raise _IdTaken


async def started_with(
    link: Link, first_page: GetWorkflowExecutionHistoryResponse
) -> Mapping[str, Any] | None:
    """Return the request that a run was started with; None when the seal is not ours."""
    started = first_page.history.events[0].workflow_execution_started_event_attributes
    for value in await link.temporal.data_converter.decode(started.input.payloads):
        return value if isinstance(value, Mapping) else None
    return None


async def _withdraw(link: Link, start: contract.StartConversation) -> None:
    close = contract.Close(
        **envelope(link, start.conversation, "x", start.by),
        reason="its first message was refused",
    )
    with contextlib.suppress(CapuchinError, RPCError):
        await deliver(link, contract.CLOSE, close)


def _memo(start: contract.StartConversation, text: str) -> dict[str, str]:
    return {
        contract.MEMO_TITLE: one_line(text, TITLE_CHARACTERS),
        MEMO_STARTED: start.sent_at,
    }


def search_attributes(start: contract.StartConversation) -> TypedSearchAttributes:
    """What lists find the conversation by, from its first moment."""
    values = {
        contract.SA_PROJECT: start.project,
        contract.SA_AGENT: start.agent,
        contract.SA_STATUS: contract.STATUS_OPEN,
    }
    return TypedSearchAttributes(
        [
            SearchAttributePair(SearchAttributeKey.for_keyword(name), value)
            for name, value in values.items()
        ]
    )
