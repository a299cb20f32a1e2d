"""Deleting one conversation's data: every run on the server, and the stored values only it had.

A value in the store is named by its digest, so two conversations may refer to the same one. Which
digests a conversation refers to is read from its histories; a value goes only when no other
history of the project names it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.answers import Deleted
from capuchin_yaml.client.diagnosis import describe
from capuchin_yaml.client.ids import short_id
from capuchin_yaml.client.link import READ_TIMEOUT, Link, in_our_words
from capuchin_yaml.client.visibility import found, is_open, quoted
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.sealing import SealingCodec
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.errors import RequestRefused, ServerUnavailable

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_GONE_S = 90.0
_AT_ONCE = 8


async def delete_conversation(link: Link, conversation: str) -> Deleted:
    """Delete the runs and then what only they referred to.

    Raises:
        As `Conversation.delete`.
    """
    info = (await describe(link, conversation)).workflow_execution_info
    if is_open(info):
        name = short_id(link.project, conversation)
        raise RequestRefused(f"conversation {name!r} is open; close it first")
    began = time.time()
    runs = [info.execution.run_id]
    query = f"WorkflowId = {quoted(conversation)}"
    runs += [r.execution.run_id async for r in found(link, query) if not is_open(r)]
    runs = list(dict.fromkeys(runs))
    store = _store(link)
    mine: set[str] = set()
    if store is not None:
        for run_id in runs:
            mine |= await _digests(link, store, conversation, run_id)
    for run_id in runs:
        await _ask_to_delete(link, conversation, run_id)
    for run_id in runs:
        await _until_gone(link, conversation, run_id)
    if store is None or not mine:
        return Deleted(len(runs), 0)
    others = await _of_others(link, store, conversation, mine)
    # Why the time: whoever keeps the same value again meanwhile touches it, and needs it.
    dropped = [d for d in sorted(mine - others) if store.drop(d, unless_touched_since=began)]
    return Deleted(len(runs), len(dropped), len(mine) - len(dropped))


def _store(link: Link) -> FolderStore | None:
    """The project's folder of large values; a store in a cloud is swept by its own rules."""
    codec = link.temporal.data_converter.payload_codec
    store = codec.store if isinstance(codec, SealingCodec) else None
    return store if isinstance(store, FolderStore) else None


async def _ask_to_delete(link: Link, conversation: str, run_id: str) -> None:
    execution = WorkflowExecution(workflow_id=conversation, run_id=run_id)
    service = link.temporal.workflow_service
    try:
        await service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(namespace=link.namespace, workflow_execution=execution),
            retry=False,
            timeout=READ_TIMEOUT,
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return
        raise in_our_words(link, error) from error


async def _until_gone(link: Link, conversation: str, run_id: str) -> None:
    """Wait for the server, which deletes a run only once its own queues are through with it."""
    execution = WorkflowExecution(workflow_id=conversation, run_id=run_id)
    service = link.temporal.workflow_service
    deadline = time.monotonic() + _GONE_S
    while time.monotonic() < deadline:
        try:
            await service.describe_workflow_execution(
                DescribeWorkflowExecutionRequest(namespace=link.namespace, execution=execution),
                retry=False,
                timeout=READ_TIMEOUT,
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return
            raise in_our_words(link, error) from error
        await asyncio.sleep(0.05)
    raise ServerUnavailable(
        f"the server has not deleted run {run_id} of {short_id(link.project, conversation)!r}"
        f" within {_GONE_S:.0f} s; it may still do so, and deleting again is safe"
    )


async def _of_others(
    link: Link, store: FolderStore, conversation: str, wanted: set[str]
) -> set[str]:
    """Return which of these digests some other history of the project refers to."""
    query = f"{contract.SA_PROJECT} = {quoted(link.project)}"
    room = asyncio.Semaphore(_AT_ONCE)

    async def look(workflow_id: str, run_id: str) -> set[str]:
        async with room:
            return wanted & await _digests(link, store, workflow_id, run_id)

    runs = [
        (info.execution.workflow_id, info.execution.run_id)
        async for info in found(link, query)
        if info.execution.workflow_id != conversation
    ]
    seen: set[str] = set()
    for some in await asyncio.gather(*(look(*run) for run in runs)):
        seen |= some
    return seen


async def _digests(link: Link, store: FolderStore, conversation: str, run_id: str) -> set[str]:
    """Return the digests of stored values that a run's history names, directly or inside one."""
    held: set[str] = set()
    async for page in _history(link, conversation, run_id):
        new = _held(store, page)
        while new := new - held:
            held |= new
            contents = [await asyncio.to_thread(store.get, digest) for digest in new]
            new = set().union(*(_held(store, content) for content in contents))
    return held


def _held(store: FolderStore, text: bytes) -> set[str]:
    named = {match.decode() for match in _DIGEST.findall(text)}
    return {digest for digest in named if store.has(digest)}


async def _history(link: Link, conversation: str, run_id: str) -> AsyncIterator[bytes]:
    token = b""
    service = link.temporal.workflow_service
    while True:
        request = GetWorkflowExecutionHistoryRequest(
            namespace=link.namespace,
            execution=WorkflowExecution(workflow_id=conversation, run_id=run_id),
            next_page_token=token,
        )
        try:
            answer = await service.get_workflow_execution_history(
                request, retry=False, timeout=READ_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return  # deleted in between, so it refers to nothing
            raise in_our_words(link, error) from error
        yield answer.history.SerializeToString()
        token = answer.next_page_token
        if not token:
            return
