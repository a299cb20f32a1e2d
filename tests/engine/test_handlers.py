"""Every door of the workflow, with everything that does not belong into it.

The doors are read from the workflow itself, so one that is new is tried without being named here.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.sealing import SealingCodec
from capuchin_yaml.engine.workflow import AgentWorkflow
from tests.engine.house import House, Talk, now
from tests.engine.test_sealing import gated, json_payload, raw_update

DEFINITION = workflow._Definition.must_from_class(AgentWorkflow)
UPDATES = sorted(str(name) for name in DEFINITION.updates)
QUERIES = sorted(str(name) for name in DEFINITION.queries)
MEGABYTE = 1024 * 1024
UNSEALED = Payload(metadata={"encoding": b"json/plain"}, data=b'{"conversation": "x"}')


def codec(house: House) -> SealingCodec:
    """The codec of somebody who has the project's key."""
    held = house.client.data_converter.payload_codec
    assert isinstance(held, SealingCodec)
    return held


async def sealed(house: House, value: Any) -> Payload:
    """A value with the project's seal, which only tells who sent it and not whether it is right."""
    [payload] = await codec(house).encode([json_payload(value)])
    return payload


def fields_of(talk: Talk, request: type[contract.Request]) -> dict[str, Any]:
    """The fields of a request, each of a right type."""
    given = talk.fields()
    for field in dataclasses.fields(request):
        if field.name not in given and field.default is dataclasses.MISSING:
            given[field.name] = "x"
    return given


async def shapes(house: House, right: Mapping[str, Any]) -> dict[str, tuple[Payload, ...]]:
    """All that is no request, by name; `right` is one that would do, or nearly."""
    seal = codec(house).encode
    plain = {"encoding": b"json/plain"}
    [null, raw, strange, nameless, broken, latin, deep] = await seal(
        [
            Payload(metadata={"encoding": b"binary/null"}),
            Payload(metadata={"encoding": b"binary/plain"}, data=b"\xff\x00"),
            Payload(metadata={"encoding": b"\xff\xfe"}, data=b"{}"),
            Payload(data=b"{}"),
            Payload(metadata=plain, data=b'{"conversation": '),
            Payload(metadata=plain, data=b'"caf\xe9"'),
            Payload(metadata=plain, data=b"[" * 100_000),
        ]
    )
    fine = await sealed(house, right)
    wrong: dict[str, tuple[Payload, ...]] = {
        "no argument": (),
        "two arguments": (fine, fine),
        "null": (null,),
        "JSON null": (await sealed(house, None),),
        "bytes": (raw,),
        "an unknown encoding": (strange,),
        "no encoding": (nameless,),
        "broken JSON": (broken,),
        "bytes that are no UTF-8": (latin,),
        "a deep list": (deep,),
        "a string": (await sealed(house, "approve"),),
        "a number": (await sealed(house, 5),),
        "a list": (await sealed(house, [right]),),
        "an empty object": (await sealed(house, {}),),
        "1 MB of text": (await sealed(house, "x" * MEGABYTE),),
        "another conversation": (await sealed(house, {**right, "conversation": "another"}),),
        "unsealed": (json_payload(right),),
        "unsealed null": (Payload(metadata={"encoding": b"binary/null"}),),
        "unsealed 1 MB": (json_payload({**right, "conversation": "x" * MEGABYTE}),),
        "sealed with an unsealed one behind it": (fine, UNSEALED),
    }
    for name in right:
        fewer = {k: v for k, v in right.items() if k != name}
        if name != "start":  # it has a default
            wrong[f"without {name}"] = (await sealed(house, fewer),)
        odd: dict[str, Any] = {
            "null": None,
            "a list": [],
            "an object": {},
            "a number": 5,
            "1 MB": "x" * MEGABYTE,
        }
        for kind, value in odd.items():
            if not (name == "start" and kind == "a number"):
                wrong[f"{name} is {kind}"] = (await sealed(house, {**right, name: value}),)
    return wrong


async def unharmed(talk: Talk, item: Mapping[str, Any]) -> None:
    """Nothing came of it: the item waits as it was, no task failed, and it can be decided."""
    state = await talk.state()
    assert [i["id"] for i in state["items"]] == [item["id"]]
    assert state["status"] == "waiting"
    assert talk.house.effects() == []
    assert await talk.failed_tasks() == 0
    await talk.decide(item, "approve")
    await talk.idle()
    assert talk.house.effects() == ["x"]
    assert await talk.failed_tasks() == 0


def request_type(name: str) -> type[contract.Request]:
    """The dataclass that an update takes."""
    found = DEFINITION.updates[name].arg_types
    assert found is not None
    [kind] = found
    assert issubclass(kind, contract.Request)
    return kind


def test_each_door_has_a_validator_and_one_argument() -> None:
    assert len(UPDATES) >= 8
    assert [n for n in UPDATES if DEFINITION.updates[n].validator is None] == []
    for update in UPDATES:
        assert request_type(update)
    for query in QUERIES:
        assert DEFINITION.queries[query].arg_types == [contract.Ask]
    assert DEFINITION.signals == {}
    assert not any(d.dynamic_vararg for d in DEFINITION.queries.values())


@pytest.mark.parametrize("name", UPDATES)
async def test_an_update_refuses_whatever_is_no_request(house: House, name: str) -> None:
    talk, item = await gated(house)
    right = fields_of(talk, request_type(name))

    taken = [
        shape
        for shape, payloads in (await shapes(house, right)).items()
        if not await raw_update(house.client, talk, name, *payloads)
    ]

    assert taken == []
    await unharmed(talk, item)


@pytest.mark.parametrize("name", QUERIES)
async def test_a_query_refuses_whatever_is_no_question(house: House, name: str) -> None:
    talk, item = await gated(house)
    right = {"conversation": talk.id, "start": 0}

    answered = [
        shape
        for shape, payloads in (await shapes(house, right)).items()
        if await raw_query(house.client, talk, name, *payloads)
    ]

    assert answered == []
    await unharmed(talk, item)


async def test_a_field_that_nobody_knows_is_ignored_by_each_door(house: House) -> None:
    """A newer client may send one; what it means to an older worker is nothing."""
    talk, _ = await gated(house)
    right = {**talk.fields(), "text": "hello", "colour": "green"}

    refusal = await raw_update(
        house.client, talk, contract.SEND_MESSAGE, await sealed(house, right)
    )
    question = {"conversation": talk.id, "start": 0, "colour": "green"}
    answered = await raw_query(house.client, talk, contract.STATE, await sealed(house, question))

    assert (refusal, answered) == ("", True)
    assert (await talk.state())["queued"][0]["text"] == "hello"


async def test_signals_and_queries_that_do_not_exist_harm_nothing(house: House) -> None:
    talk, item = await gated(house)

    for argument in (None, "x", {"a": 1}):
        await talk.handle.signal("approve", argument)
    assert not await raw_query(house.client, talk, "secrets", await sealed(house, {}))
    assert await raw_update(house.client, talk, "approve", await sealed(house, {}))

    await unharmed(talk, item)


async def test_a_start_of_any_other_shape_fails_and_leaves_nothing_running(house: House) -> None:
    await gated(house)
    id = f"{house.project}.odd"
    right = {
        "conversation": id,
        **{"id": "1", "by": "eve", "client": "x", "sent_at": now()},
        **{"agent": "gated", "project": house.project},
    }
    wrong = await shapes(house, right)
    for name in ("variables", "injected"):
        values: list[Any] = [None, [], 5, "x", {"a": "x" * MEGABYTE}, {"a": float("nan")}]
        for value in values:
            wrong[f"{name} {str(value)[:20]}"] = (await sealed(house, {**right, name: value}),)
    ended = {}
    for shape, payloads in wrong.items():
        handle = await raw_start(house, id, payloads)
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 20)
        cause = failed.value.cause
        assert isinstance(cause, ApplicationError)
        history = await handle.fetch_history()
        failures = [
            e for e in history.events if e.HasField("workflow_task_failed_event_attributes")
        ]
        ended[shape] = (cause.type, bool(cause.message), len(failures))

    assert set(ended.values()) == {(contract.REFUSED, True, 0)}, ended


async def raw_start(
    house: House, id: str, payloads: tuple[Payload, ...]
) -> WorkflowHandle[Any, Any]:
    """Start a conversation with these very payloads."""
    plain = await Client.connect(house.client.service_client.config.target_host)
    started = await plain.start_workflow(
        contract.WORKFLOW,
        args=[RawValue(payload) for payload in payloads],
        id=id,
        task_queue=contract.task_queue(house.project),
    )
    return house.client.get_workflow_handle(id, run_id=started.result_run_id)


async def raw_query(client: Client, talk: Talk, name: str, *payloads: Payload) -> bool:
    """Ask with these very payloads; returns whether there was an answer."""
    request = QueryWorkflowRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=talk.id)
    )
    request.query.query_type = name
    request.query.query_args.CopyFrom(Payloads(payloads=list(payloads)))
    try:
        answer = await client.workflow_service.query_workflow(request)
    except RPCError:
        return False
    return bool(answer.query_result.payloads)
