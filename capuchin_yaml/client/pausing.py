"""Pausing agents: a mark on the server that every worker reads before it begins a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.answers import Pause, pause_from_json
from capuchin_yaml.client.ids import is_address
from capuchin_yaml.client.link import READ_TIMEOUT, Link, in_our_words, read
from capuchin_yaml.client.requests import checked_text
from capuchin_yaml.client.visibility import found, memo_value, quoted
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.pauses import BELIEVED_S, MARK, mark_id, mark_queue, read_mark
from capuchin_yaml.errors import RequestRefused, ServerUnavailable

_NAME_BYTES = 256
_NEVER_RUNS = timedelta(days=3650)
"""Why a delay: the server then never even offers the mark to a worker."""


async def pause_agent(link: Link, agent: str, *, by: str, reason: str) -> Pause:
    """Set the mark, and wait until no worker believes otherwise.

    Raises:
        As `Capuchin.pause`.
    """
    _check_agent(agent)
    checked_text("the name of who asks", by, _NAME_BYTES)
    checked_text("the reason", reason, contract.MAX_REASON_BYTES, may_be_blank=True)
    at = datetime.now(UTC).isoformat()
    memo = {"project": link.project, "agent": agent, "by": by, "at": at, "reason": reason}
    try:
        await link.temporal.start_workflow(
            MARK,
            id=mark_id(link.project, agent),
            task_queue=mark_queue(link.project),
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            start_delay=_NEVER_RUNS,
            memo={MARK: memo},
            rpc_timeout=READ_TIMEOUT,
        )
        pause = Pause(agent, by, at, reason)
    except WorkflowAlreadyStartedError:
        pause = await _standing(link, agent)
    except RPCError as error:
        raise in_our_words(link, error) from error
    await asyncio.sleep(BELIEVED_S)
    return pause


async def resume_agent(link: Link, agent: str) -> Pause | None:
    """Take the mark away.

    Raises:
        As `Capuchin.resume`.
    """
    _check_agent(agent)
    mark = await read(link, lambda: read_mark(link.temporal, link.project, agent))
    handle = link.temporal.get_workflow_handle(mark_id(link.project, agent))
    try:
        await handle.terminate("resumed", rpc_timeout=READ_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise in_our_words(link, error) from error
    return pause_from_json(agent, mark) or Pause(agent, "", "")


async def paused_agents(link: Link) -> tuple[Pause, ...]:
    """Read all marks from the server's lists.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    prefix = mark_id(link.project, "")
    query = f"WorkflowId STARTS_WITH {quoted(prefix)} AND ExecutionStatus = 'Running'"
    pauses = []
    async for info in found(link, query):
        agent = info.execution.workflow_id.removeprefix(prefix)
        memo = await memo_value(link, info, MARK)
        is_ours = isinstance(memo, Mapping) and memo.get("agent") == agent
        pause = pause_from_json(agent, memo) if is_ours else None
        if pause is not None:
            pauses.append(pause)
    return tuple(sorted(pauses, key=lambda p: p.agent))


async def _standing(link: Link, agent: str) -> Pause:
    mark = await read(link, lambda: read_mark(link.temporal, link.project, agent))
    pause = pause_from_json(agent, mark)
    if pause is None:
        raise ServerUnavailable(
            f"a mark of somebody without this project's key is in the place of {agent!r}'s pause;"
            f" take it away with `capuchin pause {agent} --resume`, then pause again"
        )
    return pause


def _check_agent(agent: str) -> None:
    if not is_address(agent) or "." in agent:
        raise RequestRefused(f"{agent!r} is not the name of an agent")
