"""What a call would do, in the words of its tool, before a person is asked about it.

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
from capuchin_yaml.engine.state import Call, Conversation
from capuchin_yaml.spec import JsonValue

PREVIEW_S = 12.0
"""Longest run of a preview; its worker gives it up a little earlier."""


async def show(call: Call, fields: dict[str, Any]) -> None:
    """Set the call's preview: what its tool says, or why it could not; never fails."""
    shown: Any
    try:
        shown = await workflow.execute_activity(
            contract.PREVIEW_TOOL,
            contract.PreviewTool(**fields),
            result_type=dict,
            start_to_close_timeout=timedelta(seconds=PREVIEW_S),
            schedule_to_close_timeout=timedelta(seconds=3 * PREVIEW_S),
            retry_policy=RetryPolicy(maximum_attempts=2),
            summary=f"preview of {call.tool} {call.call_id}",
        )
    except asyncio.CancelledError:
        return
    except ActivityError as error:
        shown = {"status": "error", "text": str(error.cause or error)[:500]}
    if not isinstance(shown, dict) or not isinstance(shown.get("text"), str):
        shown = {"status": "error", "text": "the worker's answer did not carry the seal"}
    match shown["status"]:
        case "ok":
            call.preview, call.preview_hash = shown["text"], str(shown["hash"])
        case "error":
            call.preview = f"(no preview could be made: {shown['text']})"


def request_fields(
    conversation: Conversation,
    start: contract.StartConversation,
    call: Call,
    tool: dict[str, JsonValue],
) -> dict[str, Any]:
    """What every request to a worker says of a call."""
    assert conversation.definition is not None
    info = workflow.info()
    return {
        "conversation": conversation.id,
        "run_id": info.run_id,
        "first_run_id": info.first_execution_run_id,
        "call_id": call.call_id,
        "n": call.n,
        "tool": call.tool,
        "arguments": call.arguments,
        "digest": call.digest,
        "definition_hash": conversation.definition.hash,
        "config": tool["config"],
        "injected": dict(start.injected),
    }
