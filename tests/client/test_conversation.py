"""One conversation through the public client, on the real server with the real engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from capuchin_yaml.client.answers import Partial
from capuchin_yaml.client.diagnosis import describe
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.link import Link
from capuchin_yaml.client.visibility import is_open
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.sealing import sealed_converter
from capuchin_yaml.errors import (
    ConversationBlocked,
    ConversationNotFound,
    RequestRefused,
    UnsafeState,
    WorkerUnavailable,
)
from capuchin_yaml.events import AssistantSaid, RolledOver, TurnStarted
from capuchin_yaml.messages import AssistantMessage, ToolResult, UserMessage
from capuchin_yaml.spec import ApprovalSpec
from tests.client.detour import LateServer
from tests.engine.house import House, lab, open_house

ASKS = ApprovalSpec(policy="all")


def call(tool: str, **args: object) -> dict[str, object]:
    return {"tool": tool, "args": args}


def serve_plain(house: House) -> None:
    """Serve an agent that only talks."""
    house.agent("plain", house.script(default={"say": "You said $user"}))


def serve_writer(house: House) -> None:
    """Serve an agent that asks before it writes."""
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [call("write", line="one")]}},
        default={"say": "done"},
    )
    house.agent("writer", model, "lab.write", approval=ASKS)


@workflow.defn(name=contract.WORKFLOW, sandboxed=False)
class BrokenWorkflow:
    """Stands for a release whose code fails on open conversations."""

    @workflow.run
    async def run(self, start: contract.StartConversation) -> None:
        raise RuntimeError("this release is broken")


@asynccontextmanager
async def broken_worker(temporal: Client, project: str) -> AsyncIterator[None]:
    async with Worker(
        temporal,
        task_queue=contract.task_queue(project),
        workflows=[BrokenWorkflow],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield


# talking


async def test_a_conversation_starts_with_its_first_message(fleet: Capuchin, house: House) -> None:
    serve_plain(house)

    talk = await fleet.start("plain", "good day", by="ann")
    state = await talk.settle()

    assert talk.id.startswith(f"{house.project}.plain-")
    assert state.status == "idle"
    assert state.title == "good day"
    assert state.definition is not None
    entries = await talk.transcript()
    assert [type(e) for e in entries] == [UserMessage, AssistantMessage]
    assert isinstance(entries[0], UserMessage)
    assert entries[0].by == "ann"
    assert isinstance(entries[1], AssistantMessage)
    assert entries[1].text == "You said good day"


async def test_a_conversation_may_start_silent(fleet: Capuchin, house: House) -> None:
    serve_plain(house)

    talk = await fleet.start("plain", None, by="ann")
    assert (await talk.settle()).status == "idle"
    answer = await talk.send("hello", by="ann")

    assert (answer.turn, answer.queued) == (1, False)
    assert (await talk.settle()).entries == 2


async def test_a_repeated_message_is_the_same_message(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "one", by="ann")

    first = await talk.send("two", by="ann", message_id="m-mine")
    again = await talk.send("two", by="ann", message_id="m-mine")
    await talk.settle()

    assert again.turn == first.turn == 2
    assert sum(isinstance(e, TurnStarted) for e in await talk.events()) == 2


async def test_a_message_waits_its_turn(fleet: Capuchin, house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [call("wait", name="its-turn")]}},
        default={"say": "done"},
    )
    house.agent("slow", model, "lab.wait")
    talk = await fleet.start("slow", "go", by="ann")
    await asyncio.to_thread(lab.entered("its-turn").wait)

    answer = await talk.send("later", by="bob")
    state = await talk.state()
    lab.gate("its-turn").set()

    assert (answer.turn, answer.queued) == (2, True)
    assert [(q.text, q.by) for q in state.queued] == [("later", "bob")]
    assert state.status == "thinking"
    assert (await talk.settle()).entries == 6


async def test_a_running_turn_is_cancelled(fleet: Capuchin, house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [call("wait", name="never-opened")]}},
        default={"say": "done"},
    )
    house.agent("slow", model, "lab.wait")
    talk = await fleet.start("slow", "go", by="ann")
    await asyncio.to_thread(lab.entered("never-opened").wait)

    answer = await talk.cancel_turn(by="ann")
    state = await talk.settle()

    assert (answer.accepted, answer.turn) == (True, 1)
    assert state.status == "idle"
    results = [e for e in await talk.transcript() if isinstance(e, ToolResult)]
    assert [r.status for r in results] == ["cancelled"]
    assert not (await talk.cancel_turn(by="ann")).accepted


async def test_a_closed_conversation_says_how_to_open_it_again(
    fleet: Capuchin, house: House
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")
    await talk.settle()

    await talk.close(by="ann", reason="enough")

    with pytest.raises(RequestRefused, match=r"closed; .capuchin reopen .*chat plain"):
        await talk.send("again", by="ann")
    state = await talk.settle()
    assert state.status == "closed"


async def test_a_conversation_that_never_was_is_not_found(fleet: Capuchin) -> None:
    talk = fleet.conversation("plain-000000")

    for ask in (talk.state(), talk.events(), talk.settle(), talk.partial()):
        with pytest.raises(ConversationNotFound, match="'plain-000000'"):
            await ask


@pytest.mark.parametrize("text", [None, "hello"])
async def test_an_unknown_agent_fails_with_the_reason(
    fleet: Capuchin, house: House, text: str | None
) -> None:
    serve_plain(house)

    talk = await fleet.start("plane", text, by="ann")
    state = await talk.settle()

    assert state.status == "failed"
    assert "plane" in state.detail
    with pytest.raises(RequestRefused, match="has failed"):
        await talk.send("anybody?", by="ann")


# deciding


async def test_an_item_is_decided_once(fleet: Capuchin, house: House) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    [item] = (await talk.settle()).items

    first = await talk.decide(item.id, digest=item.digest, choice="approve", by="bob")
    second = await talk.decide(item.id, digest=item.digest, choice="deny", by="eve")
    await talk.settle()

    assert first.accepted
    assert not second.accepted
    assert (second.choice, second.by, second.client) == ("approve", "bob", first.client)
    assert house.effects() == ["one"]


async def test_two_deciders_at_once_one_wins_and_the_other_is_told(
    fleet: Capuchin, house: House
) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    [item] = (await talk.settle()).items

    answers = await asyncio.gather(
        talk.decide(item.id, digest=item.digest, choice="approve", by="bob"),
        talk.decide(item.id, digest=item.digest, choice="deny", by="eve"),
    )

    assert sorted(a.accepted for a in answers) == [False, True]
    assert len({(a.choice, a.by, a.at) for a in answers}) == 1


async def test_a_decision_on_something_else_than_was_shown_is_refused(
    fleet: Capuchin, house: House
) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    [item] = (await talk.settle()).items

    with pytest.raises(RequestRefused, match="not what was shown"):
        await talk.decide(item.id, digest="0" * 64, choice="approve", by="bob")
    with pytest.raises(RequestRefused, match="choose approve or deny"):
        await talk.decide(item.id, digest=item.digest, choice="yes", by="bob")
    with pytest.raises(RequestRefused, match="no item"):
        await talk.decide(f"{talk.id}:a99", digest=item.digest, choice="approve", by="bob")

    assert (await talk.state()).waiting == 1


# roll-over


async def test_nothing_is_lost_while_a_conversation_rolls_over(
    temporal: Client, tmp_path: Path
) -> None:
    async with open_house(temporal, tmp_path, roll_over_events=60) as house:
        serve_plain(house)
        talk = await Capuchin(temporal, project=house.project).start("plain", "first", by="ann")

        answers = await asyncio.gather(*(talk.send(f"message {n}", by="ann") for n in range(20)))
        state = await talk.settle()

        assert state.run > 1
        assert sorted(a.turn or 0 for a in answers) == list(range(2, 22))
        events = await talk.events()
        assert [e.offset for e in events] == list(range(len(events)))
        # The last turn may have been the one too many for its run.
        assert all(isinstance(e, RolledOver) for e in events[state.events :])
        texts = {e.text for e in events if isinstance(e, TurnStarted)}
        assert texts == {"first", *(f"message {n}" for n in range(20))}
        entries = await talk.transcript()
        assert len(entries) == state.entries == 42
        assert [e.offset for e in await talk.events(since=7)][: state.events - 7] == list(
            range(7, state.events)
        )


async def test_a_run_that_has_just_rolled_over_is_no_end(temporal: Client, tmp_path: Path) -> None:
    async with open_house(temporal, tmp_path, roll_over_events=60) as house:
        serve_plain(house)
        talk = await Capuchin(temporal, project=house.project).start("plain", "first", by="ann")
        while (state := await talk.settle()).run == 1:
            await talk.send("more", by="ann")
        newest = await temporal.get_workflow_handle(talk.id).describe()
        late = LateServer(temporal, newest.raw_info.first_run_id)

        seen = await Capuchin(late.client(), project=house.project).conversation(talk.id).state()
        assert late.asked_before == ["query_workflow"]
        assert seen == state

        link = Link(late.client(), house.project, "test")
        description = await describe(link, talk.id)
        assert late.asked_before[1:] == ["describe_workflow_execution"]
        assert is_open(description.workflow_execution_info)

        gone = LateServer(temporal, newest.raw_info.first_run_id, for_ever=True)
        async with asyncio.timeout(20):
            last = await describe(Link(gone.client(), house.project, "test"), talk.id)
            seen = (
                await Capuchin(gone.client(), project=house.project).conversation(talk.id).state()
            )
        assert not is_open(last.workflow_execution_info)
        assert seen.status == "closed"


# sizes


async def test_long_lists_come_in_pages_and_whole(fleet: Capuchin, house: House) -> None:
    house.agent("quiet", house.script(default={"say": "ok"}))
    texts = [f"{n}" + "x" * 200_000 for n in range(5)]

    talk = await fleet.start("quiet", texts[0], by="ann")
    for text in texts[1:]:
        await talk.send(text, by="ann")
    state = await talk.settle()

    events = await talk.events()
    assert [e.offset for e in events] == list(range(state.events))
    assert [e.text for e in events if isinstance(e, TurnStarted)] == texts
    assert [e.text for e in await talk.transcript() if isinstance(e, UserMessage)] == texts


# nobody there


async def test_without_a_worker_the_missing_worker_is_named(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")
    await talk.settle()
    await house.stop_worker()

    async def error_of(ask: Any) -> tuple[WorkerUnavailable, float]:
        began = time.monotonic()
        with pytest.raises(WorkerUnavailable) as caught:
            await ask
        return caught.value, time.monotonic() - began

    errors = await asyncio.gather(
        error_of(talk.send("anybody?", by="ann", message_id="m-anybody")),
        error_of(talk.state()),
        error_of(talk.events()),
    )

    for error, took_s in errors:
        assert house.project in str(error)
        assert "capuchin up" in str(error)
        assert took_s < 14
    assert "'m-anybody' never acts twice" in str(errors[0][0])


async def test_a_project_that_never_had_a_worker_starts_nothing(temporal: Client) -> None:
    fleet = Capuchin(temporal, project="never-served")

    with pytest.raises(WorkerUnavailable, match="no worker serves project 'never-served'"):
        await fleet.start("plain", "hello", by="ann")

    assert await fleet.list() == []


async def test_a_message_repeated_after_the_outage_is_answered_once(
    fleet: Capuchin, house: House
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")
    await talk.settle()
    await house.stop_worker()

    with pytest.raises(WorkerUnavailable):
        await talk.send("again", by="ann", message_id="m-again")
    await house.start_worker()
    answer = await talk.send("again", by="ann", message_id="m-again")
    await talk.settle()

    assert answer.turn == 2
    said = [e.text for e in await talk.events() if isinstance(e, AssistantSaid)]
    assert said == ["You said hello", "You said again"]


async def test_a_conversation_whose_code_fails_is_blocked(temporal: Client) -> None:
    fleet = Capuchin(temporal, project="broken-release")
    async with broken_worker(temporal, "broken-release"):
        talk = await fleet.start("plain", None, by="ann")

        state = await talk.settle()

        assert state.status == "blocked"
        assert "this release is broken" in state.detail
        with pytest.raises(ConversationBlocked, match="this release is broken"):
            await talk.send("hello", by="ann")
        with pytest.raises(ConversationBlocked, match="this release is broken"):
            await talk.events()
        [row] = await fleet.list()
        assert (row.status, row.id) == ("blocked", talk.id)
        [blocked] = await fleet.blocked()
        assert blocked.conversation == talk.id
        assert "this release is broken" in blocked.failure
        await temporal.get_workflow_handle(talk.id).terminate()


async def test_an_end_from_outside_is_told(fleet: Capuchin, house: House, temporal: Client) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")
    await talk.settle()

    await temporal.get_workflow_handle(talk.id).terminate()
    state = await talk.settle()

    assert state.status == "closed"
    assert "terminated" in state.detail
    assert state.entries == 2


# seals


@pytest.fixture
def stranger(temporal: Client) -> Callable[[str], Capuchin]:
    """A client of the same server with another key."""

    def with_other_key(project: str) -> Capuchin:
        config = temporal.config()
        config["data_converter"] = sealed_converter(b"x" * 32)
        return Capuchin(Client(**config), project=project)

    return with_other_key


async def test_a_client_with_another_key_can_do_nothing(
    fleet: Capuchin, house: House, stranger: Callable[[str], Capuchin]
) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    [item] = (await talk.settle()).items
    other = stranger(house.project).conversation(talk.id)

    with pytest.raises(RequestRefused, match="seal"):
        await other.send("hello", by="eve")
    with pytest.raises(RequestRefused, match="seal"):
        await other.decide(item.id, digest=item.digest, choice="approve", by="eve")
    with pytest.raises((RequestRefused, UnsafeState), match="seal"):
        await other.state()

    assert (await talk.state()).waiting == 1


# streaming


async def test_a_reply_is_seen_while_it_is_written(fleet: Capuchin, house: House) -> None:
    text = "word " * 40
    model = house.script(default={"say": text, "stream_chunk_s": 0.05})
    house.agent("streams", model)

    talk = await fleet.start("streams", "go", by="ann")
    seen: list[Partial] = []
    settled = asyncio.create_task(talk.settle())
    while not settled.done():
        partial = await talk.partial()
        if partial is not None:
            seen.append(partial)
        await asyncio.wait({settled}, timeout=0.05)

    assert len({p.offset + len(p.tail) for p in seen}) > 3
    assert all(text[p.offset :].startswith(p.tail) for p in seen)
    assert await talk.partial() is None
