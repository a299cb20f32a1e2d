"""Conversations as lists show them, true also while no worker runs."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from capuchin_yaml.client.answers import BlockedRow, ConversationRow, inbox_rows
from capuchin_yaml.client.diagnosis import Probe, iso, probe
from capuchin_yaml.client.ids import agent_of
from capuchin_yaml.client.link import Link
from capuchin_yaml.client.start import MEMO_STARTED
from capuchin_yaml.client.visibility import (
    ABSENT,
    PROBLEMS,
    found_page,
    is_open,
    keyword,
    memo_value,
    of_project,
    quoted,
    reports_problems,
)
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import ConversationNotFound
from capuchin_yaml.events import ConversationStatus
from capuchin_yaml.terminal_text import one_line

AT_ONCE = 16
"""Conversations that are looked at together."""
_MOST_REMEMBERED = 2000
_MOST_PROBED = 200
_IDS_A_QUERY = 50
_CLOSED_FROM_OUTSIDE = frozenset(
    {
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED,
    }
)


class Looks:
    """What the last look at each conversation told, so that a list that is drawn often is cheap."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, Probe]] = {}

    async def at(
        self, link: Link, conversations: Iterable[str], max_age_s: float
    ) -> list[Probe | None]:
        """Return how each stands, None for one that is gone; a quiet one may be told from memory.

        Raises:
            ServerUnavailable: the server does not answer.
        """
        room = asyncio.Semaphore(AT_ONCE)

        async def look(conversation: str) -> Probe | None:
            looked_at, known = self._last.pop(conversation, (0.0, None))
            # Why random: conversations that were seen together are then not seen together for
            # ever, so a list costs about the same each time.
            is_fresh = time.monotonic() - looked_at < max_age_s * random.uniform(0.5, 1.0)
            if is_fresh and known is not None and not known.thinking and known.failing is None:
                self._last[conversation] = looked_at, known
                return known
            async with room:
                try:
                    seen = await probe(link, conversation, known)
                except ConversationNotFound:
                    return None
            self._last[conversation] = time.monotonic(), seen
            return seen

        found = list(await asyncio.gather(*(look(c) for c in conversations)))
        while len(self._last) > _MOST_REMEMBERED:
            del self._last[next(iter(self._last))]
        return found


async def conversation_rows(
    link: Link,
    looks: Looks,
    *,
    limit: int,
    max_age_s: float,
    agent: str | None = None,
    status: ConversationStatus | None = None,
) -> list[ConversationRow]:
    """Return the newest conversations, the last touched first.

    Raises:
        ServerUnavailable: the server does not answer.
        ValueError: no agent can have this name.
    """
    conditions = [] if agent is None else [f"{contract.SA_AGENT} = {quoted(agent)}"]
    if status is not None:
        is_final = status in ("closed", "failed")
        conditions.append(f"ExecutionStatus {'!=' if is_final else '='} 'Running'")
    if status == "waiting":
        conditions.append(f"{contract.SA_STATUS} = {quoted(contract.STATUS_WAITING)}")
    query = of_project(link, *conditions)
    rows: list[ConversationRow] = []
    token = b""
    listed: set[str] = set()
    while len(rows) < limit:
        found, token = await found_page(link, query, page_rows=max(limit, 20), token=token)
        found = await _newest_runs(link, found, listed)
        page = await _rows(link, found, looks, max_age_s)
        rows += [row for row in page if status is None or row.status == status]
        if not token:
            break
    rows = rows[:limit]
    return sorted(rows, key=lambda row: row.updated_at, reverse=True)


async def blocked_rows(link: Link) -> list[BlockedRow]:
    """Return the open conversations whose code fails: what the server reports, and the newest ones.

    The server reports only after some time, so the newest conversations are looked at one by one.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    running = "ExecutionStatus = 'Running'"
    reported, _ = await found_page(link, of_project(link, running, f"{PROBLEMS} IS NOT NULL"))
    newest, _ = await found_page(link, of_project(link, running), page_rows=_MOST_PROBED)
    ids = dict.fromkeys(info.execution.workflow_id for info in [*reported, *newest])
    rows = []
    for conversation, found in zip(ids, await Looks().at(link, ids, 0.0), strict=True):
        if found is not None and found.failing is not None:
            agent = agent_of(link.project, conversation)
            failing = found.failing
            rows.append(
                BlockedRow(conversation, agent, failing.attempt, failing.failure, failing.since)
            )
    return rows


async def _newest_runs(
    link: Link, found: list[WorkflowExecutionInfo], listed: set[str]
) -> list[WorkflowExecutionInfo]:
    """Leave out the closed runs of conversations that were opened again; fills `listed`."""
    newest: dict[str, WorkflowExecutionInfo] = {}
    for info in found:
        conversation = info.execution.workflow_id
        known = newest.get(conversation)
        if known is None or info.start_time.ToNanoseconds() > known.start_time.ToNanoseconds():
            newest[conversation] = info
    closed = [c for c, info in newest.items() if c not in listed and not is_open(info)]
    for some in (closed[i : i + _IDS_A_QUERY] for i in range(0, len(closed), _IDS_A_QUERY)):
        query = f"WorkflowId IN ({', '.join(quoted(c) for c in some)})"
        running, _ = await found_page(link, f"{query} AND ExecutionStatus = 'Running'")
        for info in running:
            newest.pop(info.execution.workflow_id, None)
    kept = [info for c, info in newest.items() if c not in listed]
    listed |= newest.keys()
    return kept


async def _rows(
    link: Link, found: list[WorkflowExecutionInfo], looks: Looks, max_age_s: float
) -> list[ConversationRow]:
    looked_at = [info.execution.workflow_id for info in found if _needs_a_look(info)]
    probes = dict(zip(looked_at, await looks.at(link, looked_at, max_age_s), strict=True))
    rows = []
    for info in found:
        seen = probes.get(info.execution.workflow_id)
        if seen is None and _needs_a_look(info):
            continue  # deleted in between
        rows.append(await _row(link, info, seen))
    return rows


def _needs_a_look(info: WorkflowExecutionInfo) -> bool:
    if not is_open(info):
        return False
    return keyword(info, contract.SA_STATUS) != contract.STATUS_WAITING or reports_problems(info)


async def _row(link: Link, info: WorkflowExecutionInfo, seen: Probe | None) -> ConversationRow:
    conversation = info.execution.workflow_id
    agent = agent_of(link.project, conversation)
    title = await memo_value(link, info, contract.MEMO_TITLE)
    started = await memo_value(link, info, MEMO_STARTED)
    waiting, touched, inbox_verified = await _waiting(link, info, agent)
    status, detail = _status(info, seen)
    if status in ("closed", "failed"):
        waiting = 0
    return ConversationRow(
        id=conversation,
        agent=agent,
        status=status,
        waiting=waiting,
        title=one_line(title, 200) if isinstance(title, str) else "",
        updated_at=(
            iso(info.close_time)
            if info.HasField("close_time")
            else seen.last_event_at
            if seen is not None
            else touched or iso(info.start_time)
        ),
        created_at=started if isinstance(started, str) else iso(info.start_time),
        detail=detail,
        verified=isinstance(title, str) and inbox_verified,
    )


async def _waiting(link: Link, info: WorkflowExecutionInfo, agent: str) -> tuple[int, str, bool]:
    """Count what waits, say when the last of it was asked, and whether the memo can be trusted."""
    memo = await memo_value(link, info, contract.MEMO_INBOX)
    if memo is ABSENT:
        return 0, "", True
    try:
        rows = inbox_rows(info.execution.workflow_id, agent, memo)
    except ValueError:
        return 0, "", False
    more = rows[0].more if rows else 0
    return len(rows) + more, max((row.requested_at for row in rows), default=""), True


def _status(info: WorkflowExecutionInfo, seen: Probe | None) -> tuple[ConversationStatus, str]:
    if not is_open(info):
        if info.status in _CLOSED_FROM_OUTSIDE:
            return "closed", ""
        completed = info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED
        if completed and keyword(info, contract.SA_STATUS) != contract.STATUS_FAILED:
            return "closed", ""
        return "failed", ""
    if seen is not None and seen.failing is not None:
        return "blocked", seen.failing.failure
    if keyword(info, contract.SA_STATUS) == contract.STATUS_WAITING:
        return "waiting", ""
    if seen is not None and not seen.open:
        return "closed", ""
    if seen is not None and seen.paused:
        return "waiting", "its agent is paused"
    return ("thinking" if seen is not None and seen.thinking else "idle"), ""
