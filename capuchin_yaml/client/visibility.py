"""Lists that the server keeps of all conversations; they lag a moment and need no worker."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest
from temporalio.converter import decode_typed_search_attributes

from capuchin_yaml.client.link import READ_TIMEOUT, Link, read
from capuchin_yaml.engine import contract

PAGE_ROWS = 200
PROBLEMS = "TemporalReportedProblems"
"""The server's own search attribute of workflows whose tasks keep failing."""

_PLAIN = re.compile(r"[A-Za-z0-9._:+-]*")


class _Absent:
    """No such memo."""


ABSENT = _Absent()
"""What `memo_value` returns when there is no memo of that name."""


def quoted(value: str) -> str:
    """Return `value` as a literal of a visibility query.

    Raises:
        ValueError: it holds anything but letters, digits and `._:+-`. Visibility stores do not
            agree on how to escape the rest.
    """
    if not _PLAIN.fullmatch(value):
        raise ValueError(f"{value!r} cannot be part of a visibility query")
    return f"'{value}'"


def of_project(link: Link, *conditions: str) -> str:
    """Return a query for the project's conversations, each once, under more conditions."""
    return " AND ".join(
        (
            f"{contract.SA_PROJECT} = {quoted(link.project)}",
            # Why: every roll-over leaves the run before it behind under the same id.
            "ExecutionStatus != 'ContinuedAsNew'",
            *conditions,
        )
    )


async def found(
    link: Link, query: str, *, page_rows: int = PAGE_ROWS
) -> AsyncIterator[WorkflowExecutionInfo]:
    """Yield what a visibility query finds, in the server's order, newest start first as a rule.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    token = b""
    while True:
        rows, token = await found_page(link, query, page_rows=page_rows, token=token)
        for row in rows:
            yield row
        if not token:
            return


async def found_page(
    link: Link, query: str, *, page_rows: int = PAGE_ROWS, token: bytes = b""
) -> tuple[list[WorkflowExecutionInfo], bytes]:
    """Return one page of what a query finds, and the token of the next; empty when it is the last.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    request = ListWorkflowExecutionsRequest(
        namespace=link.namespace, page_size=page_rows, next_page_token=token, query=query
    )
    service = link.temporal.workflow_service
    answer = await read(
        link,
        lambda: service.list_workflow_executions(request, retry=False, timeout=READ_TIMEOUT),
    )
    return list(answer.executions), answer.next_page_token


async def memo_value(link: Link, info: WorkflowExecutionInfo, name: str) -> Any:
    """Return a memo's value: `ABSENT` when there is none, `Unsealed` when the seal is not ours."""
    if name not in info.memo.fields:
        return ABSENT
    [value] = await link.temporal.data_converter.decode([info.memo.fields[name]])
    return value


def keyword(info: WorkflowExecutionInfo, name: str) -> str:
    """Return a keyword search attribute; empty when it is unset. Never sealed, so only a hint."""
    for pair in decode_typed_search_attributes(info.search_attributes):
        if pair.key.name == name and isinstance(pair.value, str):
            return pair.value
    return ""


def reports_problems(info: WorkflowExecutionInfo) -> bool:
    """Whether the server itself says that the workflow's tasks keep failing."""
    return PROBLEMS in info.search_attributes.indexed_fields


def is_open(info: WorkflowExecutionInfo) -> bool:
    """Whether the conversation goes on."""
    return info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
