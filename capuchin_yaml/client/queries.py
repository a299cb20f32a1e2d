"""Questions to a conversation's workflow: sealed, paged, over all of its runs, never hanging."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from temporalio.client import WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.diagnosis import (
    ROLL_OVER_TRIES,
    ROLLS_OVER_S,
    UNTAKEN_S,
    Failing,
    attended,
    blocked,
    no_worker,
    rolled_over,
    why_silent,
    workers,
)
from capuchin_yaml.client.link import Link, in_our_words
from capuchin_yaml.client.requests import sealed
from capuchin_yaml.engine.contract import Ask
from capuchin_yaml.engine.storage import StoredValueMissing
from capuchin_yaml.errors import (
    CapuchinError,
    ConversationNotFound,
    RequestRefused,
    UnsafeState,
)
from capuchin_yaml.terminal_text import one_line

_log = logging.getLogger(__name__)

_QUERY_TIMEOUT = timedelta(seconds=15)
_LOOK_EVERY_S = 2.5
_SDK_RULE = "[TMPRL"
"""Begins what the SDK says of code that cannot replay a history."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries of one list, in order and without gaps."""

    first: int
    """Offset of the first entry."""
    entries: tuple[Mapping[str, Any], ...]


async def ask(
    link: Link,
    conversation: str,
    query: str,
    *,
    start: int = 0,
    run_id: str | None = None,
    only_open: bool = False,
) -> Mapping[str, Any]:
    """Return a workflow's answer to one query.

    Raises:
        WorkflowQueryRejectedError: with `only_open`, the conversation has ended.
        ConversationNotFound: there is no such conversation, or no such run any more.
        ConversationBlocked: its code fails.
        WorkerUnavailable: no worker answers.
        ServerUnavailable: the server does not.
        RequestRefused: the workflow refused the question.
        UnsafeState: the answer is not sealed with this project's key, or in a store that is not
            here.
    """
    handle = link.temporal.get_workflow_handle(conversation, run_id=run_id)

    def question() -> Coroutine[Any, Any, Any]:
        return handle.query(
            query,
            Ask(conversation=conversation, start=start),
            reject_condition=QueryRejectCondition.NOT_OPEN if only_open else None,
            rpc_timeout=_QUERY_TIMEOUT,
        )

    try:
        for attempt in count(1):
            try:
                answer = await attended(
                    link, conversation, question(), look_every_s=_LOOK_EVERY_S, must_answer=True
                )
                break
            except WorkflowQueryRejectedError as rejected:
                is_passing = not run_id and rolled_over(int(rejected.status or 0))
                if not is_passing or attempt == ROLL_OVER_TRIES:
                    raise
                await asyncio.sleep(ROLLS_OVER_S)
    except WorkflowQueryFailedError as error:
        if error.message.startswith(_SDK_RULE):
            # Why: no task fails as long as nobody writes; the code fails on whoever reads.
            failing = Failing(0, one_line(error.message, 300), "")
            raise blocked(link, conversation, failing) from error
        raise RequestRefused(error.message) from error
    except StoredValueMissing as error:
        raise UnsafeState(str(error)) from error
    except RPCError as error:
        raise await _why_unanswered(link, conversation, error) from error
    return sealed(answer)


async def pages(
    link: Link, conversation: str, query: str, key: str, since: int
) -> AsyncIterator[Page]:
    """Yield a conversation's list from offset `since` to its end, each entry once.

    Entries of earlier runs are read from those runs; what the namespace no longer keeps is
    left out with a warning in the log.

    Raises:
        As `ask`.
    """
    offset, run_id, end = since, None, None
    while True:
        try:
            answer = await ask(link, conversation, query, start=offset, run_id=run_id)
        except ConversationNotFound:
            if run_id is None or end is None:
                raise
            _log.warning("run %s of %s is no longer kept", run_id, conversation)
            offset, run_id, end = end, None, None
            continue
        first, total = int(answer["first"]), int(answer["total"])
        if run_id is None and offset < first:
            run_id, end = _run_that_holds(answer["earlier"], offset, first)
            continue
        entries = tuple(answer[key])
        if end is not None:
            entries = entries[: max(end - offset, 0)]
        if entries:
            yield Page(offset, entries)
        offset += len(entries)
        if end is not None:
            # Why: an earlier run ends where the next begins, and a run may have been cut short.
            if offset >= end or not entries:
                offset, run_id, end = max(offset, end), None, None
        elif offset >= total or not entries:
            return


def _run_that_holds(
    earlier: list[Mapping[str, Any]], offset: int, current_first: int
) -> tuple[str, int]:
    """Return the run that holds `offset`, and the offset at which the next run begins."""
    runs = sorted(earlier, key=lambda run: int(run["first"]))
    ends = [*(int(run["first"]) for run in runs[1:]), current_first]
    for run, end in zip(runs, ends, strict=True):
        if offset < end:
            return str(run["run_id"]), end
    raise RequestRefused(f"no run of the conversation holds entry {offset}")


async def _why_unanswered(link: Link, conversation: str, error: RPCError) -> CapuchinError:
    match error.status:
        case RPCStatusCode.NOT_FOUND:
            return in_our_words(link, error, conversation)
        case (
            RPCStatusCode.FAILED_PRECONDITION
            | RPCStatusCode.DEADLINE_EXCEEDED
            | RPCStatusCode.CANCELLED
        ):
            found = await why_silent(link, conversation, UNTAKEN_S)
            if found is not None:
                return found
            try:
                return no_worker(link, await workers(link))
            except RPCError as second:
                return in_our_words(link, second)
        case _:
            return in_our_words(link, error, conversation)
