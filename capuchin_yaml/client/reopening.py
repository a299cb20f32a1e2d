"""Opening a closed conversation again: a new chain of runs under the same id, linked to the old."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from capuchin_yaml.client.diagnosis import describe
from capuchin_yaml.client.ids import short_id
from capuchin_yaml.client.link import READ_TIMEOUT, Link, read
from capuchin_yaml.client.queries import ask
from capuchin_yaml.client.requests import envelope, insist
from capuchin_yaml.client.start import MEMO_STARTED, TASK_TIMEOUT, search_attributes, started_with
from capuchin_yaml.client.visibility import keyword, memo_value
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import RequestRefused, UnsafeState

_SOON_S = 0.05


async def reopen_conversation(link: Link, conversation: str, *, by: str) -> None:
    """Start the new chain, and return once it has taken up the old one's state.

    Raises:
        As `Conversation.reopen`.
    """
    description = await describe(link, conversation)
    info = description.workflow_execution_info
    closed_run = await _closed_run(link, conversation, info)
    before = await _start_of(link, conversation, closed_run)
    start = contract.StartConversation(
        **envelope(link, conversation, "r", by),
        agent=str(before["agent"]),
        project=link.project,
        variables=before["variables"],
        injected=before["injected"],
        reopens=closed_run,
    )
    memo = {
        contract.MEMO_TITLE: await _text(link, info, contract.MEMO_TITLE),
        MEMO_STARTED: await _text(link, info, MEMO_STARTED),
    }
    await insist(link, start, lambda timeout: _start(link, start, memo, timeout))
    while True:
        state = await ask(link, conversation, contract.STATE)
        if state["status"] == "failed":
            raise RequestRefused(str(state["detail"]))
        if state["status"] != "thinking":
            return
        await asyncio.sleep(_SOON_S)


async def _closed_run(link: Link, conversation: str, info: WorkflowExecutionInfo) -> str:
    name = short_id(link.project, conversation)
    match info.status:
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING:
            raise RequestRefused(f"conversation {name!r} is open; just send to it")
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED if (
            keyword(info, contract.SA_STATUS) != contract.STATUS_FAILED
        ):
            return info.execution.run_id
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED if reopened := (
            await _start_of(link, conversation, info.execution.run_id)
        ).get("reopens"):
            return str(reopened)  # opening it failed; what it would have opened is still whole
        case _:
            raise RequestRefused(
                f"conversation {name!r} did not end by being closed, so there is nothing whole to"
                " go on from; its history stays readable with `capuchin show`"
            )


async def _start_of(link: Link, conversation: str, run_id: str) -> Mapping[str, Any]:
    """Return what the closed run was started with.

    Raises:
        UnsafeState: it does not carry this project's seal.
    """
    request = GetWorkflowExecutionHistoryRequest(
        namespace=link.namespace,
        execution=WorkflowExecution(workflow_id=conversation, run_id=run_id),
        maximum_page_size=1,
    )
    service = link.temporal.workflow_service
    answer = await read(
        link,
        lambda: service.get_workflow_execution_history(request, retry=False, timeout=READ_TIMEOUT),
        conversation,
    )
    value = await started_with(link, answer)
    if value is None:
        raise UnsafeState(
            f"the start of {short_id(link.project, conversation)!r} does not carry this project's"
            " seal, so it is not opened again"
        )
    return value


async def _start(
    link: Link,
    start: contract.StartConversation,
    memo: Mapping[str, str],
    timeout: timedelta,
) -> None:
    try:
        await link.temporal.start_workflow(
            contract.WORKFLOW,
            start,
            id=start.conversation,
            task_queue=link.queue,
            # Why: only here may an id be used again, and only while no run of it is open.
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            task_timeout=TASK_TIMEOUT,
            memo=memo,
            search_attributes=search_attributes(start),
            rpc_timeout=timeout,
        )
    except WorkflowAlreadyStartedError:
        info = (await describe(link, start.conversation)).workflow_execution_info
        found = await _start_of(link, start.conversation, info.execution.run_id)
        if found.get("id") != start.id:
            raise RequestRefused(
                f"somebody else opened {short_id(link.project, start.conversation)!r} just now;"
                " just send to it"
            ) from None


async def _text(link: Link, info: WorkflowExecutionInfo, name: str) -> str:
    value = await memo_value(link, info, name)
    return value if isinstance(value, str) else ""
