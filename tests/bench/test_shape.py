"""What is true of our cost on every machine: counts and bytes, never times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from temporalio.client import Client

from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.server import Server
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.storage import FolderStore
from tests.bench.help_start import heavy_packages
from tests.bench.plain_design import PlainTalk, serve
from tests.bench.talks import HistoryMeter, OurTalk, Size
from tests.engine.house import House, open_house

TEXT_BYTES = 1024
TURNS = 200
PLAIN_TURNS = 30


@pytest.fixture
async def house(dev_server: Server, key: bytes, tmp_path: Path) -> AsyncIterator[House]:
    """A project as `up` serves it, with a store, that rolls over twice within `TURNS`."""
    store = FolderStore(tmp_path / "store")
    client = await connect_temporal(dev_server.target, key=key, store=store)
    async with open_house(
        client, tmp_path, roll_over_events=contract.ROLL_OVER_EVENTS, store=store
    ) as opened:
        yield opened


async def test_a_turn_costs_the_same_history_early_and_late_and_over_roll_overs(
    house: House,
) -> None:
    sizes = await our_sizes(house, TURNS)

    first_run, early, whole = sizes[20] - sizes[1], sizes[15] - sizes[5], sizes[TURNS] - sizes[0]
    late = sizes[TURNS] - sizes[TURNS - 5]
    assert first_run.runs == 0
    assert whole.runs == 2
    assert first_run.events <= 24 * 19
    assert late.size_bytes / 5 <= 1.1 * early.size_bytes / 10
    assert whole.size_bytes / TURNS <= 1.1 * early.size_bytes / 10


async def test_history_holds_a_fraction_of_the_plain_design(
    house: House, dev_server: Server
) -> None:
    our = (await our_sizes(house, PLAIN_TURNS))[PLAIN_TURNS]
    plain = await plain_size(dev_server.target.address, PLAIN_TURNS)

    # The plain history grows with the square of the turns: at 100 the share is a third of this.
    assert our.size_bytes <= 0.15 * plain.size_bytes


def test_help_loads_nothing_heavy() -> None:
    assert heavy_packages() == []


async def our_sizes(house: House, turns: int) -> Sequence[Size]:
    """Return the history after each turn of one talk with 1 KB texts; the first is before any."""
    model = house.script(
        {
            "when": {"user": "(?s)^(.*)$"},
            "reply": {"calls": [{"tool": "echo", "args": {"text": "$1"}}]},
        },
        default={"say": "$user"},
    )
    house.agent("bench", model, "lab.echo")
    sizes = []
    async with await OurTalk.start(Capuchin(house.client, project=house.project)) as talk:
        meter = HistoryMeter(house.client, talk.conversation.id)
        sizes.append(await meter.read())
        for number in range(turns):
            await talk.turn(text_of(number))
            sizes.append(await meter.read())
    return sizes


async def plain_size(address: str, turns: int) -> Size:
    """Return the history of a plain talk with the same texts."""
    client = await Client.connect(address)
    async with await serve(client, "plain-shape"):
        talk = await PlainTalk.start(client, "plain-shape", poll_every_s=0.02)
        meter = HistoryMeter(client, talk.handle.id)
        for number in range(turns):
            await talk.turn(text_of(number))
        return await meter.read()


def text_of(number: int) -> str:
    """A message of 1 KB."""
    return f"{number} ".ljust(TEXT_BYTES, "x")
