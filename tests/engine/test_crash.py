"""A killed worker takes nothing with it."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, open_house

ALL = ApprovalSpec(policy="all")
_names = itertools.count()


@pytest.fixture
async def empty_house(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    """A project that no worker serves yet."""
    async with open_house(temporal, tmp_path, serve=False) as house:
        yield house


@pytest.fixture(scope="module", autouse=True)
async def death(
    temporal: Client, key: bytes, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[asyncio.Task[None]]:
    """It runs beside the other tests: for a minute the server waits for a sign of life."""
    story = asyncio.create_task(died_in_a_call(temporal, tmp_path_factory.mktemp("died"), key))
    yield story
    story.cancel()
    await asyncio.gather(story, return_exceptions=True)


@asynccontextmanager
async def worker_process(
    house: House, key: bytes, *, script: str = "worker_process.py"
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker in a process of its own, killed at the end."""
    job = {
        "address": house.client.service_client.config.target_host,
        "key": key.hex(),
        "project": house.project,
        "data_dir": str(house.settings.data_dir),
        "agents": [house.agents.get(n).spec.to_json() for n in house.agents.names()],  # type: ignore[union-attr]
    }
    (house.folder / "job.json").write_text(json.dumps(job))
    name = str(next(_names))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).parent / script),
        str(house.folder),
        name,
        stdin=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            while not (house.folder / f"ready-{name}").exists():
                assert process.returncode is None, "the worker did not start"
                await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def kill(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGKILL)
    await process.wait()


async def thinks_in(talk: Any) -> int:
    """The process that the talk's model call runs in, once it runs."""
    while True:
        found = (await talk.handle.describe()).raw_description.pending_activities
        for activity in found:
            if activity.last_worker_identity:
                return int(activity.last_worker_identity.split("@")[0])
        await asyncio.sleep(0.05)


def writer(house: House, **reply: Any) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "one"}}]}},
        {"when": {"user": "think"}, "reply": {"say": "thought", "delay_s": 4}},
        {"when": {"user": "die"}, "reply": {"calls": [{"tool": "die", "args": {}}]}},
        default={"say": "done"},
    )
    house.agent("writer", model, "lab.write", "lab.die", **reply)


async def history(talk: Any) -> list[bytes]:
    found = await talk.handle.fetch_history()
    return [e.SerializeToString(deterministic=True) for e in found.events]


async def test_a_pending_approval_outlives_its_worker(empty_house: House, key: bytes) -> None:
    house = empty_house
    writer(house, approval=ALL)
    async with worker_process(house, key) as first:
        talk = await house.talk("writer", "go")
        item = await talk.item()
        before = await history(talk)
        await kill(first)
    async with worker_process(house, key):
        again = await talk.item()
        prefix = (await history(talk))[: len(before)]
        answer = await talk.decide(again, "approve")
        await talk.idle()

    assert again == item
    assert prefix == before
    assert answer["accepted"] is True
    assert house.effects() == ["one"]


async def test_times_are_the_same_after_a_crash_whoever_looked_on(
    empty_house: House, key: bytes
) -> None:
    """A query that rides on the task of a local activity changes the time its result comes with."""
    house = empty_house
    writer(house, approval=ALL)

    async def asked() -> tuple[Any, Any, list[Any]]:
        talk = await house.talk("writer", "go")
        while not (state := await talk.state())["items"]:
            pass  # one look after the other, without a pause
        return talk, state["items"][0], await talk.events()

    async with worker_process(house, key) as first:
        before = await asyncio.gather(*(asked() for _ in range(8)))
        await kill(first)
    async with worker_process(house, key):
        for talk, item, events in before:
            assert await talk.item() == item
            assert (await talk.events())[: len(events)] == events


async def test_calls_that_end_one_after_another_have_their_times_after_a_crash(
    empty_house: House, key: bytes
) -> None:
    """The tasks of the earlier ends command nothing, and a replay may cut such tasks otherwise."""
    house = empty_house
    ends = [0.2, 0.9, 1.6]
    calls = [
        *({"tool": "block", "args": {"name": str(s), "seconds": s}} for s in ends),
        {"tool": "flaky", "args": {"times": 1}},
        {"tool": "write", "args": {"line": "one"}},
    ]
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": calls}}, default={"say": "done"}
    )
    rules = ApprovalSpec(policy="denylist", tools=("lab.write",))
    house.agent("many", model, "lab.block", "lab.flaky", "lab.write", approval=rules)
    async with worker_process(house, key) as first:
        talk = await house.talk("many", "go")
        item = await talk.item()
        await talk.until(lambda s: s["status"] == "waiting")
        waiting = await talk.events()
        await kill(first)
    async with worker_process(house, key):
        assert (await talk.events())[: len(waiting)] == waiting
        await talk.decide(item, "approve")
        await talk.idle()
        whole = await talk.events()
    async with worker_process(house, key):
        assert await talk.events() == whole

    ended = [datetime.fromisoformat(e["time"]) for e in whole if e["kind"] == "tool_ended"]
    assert ended == sorted(ended)
    assert (ended[3] - ended[0]).total_seconds() > 1


async def test_model_calls_of_a_killed_worker_are_repeated_and_no_turn_fails(
    empty_house: House, key: bytes
) -> None:
    house = empty_house
    writer(house)
    async with worker_process(house, key) as first:
        talks = [await house.talk("writer", "think") for _ in range(5)]
        await asyncio.gather(
            *(t.until(lambda s: s["status"] == "thinking" and s["turn"] == 1) for t in talks)
        )
        await kill(first)
    async with worker_process(house, key):
        states = await asyncio.gather(*(t.idle(timeout_s=60) for t in talks))
        words = [await t.last_words() for t in talks]

    assert {s["status"] for s in states} == {"idle"}
    assert words == ["thought"] * 5


async def test_two_workers_share_a_project_and_one_may_die_in_the_middle(
    empty_house: House, key: bytes
) -> None:
    house = empty_house
    writer(house)
    async with worker_process(house, key) as first, worker_process(house, key):
        talks = [await house.talk("writer", "think") for _ in range(6)]
        async with asyncio.timeout(30):
            while first.pid not in await asyncio.gather(*(thinks_in(t) for t in talks)):
                talks.append(await house.talk("writer", "think"))
        await kill(first)
        states = await asyncio.gather(*(t.idle(timeout_s=60) for t in talks))
        for talk in talks:
            await talk.send("go")
        await asyncio.gather(*(t.idle(timeout_s=60) for t in talks))

    assert {s["status"] for s in states} == {"idle"}
    assert house.effects() == ["one"] * len(talks)


async def test_a_worker_that_never_saw_the_talk_asks_for_it(empty_house: House, key: bytes) -> None:
    house = empty_house
    writer(house)
    async with worker_process(house, key) as first:
        talk = await house.talk("writer", "go")
        await talk.idle()
        await kill(first)
    async with worker_process(house, key):
        await talk.send("and?")
        await talk.idle(timeout_s=60)

        assert await talk.last_words() == "done"
        assert len(await talk.entries()) == 6


async def died_in_a_call(client: Client, folder: Path, key: bytes) -> None:
    """The worker dies in a call of one attempt, and another takes over its project."""
    async with open_house(client, folder, serve=False) as house:
        writer(house)
        async with worker_process(house, key) as first:
            talk = await house.talk("writer", "die")
            await asyncio.wait_for(first.wait(), 60)
        async with worker_process(house, key):
            item = await talk.item("outcome", timeout_s=120)
            effects = house.effects()
            await talk.decide(item, "happened", result="it is done")
            await talk.idle()

    assert effects == house.effects() == ["died"]
    assert "eartbeat" in item["reason"]


async def test_an_effect_whose_worker_died_is_never_repeated_but_asked_about(
    death: asyncio.Task[None],
) -> None:
    await death
