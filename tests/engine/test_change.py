"""New code under open conversations: told as blocked soon, and well again with good code."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from capuchin_yaml.client.connection import sdk_runtime
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.watch import Reconnected, Reconnecting
from capuchin_yaml.engine.replay import replay_histories
from capuchin_yaml.errors import ConversationBlocked, RequestRefused
from capuchin_yaml.events import Choice
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, open_house
from tests.engine.test_crash import kill, worker_process, writer

ALL = ApprovalSpec(policy="all")


@pytest.fixture
async def empty_house(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    """A project that no worker serves yet."""
    async with open_house(temporal, tmp_path, serve=False) as house:
        yield house


async def test_a_replay_mismatch_is_told_within_ten_seconds_and_heals_with_good_code(
    empty_house: House, key: bytes
) -> None:
    house = empty_house
    writer(house, approval=ALL)
    fleet = Capuchin(house.client, project=house.project)
    async with worker_process(house, key) as old:
        talk = await house.talk("writer", "go")
        item = await talk.item()
        thinking = await house.talk("writer", "think")
        await thinking.until(lambda s: s["turn"] == 1)
        conversation = fleet.conversation(talk.id)
        await kill(old)
    seen: asyncio.Queue[tuple[float, Reconnecting | Reconnected]] = asyncio.Queue()

    async def look_on() -> None:
        async with aclosing(conversation.watch(since=10_000)) as pulses:
            async for pulse in pulses:
                if isinstance(pulse, Reconnecting | Reconnected):
                    seen.put_nowait((time.monotonic(), pulse))

    watcher = asyncio.create_task(look_on())
    async with worker_process(house, key, script="changed_worker.py") as changed:
        began = time.monotonic()
        state = await conversation.state()
        shown_after_s = time.monotonic() - began
        while True:
            at, pulse = await asyncio.wait_for(seen.get(), 15)
            if isinstance(pulse, Reconnecting) and isinstance(pulse.error, ConversationBlocked):
                break
        async with asyncio.timeout(120):
            while not (blocked := await fleet.blocked()):  # noqa: ASYNC110 only the server knows
                await asyncio.sleep(0.2)
        rows = await fleet.list(max_age_s=0)
        await kill(changed)
    async with worker_process(house, key):
        answer = await talk.decide(item, "approve")
        ended = [await t.idle(timeout_s=60) for t in (talk, thinking)]
    watcher.cancel()

    assert state.status == "blocked"
    assert "ondeterminism" in state.detail
    assert shown_after_s < 10
    assert at - began < 10
    assert [b.conversation for b in blocked] == [thinking.id]
    assert [r.detail for r in rows if r.status == "blocked"] == [blocked[0].failure]
    assert answer["accepted"] is True
    assert [s["status"] for s in ended] == ["idle", "idle"]
    assert house.effects() == ["one"]


async def test_every_run_of_a_talk_replays_on_the_code_that_made_it(
    temporal: Client, tmp_path: Path
) -> None:
    async with open_house(temporal, tmp_path, roll_over_events=40) as house:
        writer(house)
        talk = await house.talk("writer", "go")
        for _ in range(3):
            await talk.idle()
            await talk.send("go")
        await talk.idle()
        fleet = Capuchin(house.client, project=house.project)
        histories = fleet.histories([talk.id])
        converter = house.client.data_converter
        replays = replay_histories(histories, converter, runtime=sdk_runtime())
        found = [replayed async for replayed in replays]

    assert len(found) >= 2
    assert [r.problem for r in found] == [""] * len(found)


async def test_what_races_a_local_activity_under_a_watchers_eyes_still_replays(
    house: House,
) -> None:
    """The SDK's order of such a task depends on the query; see `engine/sandbox.py`."""
    model = house.script(
        {"when": {"user": "write"}, "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]}},
        default={"say": "done"},
    )
    house.agent("raced", model, "lab.write")
    fleet = Capuchin(house.client, project=house.project)
    chance = random.Random(1)

    async def race() -> str:
        talk = await house.talk("raced", "write")
        over = asyncio.Event()

        async def look_on() -> None:
            while not over.is_set():
                with contextlib.suppress(RPCError):
                    await talk.state()

        onlookers = [asyncio.create_task(look_on()) for _ in range(2)]
        for _ in range(5):
            await talk.send("write")
            await asyncio.sleep(chance.uniform(0, 0.12))
            await talk.cancel()
            await talk.idle()
        over.set()
        await asyncio.gather(*onlookers)
        return talk.id

    talks = [t for _ in range(3) for t in await asyncio.gather(*(race() for _ in range(3)))]
    histories = fleet.histories(talks)
    replays = replay_histories(histories, house.client.data_converter, runtime=sdk_runtime())
    found = [replayed async for replayed in replays]

    assert len(found) == len(talks)
    assert [r.problem for r in found if r.problem] == []


def approvals(state: dict[str, Any]) -> int:
    """How many calls wait for approval."""
    return sum(item["kind"] == "approval" for item in state["items"])


async def test_decisions_that_race_each_other_under_a_watchers_eyes_still_replay(
    temporal: Client, tmp_path: Path
) -> None:
    """A decision asks a worker in a local activity, in the middle of whatever else happens."""
    chance = random.Random(2)
    async with open_house(temporal, tmp_path, roll_over_events=60) as house:
        model = house.script(
            {
                "when": {"user": "write"},
                "reply": {
                    "calls": [{"tool": "write", "args": {"line": f"x{i}"}} for i in range(3)]
                },
            },
            default={"say": "done"},
        )
        approval = ApprovalSpec(policy="all", quorum=2, timeout_s=60.0, remind_s=0.05)
        house.agent("raced", model, "lab.write", approval=approval)
        fleet = Capuchin(house.client, project=house.project)

        async def race() -> str:
            talk = await house.talk("raced", "write")
            conversation = fleet.conversation(talk.id)
            over = asyncio.Event()

            async def look_on() -> None:
                while not over.is_set():
                    with contextlib.suppress(RPCError):
                        await talk.state()

            async def decide(item: dict[str, str], by: str) -> None:
                await asyncio.sleep(chance.uniform(0, 0.1))
                with contextlib.suppress(RequestRefused):
                    choice: Choice = "approve" if item["kind"] == "approval" else "failed"
                    await conversation.decide(
                        item["id"], digest=item["digest"], choice=choice, by=by
                    )

            onlookers = [asyncio.create_task(look_on()) for _ in range(2)]
            for n in range(3):
                # A call that ran when the turn was cancelled is asked about beside them.
                state = await talk.until(lambda s: approvals(s) == 3)
                people = [(i, by) for i in state["items"] for by in ("ann", "bob", "cleo")]
                chance.shuffle(people)
                await asyncio.gather(*(decide(i, by) for i, by in people))
                if n == 1:
                    await conversation.cancel_turn(by="ann")
                await talk.idle()
                if n < 2:
                    await conversation.send("write", by="ann")
            over.set()
            await asyncio.gather(*onlookers)
            return talk.id

        talks = await asyncio.gather(*(race() for _ in range(4)))
        histories = fleet.histories(talks)
        replays = replay_histories(histories, house.client.data_converter, runtime=sdk_runtime())
        found = [replayed async for replayed in replays]
        effects = house.effects()

    assert len(found) >= len(talks)
    assert [r.problem for r in found if r.problem] == []
    assert len(effects) <= 3 * 3 * 4
