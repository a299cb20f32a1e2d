"""The door: what does not carry the project's seal moves nothing and breaks nothing."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.command.v1 import Command, ScheduleActivityTaskCommandAttributes
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import CommandType, UpdateWorkflowExecutionLifecycleStage
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.update.v1 import Input, Meta, Request, WaitPolicy
from temporalio.api.workflowservice.v1 import (
    PollWorkflowTaskQueueRequest,
    QueryWorkflowRequest,
    RespondWorkflowTaskCompletedRequest,
    UpdateWorkflowExecutionRequest,
)
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.server import Server
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.sealing import SEAL, SealingCodec, sealed_converter
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk, now

ALL = ApprovalSpec(policy="all")
COMPLETED = UpdateWorkflowExecutionLifecycleStage.Value(
    "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"
)


@pytest.fixture
async def stranger(dev_server: Server) -> Client:
    """A client of the same server with another key."""
    return await connect_temporal(dev_server.target, key=b"s" * 32)


async def gated(house: House) -> tuple[Talk, Any]:
    """A conversation that waits for an approval."""
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]}},
        default={"say": "done"},
    )
    house.agent("gated", model, "lab.write", approval=ALL)
    talk = await house.talk("gated", "go")
    return talk, await talk.item()


def json_payload(value: Any, **metadata: bytes) -> Payload:
    return Payload(
        metadata={"encoding": b"json/plain", **metadata}, data=json.dumps(value).encode()
    )


async def raw_update(client: Client, talk: Talk, name: str, *payloads: Payload) -> str:
    """Make an update with these very payloads; returns the refusal, or '' when it was accepted."""
    request = UpdateWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=talk.id),
        wait_policy=WaitPolicy(lifecycle_stage=COMPLETED),
        request=Request(
            meta=Meta(update_id=uuid.uuid4().hex),
            input=Input(name=name, args=Payloads(payloads=list(payloads))),
        ),
    )
    answer = await client.workflow_service.update_workflow_execution(request)
    return answer.outcome.failure.message if answer.outcome.HasField("failure") else ""


def forged_forms(talk: Talk, item: dict[str, Any]) -> dict[str, tuple[Payload, ...]]:
    """Every way to say approve without the key."""
    decide = {
        "conversation": talk.id,
        "id": uuid.uuid4().hex,
        "by": "eve",
        "client": "x",
        "sent_at": now(),
        "item": item["id"],
        "digest": item["digest"],
        "choice": "approve",
        "reason": "",
        "result": "",
    }
    plain = json_payload(decide)
    return {
        "plain": (plain,),
        "empty seal": (json_payload(decide, **{SEAL: b""}),),
        "wrong seal": (json_payload(decide, **{SEAL: b"x" * 32}),),
        "null": (Payload(metadata={"encoding": b"binary/null"}),),
        "bytes": (Payload(metadata={"encoding": b"binary/plain"}, data=b"\xff\x00"),),
        "no encoding": (Payload(data=b"{}"),),
        "unknown encoding": (Payload(metadata={"encoding": b"what/ever"}, data=b"{}"),),
        "broken json": (Payload(metadata={"encoding": b"json/plain"}, data=b"{"),),
        "marker": (Payload(metadata={"encoding": b"capuchin/unsealed"}),),
        "our reference": (
            Payload(
                metadata={"encoding": b"capuchin/stored"},
                data=json.dumps({"driver": "folder", "claim": {"sha256": "0" * 64}}).encode(),
            ),
        ),
        "the sdk's reference": (
            Payload(
                metadata={"encoding": b"json/external-storage-reference"},
                data=b'{"driver_name":"x","driver_claim":{"claim_data":{}}}',
            ),
        ),
        "the sdk's marked reference": (
            json_payload(decide, **{"__temporal_external_storage_reference": b"true"}),
        ),
        "the sdk's proto reference": (
            Payload(
                metadata={
                    "encoding": b"json/protobuf",
                    "messageType": b"temporal.api.sdk.v1.ExternalStorageReference",
                },
                data=b"{}",
            ),
        ),
        "no argument": (),
        "two arguments": (plain, plain),
    }


async def test_no_forged_decision_is_taken_and_no_task_fails(house: House) -> None:
    talk, item = await gated(house)
    client = house.client

    refusals = {
        form: await raw_update(client, talk, contract.DECIDE, *payloads)
        for form, payloads in forged_forms(talk, item).items()
    }

    assert [form for form, refusal in refusals.items() if not refusal] == []
    assert house.effects() == []
    assert [i["id"] for i in (await talk.state())["items"]] == [item["id"]]
    assert await talk.failed_tasks() == 0
    await talk.decide(item, "approve")
    await talk.idle()
    assert house.effects() == ["x"]


@pytest.mark.parametrize(
    "name",
    [
        contract.SEND_MESSAGE,
        contract.DECIDE,
        contract.CANCEL_TURN,
        contract.CLOSE,
        contract.LATE_RESULT,
    ],
)
async def test_sealed_nonsense_is_rejected_by_every_update(house: House, name: str) -> None:
    talk, _ = await gated(house)
    codec = SealingCodec(house.client.data_converter.payload_codec._key)  # type: ignore[union-attr]
    fields = talk.fields(text="x", item="x", digest="x", choice="approve", call_id="x", status="ok")
    nonsense: list[Any] = [
        None,
        5,
        "text",
        [],
        {},
        {"conversation": 5},
        {**fields, "by": "\ud800"},
        {**fields, "conversation": "another"},
        {**fields, "sent_at": "yesterday"},
        {**fields, "sent_at": "2020-01-01T00:00:00+00:00"},
        {**fields, "by": {"a": 1}},
        {**fields, "id": ""},
        {**fields, "id": "x" * 500},
        {**fields, "client": "\ud800"},
    ]
    for value in nonsense:
        [payload] = await codec.encode([json_payload(value)])
        assert await raw_update(house.client, talk, name, payload), value

    assert await talk.failed_tasks() == 0
    assert (await talk.state())["waiting"] == 1


async def test_a_message_that_is_blank_or_too_large_is_rejected(house: House) -> None:
    talk, _ = await gated(house)

    for text in ("", "  \n\t ", "x" * (contract.MAX_MESSAGE_BYTES + 1), "\ud800"):
        with pytest.raises(Exception, match=r"(?i)blank|most is|surrogate|fail"):
            await talk.send(text)

    assert await talk.failed_tasks() == 0


async def test_a_stranger_cannot_start_a_conversation(house: House, stranger: Client) -> None:
    await gated(house)
    start = contract.StartConversation(
        conversation="stolen",
        id="1",
        by="eve",
        client="x",
        sent_at=now(),
        agent="gated",
        project=house.project,
    )
    for args in ([start], [], [start, start], ["nonsense"]):
        id = f"{house.project}.stolen-{uuid.uuid4().hex[:6]}"
        handle = await stranger.start_workflow(
            contract.WORKFLOW, args=args, id=id, task_queue=contract.task_queue(house.project)
        )
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 10)
        history = await house.client.get_workflow_handle(id).fetch_history()
        assert not any(e.HasField("workflow_task_failed_event_attributes") for e in history.events)


async def test_a_recorded_start_cannot_be_played_under_another_id(
    house: House,
) -> None:
    talk, _ = await gated(house)
    history = await talk.handle.fetch_history()
    [payload] = history.events[0].workflow_execution_started_event_attributes.input.payloads
    raw = await Client.connect(house.client.service_client.config.target_host)
    from temporalio.common import RawValue

    handle = await raw.start_workflow(
        contract.WORKFLOW,
        RawValue(payload),
        id=f"{house.project}.copy",
        task_queue=contract.task_queue(house.project),
    )
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 10)


@workflow.defn(name="Thief")
class Thief:
    """Schedules our activities from a workflow of its own."""

    @workflow.run
    async def run(self, queue: str) -> list[str]:
        from datetime import timedelta

        from temporalio.common import RetryPolicy
        from temporalio.exceptions import ActivityError

        refusals = []
        for name in (contract.CALL_TOOL, contract.CALL_MODEL, contract.JUDGE):
            try:
                await workflow.execute_activity(
                    name,
                    {"conversation": workflow.info().workflow_id, "tool": "lab.write"},
                    task_queue=queue,
                    start_to_close_timeout=timedelta(seconds=10),
                    retry_policy=RetryPolicy(maximum_attempts=1),
                )
                refusals.append("")
            except ActivityError as error:
                refusals.append(str(getattr(error.cause, "message", error.cause)))
        return refusals


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_foreign_workflow_cannot_have_our_activities_run(
    house: House, stranger: Client, sealed: bool
) -> None:
    await gated(house)
    client = house.client if sealed else stranger
    queue = f"thief-{uuid.uuid4().hex}"
    async with Worker(
        client, task_queue=queue, workflows=[Thief], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        refusals = await client.execute_workflow(
            "Thief",
            contract.task_queue(house.project),
            id=f"thief-{uuid.uuid4().hex}",
            task_queue=queue,
            result_type=list[str],
        )

    assert all(refusals)
    assert house.effects() == []


async def test_a_question_without_the_seal_gets_no_answer(house: House) -> None:
    talk, _ = await gated(house)
    request = QueryWorkflowRequest(
        namespace=house.client.namespace,
        execution=WorkflowExecution(workflow_id=talk.id),
    )
    request.query.query_type = contract.TRANSCRIPT
    request.query.query_args.payloads.append(json_payload({"conversation": talk.id, "start": 0}))

    with pytest.raises(RPCError):
        await house.client.workflow_service.query_workflow(request)


async def test_a_changed_byte_breaks_the_seal() -> None:
    converter = sealed_converter(b"k" * 32)
    [payload] = await converter.encode([{"a": 1}])
    for change in ("data", "metadata"):
        forged = Payload()
        forged.CopyFrom(payload)
        if change == "data":
            forged.data += b" "
        else:
            forged.metadata["more"] = b"x"

        assert await converter.decode([forged]) == [contract.Unsealed()]
    assert await converter.decode([payload]) == [{"a": 1}]


async def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        sealed_converter(b"short")


def test_refused_is_an_application_error() -> None:
    from capuchin_yaml.engine import doors

    with pytest.raises(ApplicationError, match="no"):
        doors.refuse("no")


async def test_a_recorded_call_played_again_by_a_false_worker_has_no_effect(house: House) -> None:
    talk, item = await gated(house)
    await talk.decide(item, "approve")
    await talk.idle()
    await house.stop_worker()
    history = await talk.handle.fetch_history()
    scheduled = [
        e.activity_task_scheduled_event_attributes
        for e in history.events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
    call = next(s for s in scheduled if s.activity_type.name == contract.CALL_TOOL)

    await talk.handle.signal("wake up")
    service = house.client.workflow_service
    task = await service.poll_workflow_task_queue(
        PollWorkflowTaskQueueRequest(
            namespace=house.client.namespace,
            task_queue=TaskQueue(name=contract.task_queue(house.project)),
        )
    )
    again = ScheduleActivityTaskCommandAttributes(
        activity_id="again",
        activity_type=call.activity_type,
        task_queue=TaskQueue(name=contract.task_queue(house.project)),
        input=call.input,
        start_to_close_timeout=call.start_to_close_timeout,
    )
    command = Command(
        command_type=CommandType.Value("COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK"),
        schedule_activity_task_command_attributes=again,
    )
    await service.respond_workflow_task_completed(
        RespondWorkflowTaskCompletedRequest(
            namespace=house.client.namespace, task_token=task.task_token, commands=[command]
        )
    )
    await house.start_worker()
    async with asyncio.timeout(20):
        while True:
            found = await talk.handle.fetch_history()
            if found.events[-1].HasField("activity_task_completed_event_attributes") or any(
                e.activity_task_completed_event_attributes.scheduled_event_id > len(history.events)
                for e in found.events
            ):
                break
            await asyncio.sleep(0.1)

    assert house.effects() == ["x"]
