"""Everything that waits for a person, over all conversations; works while no worker runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from capuchin_yaml.client.answers import InboxRow, inbox_rows, unverified_row
from capuchin_yaml.client.ids import agent_of
from capuchin_yaml.client.link import Link
from capuchin_yaml.client.visibility import PAGE_ROWS, found_page, memo_value, of_project, quoted
from capuchin_yaml.engine import contract


async def waiting_rows(link: Link, limit: int) -> list[InboxRow]:
    """Return what waits, the nearest deadline first, then the longest wait.

    One call is enough for 200 conversations; for more, the server is asked by windows of the
    deadline, because it cannot sort.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    conditions = (
        f"{contract.SA_STATUS} = {quoted(contract.STATUS_WAITING)}",
        "ExecutionStatus = 'Running'",
    )
    found, token = await found_page(link, of_project(link, *conditions))
    if token:
        found = await _by_windows(link, conditions, limit)
    rows = [row for info in found for row in await _rows(link, info)]
    return sorted(rows, key=_urgency)[:limit]


async def _by_windows(
    link: Link, conditions: tuple[str, ...], limit: int
) -> list[WorkflowExecutionInfo]:
    found: dict[str, WorkflowExecutionInfo] = {}
    for window in _windows(datetime.now(UTC)):
        token = b""
        while len(found) < limit:
            page, token = await found_page(
                link, of_project(link, *conditions, window), page_rows=PAGE_ROWS, token=token
            )
            found.update((info.execution.workflow_id, info) for info in page)
            if not token:
                break
    return list(found.values())


def _windows(now: datetime) -> tuple[str, ...]:
    """Overdue, within the hour, within the day, later, never."""
    due = contract.SA_DUE
    hour, day = now + timedelta(hours=1), now + timedelta(days=1)
    at, in_an_hour, in_a_day = (
        quoted(t.isoformat(timespec="milliseconds")) for t in (now, hour, day)
    )
    return (
        f"{due} < {at}",
        f"{due} >= {at} AND {due} < {in_an_hour}",
        f"{due} >= {in_an_hour} AND {due} < {in_a_day}",
        f"{due} >= {in_a_day}",
        f"{due} IS NULL",
    )


async def _rows(link: Link, info: WorkflowExecutionInfo) -> tuple[InboxRow, ...]:
    conversation = info.execution.workflow_id
    agent = agent_of(link.project, conversation)
    memo = await memo_value(link, info, contract.MEMO_INBOX)
    try:
        return inbox_rows(conversation, agent, memo)
    except ValueError:
        return (unverified_row(conversation, agent),)


def _urgency(row: InboxRow) -> tuple[str, str, str]:
    return row.due or "~", row.requested_at or "~", row.id
