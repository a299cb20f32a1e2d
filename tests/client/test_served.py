"""Workers say on the server what they serve, and every terminal with the key reads it."""

from __future__ import annotations

import asyncio

from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.served import Marks
from tests.engine.house import House


async def until_served(fleet: Capuchin, *names: str) -> None:
    """Wait until the lists, which lag a moment, show exactly these agents."""
    async with asyncio.timeout(20):
        while [s.agent for s in await fleet.served()] != list(names):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_what_a_worker_serves_is_read_elsewhere_and_gone_when_it_stops(
    fleet: Capuchin, house: House
) -> None:
    told = {"billing": {"name": "billing", "version": "1.2.0"}, "sales": {"name": "sales"}}
    worker = asyncio.create_task(Marks(fleet.temporal, house.project, told).keep())
    await until_served(fleet, "billing", "sales")
    [billing, _] = await fleet.served()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    await until_served(fleet)

    assert billing.told == told["billing"]


async def test_a_worker_that_started_later_keeps_its_marks_when_the_first_one_stops(
    fleet: Capuchin, house: House
) -> None:
    first = asyncio.create_task(
        Marks(fleet.temporal, house.project, {"billing": {"version": "1"}}).keep()
    )
    await until_served(fleet, "billing")
    second = asyncio.create_task(
        Marks(fleet.temporal, house.project, {"billing": {"version": "2"}}).keep()
    )
    async with asyncio.timeout(20):
        while [s.told for s in await fleet.served()] != [{"version": "2"}]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    [kept] = await fleet.served()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)

    assert kept.told == {"version": "2"}


async def test_a_mark_of_another_project_is_not_read(fleet: Capuchin, house: House) -> None:
    other = asyncio.create_task(Marks(fleet.temporal, f"{house.project}x", {"a": {}}).keep())
    ours = asyncio.create_task(Marks(fleet.temporal, house.project, {"b": {}}).keep())
    await until_served(fleet, "b")
    for task in (other, ours):
        task.cancel()
    await asyncio.gather(other, ours, return_exceptions=True)
