"""The TUI over the real client, engine and server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from temporalio.client import Client

from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.spec import ApprovalSpec
from capuchin_yaml.tui.gateway import AgentCard, Gateway
from capuchin_yaml.tui.live import LiveGateway
from capuchin_yaml.tui.widgets.composer import Composer
from tests.engine.house import House, open_house
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway


@pytest.fixture
async def house(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    """A project of its own on the shared server, served by a worker in this process."""
    async with open_house(temporal, tmp_path) as opened:
        yield opened


def serve(house: House) -> None:
    """Serve an agent that asks before it writes, and answers slowly when asked to."""
    model = house.script(
        {
            "when": {"user": "go"},
            "reply": {"say": "I write it.", "calls": [{"tool": "write", "args": {"line": "one"}}]},
        },
        {
            "when": {"user": "slow"},
            "reply": {"say": "one two three four five six", "stream_chunk_s": 0.3},
        },
        {"when": {"result": "refused|denied|too late"}, "reply": {"say": "Then I do not."}},
        default={"say": "It is **done**."},
    )
    house.agent("writer", model, "lab.write", approval=ApprovalSpec(policy="all"))


async def test_a_whole_talk_with_an_approval_runs_on_the_real_engine(
    temporal: Client, house: House
) -> None:
    serve(house)

    async def connect() -> Gateway:
        fleet = Capuchin(temporal, project=house.project, program="test")

        async def agents() -> Sequence[AgentCard]:
            return (AgentCard("writer"),)

        return LiveGateway(fleet, user="anna", agents=agents)

    async with running(FakeGateway(), connect=connect) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents, 30)
        app.chat.query_one(Composer).text = "go"
        await pilot.press("enter")
        await until(pilot, lambda: "waits for a person" in text_of(app), 30)
        assert "▸ lab.write" in text_of(app)
        assert house.effects() == []
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()), 30)
        await pilot.press("a")
        await until(pilot, lambda: "✔ approved by anna (your name)" in text_of(app), 30)
        await pilot.press("escape")
        await until(pilot, lambda: "It is done." in text_of(app), 30)
        assert "✔ ok" in text_of(app)
        assert house.effects() == ["one"]

        app.chat.query_one(Composer).text = "slow"
        await pilot.press("enter")
        await until(pilot, lambda: "▍" in text_of(app), 30)
        await until(pilot, lambda: "five six" in text_of(app) and "▍" not in text_of(app), 30)


async def test_a_decision_from_elsewhere_is_seen_with_its_name_and_reason(
    temporal: Client, house: House
) -> None:
    serve(house)
    fleet = Capuchin(temporal, project=house.project, program="test")
    talk = await fleet.start("writer", "go", by="carl")

    async def connect() -> Gateway:
        return LiveGateway(fleet, user="anna")

    async with running(FakeGateway(), connect=connect) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.link.is_up, 30)
        app.chat.open(talk.id)
        await until(pilot, lambda: "waits for a person" in text_of(app), 30)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()), 30)
        item = (await talk.state()).items[0]
        await talk.decide(item.id, digest=item.digest, choice="deny", by="bert", reason="too late")
        await until(pilot, lambda: "✖ denied by bert: too late" in text_of(app), 30)

    assert house.effects() == []


async def test_events_are_read_once_and_in_order_from_any_offset(
    temporal: Client, house: House
) -> None:
    serve(house)
    fleet = Capuchin(temporal, project=house.project, program="test")
    talk = await fleet.start("writer", "hello", by="carl")
    await talk.settle()
    gateway = LiveGateway(fleet, user="anna")
    total = (await gateway.state(talk.id)).events

    offsets = []
    async with asyncio.timeout(30):
        async for pulse in gateway.watch(talk.id, 1):
            offsets.append(getattr(pulse, "offset", None))
            if len(offsets) == total - 1:
                break

    assert offsets == list(range(1, total))
