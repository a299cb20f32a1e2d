"""Reading a whole conversation: the sealed answers that a client gets, and their decoding."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest
from temporalio.converter import DataConverter

from capuchin_yaml.client.answers import state_from_json
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.engine import contract
from capuchin_yaml.events import decode
from tests.bench.contenders import Run
from tests.bench.report import Figure
from tests.bench.talks import OurTalk

DECODE_MS_AT_MOST = 100
EVENTS = 4_000
ROUNDS = 9


async def full_state(run: Run) -> list[Figure]:
    """Decoding the state and all events of a conversation that has over 4,000 of them."""
    place = await run.ours()
    async with await OurTalk.start(place.fleet) as talk:
        number = 0
        while (await talk.conversation.state()).events < EVENTS:
            for _ in range(10):
                number += 1
                await talk.turn(f"many {number}")
    began = time.perf_counter()
    total = len(await talk.conversation.events())
    read_s = time.perf_counter() - began
    state, pages = await answers(place.fleet, talk.conversation)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        count = await decoded(place.fleet.temporal.data_converter, state, pages)
        times.append(time.perf_counter() - began)
        assert count == total
    size_bytes = sum(payload.ByteSize() for payload in (state, *pages))
    return [
        Figure("decoding a full state", statistics.median(times) * 1000, "ms", DECODE_MS_AT_MOST),
        Figure("events in it", total, ""),
        Figure("bytes of it", size_bytes, "bytes"),
        Figure("reading all of them through the client", read_s * 1000, "ms"),
    ]


async def answers(
    fleet: Capuchin, conversation: Conversation
) -> tuple[Payload, tuple[Payload, ...]]:
    """Return the answer of `state`, and those of `events` over all runs, as they cross the wire."""
    state = await _query(fleet, conversation.id, "", contract.STATE, 0)
    newest = await _query(fleet, conversation.id, "", contract.EVENTS, 0)
    [head] = await fleet.temporal.data_converter.decode([newest])
    pages = []
    for run in head["earlier"]:
        pages += await _pages(fleet, conversation.id, run["run_id"], run["first"])
    return state, (*pages, *await _pages(fleet, conversation.id, "", head["first"]))


async def decoded(converter: DataConverter, state: Payload, pages: Sequence[Payload]) -> int:
    """Decode all of it into the client's own types; return the number of events."""
    [state_value, *page_values] = await asyncio.gather(
        *(converter.decode([payload]) for payload in (state, *pages))
    )
    assert state_from_json(state_value[0]).events
    events = [decode(value) for [page] in page_values for value in page["events"]]
    return len(events)


async def _pages(fleet: Capuchin, conversation: str, run_id: str, start: int) -> list[Payload]:
    pages = []
    while True:
        answer = await _query(fleet, conversation, run_id, contract.EVENTS, start)
        [page] = await fleet.temporal.data_converter.decode([answer])
        pages.append(answer)
        start = page["next"]
        if start >= page["total"]:
            return pages


async def _query(fleet: Capuchin, conversation: str, run_id: str, name: str, start: int) -> Payload:
    question = await fleet.temporal.data_converter.encode(
        [contract.Ask(conversation=conversation, start=start)]
    )
    request = QueryWorkflowRequest(
        namespace=fleet.temporal.namespace,
        execution=WorkflowExecution(workflow_id=conversation, run_id=run_id),
        query=WorkflowQuery(query_type=name),
    )
    request.query.query_args.payloads.extend(question)
    answer = await fleet.temporal.workflow_service.query_workflow(request)
    [payload] = answer.query_result.payloads
    return payload
