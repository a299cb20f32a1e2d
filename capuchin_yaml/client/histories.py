"""The raw histories of conversations, every run that the server still keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from temporalio.client import WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.diagnosis import describe
from capuchin_yaml.client.link import Link, in_our_words
from capuchin_yaml.client.visibility import found, of_project, quoted


async def histories(
    link: Link, conversations: Sequence[str] | None
) -> AsyncIterator[WorkflowHistory]:
    """Yield every run of these conversations, or of all open ones of the project.

    Raises:
        ConversationNotFound: one of them is not there.
        ServerUnavailable: the server does not answer.
    """
    if conversations is None:
        open_ones = of_project(link, "ExecutionStatus = 'Running'")
        conversations = [info.execution.workflow_id async for info in found(link, open_ones)]
    for conversation in conversations:
        newest = (await describe(link, conversation)).workflow_execution_info.execution.run_id
        query = f"WorkflowId = {quoted(conversation)}"
        runs = [info.execution.run_id async for info in found(link, query)]
        for run_id in reversed(list(dict.fromkeys([newest, *runs]))):
            history = await _history(link, conversation, run_id)
            if history is not None:
                yield history


async def _history(link: Link, conversation: str, run_id: str) -> WorkflowHistory | None:
    handle = link.temporal.get_workflow_handle(conversation, run_id=run_id)
    try:
        return await handle.fetch_history()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None  # deleted in between
        raise in_our_words(link, error, conversation) from error
