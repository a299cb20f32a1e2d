"""One call handed to a worker: entered, waited for, and what comes of it after all.

Runs inside the workflow.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.preview import request_fields
from capuchin_yaml.engine.state import Call, Conversation
from capuchin_yaml.spec import JsonValue

REPEATABLE_ATTEMPTS = 4
REPEATABLE_HEARTBEAT_S = 5.0
ONE_ATTEMPT_HEARTBEAT_S = 60.0
"""Longest silence of a worker before its call is given up; a call with one attempt outlives a
server that is away, so that nobody has to be asked."""
CANCEL_GRACE_S = 3.0
"""Time a cancelled one-attempt call has to say how it ended, before its turn ends without it."""


def is_repeatable(tool: dict[str, JsonValue]) -> bool:
    """Whether Temporal may run a call of this tool again after a failure."""
    return bool(tool["idempotent"] or tool["effect"] == "read")


async def enter(
    conversation: Conversation,
    start: contract.StartConversation,
    call: Call,
    tool: dict[str, JsonValue],
) -> Any:
    """Run a call on a worker, with exactly the arguments that history holds."""
    repeatable = is_repeatable(tool)
    return await workflow.execute_activity(
        contract.CALL_TOOL,
        contract.CallTool(
            **request_fields(conversation, start, call, tool),
            timeout_s=tool["timeout_s"],
            one_attempt=not repeatable,
            entry=call.entries,
            preview_hash=call.preview_hash,
        ),
        result_type=dict,
        # Why: the wrapper ends the call at timeout_s itself; this is for a worker that cannot.
        start_to_close_timeout=timedelta(seconds=tool["timeout_s"] + 15),
        heartbeat_timeout=timedelta(
            seconds=REPEATABLE_HEARTBEAT_S if repeatable else ONE_ATTEMPT_HEARTBEAT_S
        ),
        # Why: what a call says of its end must not be lost to a cancel.
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=1),
            maximum_interval=timedelta(seconds=20),
            maximum_attempts=REPEATABLE_ATTEMPTS if repeatable else 1,
        ),
        summary=f"{call.tool} {call.call_id}",
    )


async def end_of(activity: asyncio.Task[Any]) -> None:
    """Give a cancelled call a little time to say how it ended."""
    if activity.done():
        return
    try:
        await workflow.wait_condition(activity.done, timeout=timedelta(seconds=CANCEL_GRACE_S))
    except TimeoutError:
        return


def extras(outcome: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], Any]:
    """Artifacts and receipt of an outcome."""
    return outcome.get("artifacts") or {}, outcome.get("receipt")


def why(error: ActivityError) -> str:
    """Why an activity ended without an outcome, in words for a person."""
    cause = error.cause
    message = getattr(cause, "message", None) or str(cause or error)
    return str(message)[:500]
