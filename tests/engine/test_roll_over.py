"""The talk goes on in a new run between any two steps, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from capuchin_yaml.engine import contract
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk, open_house


@pytest.fixture
async def short_runs(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    """A project whose conversations roll over after 40 events of history."""
    async with open_house(temporal, tmp_path, roll_over_events=40) as house:
        yield house


def agent(house: House, **more: Any) -> None:
    model = house.script(
        {
            "when": {"user": r"write (\d+)"},
            "reply": {"calls": [{"tool": "write", "args": {"line": "$1"}}]},
        },
        {"when": {"user": r"say (\d+)"}, "reply": {"say": "heard $1"}},
        default={"say": "done"},
    )
    house.agent("rolling", model, "lab.write", **more)


async def insistent_send(talk: Talk, text: str, id: str) -> Any:
    """Send as the client does: the same id again while the talk is moving."""
    while True:
        try:
            request = contract.SendMessage(**talk.fields(text=text, id=id))
            return await talk.update(contract.SEND_MESSAGE, request)
        except (WorkflowUpdateFailedError, RPCError):
            await asyncio.sleep(0.02)


async def all_events(talk: Talk) -> list[dict[str, Any]]:
    """The whole log, earlier runs first."""
    page = await talk.ask(contract.EVENTS)
    found: list[dict[str, Any]] = []
    for run in page["earlier"]:
        handle = talk.house.client.get_workflow_handle(talk.id, run_id=run["run_id"])
        question = contract.Ask(conversation=talk.id, start=run["first"])
        found += (await handle.query(contract.EVENTS, question, result_type=dict))["events"]
    return found + await talk.events()


async def test_turns_go_on_over_many_runs_with_one_log(short_runs: House) -> None:
    agent(short_runs)
    talk = await short_runs.talk("rolling", "write 0")
    await talk.idle()
    for i in range(1, 8):
        await insistent_send(talk, f"write {i}", f"m{i}")
        await talk.idle()

    events = await all_events(talk)
    assert (await talk.state())["run"] >= 4
    assert [e["offset"] for e in events] == list(range(len(events)))
    assert short_runs.effects() == [str(i) for i in range(8)]
    assert [e["turn"] for e in events if e["kind"] == "turn_ended"] == list(range(1, 9))
    assert len(set(short_runs.keys())) == 8


async def test_twenty_messages_racing_a_roll_over_are_each_answered_once(
    short_runs: House,
) -> None:
    agent(short_runs)
    talk = await short_runs.talk("rolling", "say 100")
    await talk.idle()
    for round_ in range(10):
        batch = [round_ * 20 + i for i in range(20)]
        answers = await asyncio.gather(
            *(insistent_send(talk, f"say {i}", f"id-{i}") for i in batch)
        )
        turns = [a["turn"] for a in answers]
        assert len(set(turns)) == 20
    await talk.idle(timeout_s=60)

    events = await all_events(talk)
    heard = [e["text"] for e in events if e["kind"] == "assistant_message"]
    asked = [e["text"] for e in events if e["kind"] == "turn_started"]
    assert len(asked) == 201
    assert sorted(heard) == sorted(["heard 100"] + [f"heard {i}" for i in range(200)])
    assert (await talk.state())["run"] > 3


async def test_an_item_waits_on_through_roll_overs_and_is_decided_once(short_runs: House) -> None:
    agent(short_runs, approval=ApprovalSpec(policy="all", timeout_s=3600))
    talk = await short_runs.talk("rolling", "write 1")
    item = await talk.item()
    for i in range(30):
        await insistent_send(talk, f"say {i}", f"q{i}")

    state = await talk.until(lambda s: s["run"] >= 3)
    described = await talk.handle.describe()
    memo = await described.memo()
    status = described.typed_search_attributes.get(SearchAttributeKey.for_keyword("CapuchinStatus"))
    answer = await talk.decide(item, "approve")
    await talk.idle()

    assert [i["id"] for i in state["items"]] == [item["id"]]
    assert state["items"][0] == item
    assert status == "waiting"
    assert [i["id"] for i in memo[contract.MEMO_INBOX]["items"]] == [item["id"]]
    assert answer["accepted"] is True
    assert short_runs.effects() == ["1"]
    said = [e["text"] for e in await all_events(talk) if e["kind"] == "assistant_message"]
    assert said[-30:] == [f"heard {i}" for i in range(30)]


async def test_a_repeat_of_a_request_in_a_later_run_gets_the_first_answer(
    short_runs: House,
) -> None:
    agent(short_runs)
    talk = await short_runs.talk("rolling", "say 0")
    first = await insistent_send(talk, "say 1", "same")
    await talk.idle()
    for i in range(2, 6):
        await insistent_send(talk, f"write {i}", f"m{i}")
        await talk.idle()

    again = await insistent_send(talk, "say 1", "same")

    assert (await talk.state())["run"] > 1
    assert again == first
    assert [e["text"] for e in await all_events(talk) if e["kind"] == "turn_started"].count(
        "say 1"
    ) == 1


async def test_a_large_talk_is_carried_within_the_servers_limits(
    temporal: Client, tmp_path: Path
) -> None:
    async with open_house(temporal, tmp_path, roll_over_events=60) as house:
        house.agent("wordy", house.script(default={"say": "y" * 60_000}))
        talk = await house.talk("wordy", "x" * 60_000)
        await talk.idle()
        for i in range(24):
            await insistent_send(talk, f"{i} " + "x" * 60_000, f"m{i}")
            await talk.idle()
        state = await talk.state()

        assert state["run"] > 2
        assert state["entries"] == 50
        assert await talk.failed_tasks() == 0
        page = await talk.ask(contract.TRANSCRIPT)
        assert page["first"] > 0
