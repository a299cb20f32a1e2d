"""The server goes away, or everything stops for a minute: an effect happens once, unasked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from temporalio.client import Client

from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.dev_server import LOOPBACK, Ports, free_ports, server_command
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.target import Target
from capuchin_yaml.errors import ServerUnavailable
from tests.engine.house import House, Talk, open_house

AWAY_S = 20.0
LONG_AWAY_S = 75.0
"""Longer than the SDK keeps what it could not deliver, and than the server waits for a beat."""
FROZEN_S = 62.0
"""Longer than the minute after which the server gives up a call that is silent."""

Ordeals: TypeAlias = dict[str, "asyncio.Task[None]"]

pytestmark = pytest.mark.slow


@dataclass
class Site:
    """A project with a server and a worker in processes of their own."""

    house: House
    home: Home
    ports: Ports
    key: bytes
    server: asyncio.subprocess.Process
    worker: asyncio.subprocess.Process

    def begun(self, line: str) -> Path:
        """Exists once the tool is inside."""
        return self.house.settings.data_dir / "lab" / f"begun-{line}"

    def let_go(self, line: str) -> None:
        """Let the tool write its line."""
        (self.house.settings.data_dir / "lab" / f"go-{line}").touch()

    async def talk(self, line: str) -> Talk:
        """A talk whose one-attempt tool waits to be let go."""
        talk = await self.house.talk("writer", line)
        async with asyncio.timeout(60):
            while True:
                if self.begun(line).exists():
                    return talk
                await asyncio.sleep(0.05)

    async def restart_server(self) -> None:
        """The same server again, on the same database and ports."""
        self.server = await start_server(self.home, self.ports)
        await connected(self.ports, self.key)

    def signal_worker(self, number: signal.Signals) -> None:
        """Reach the worker and all its programs."""
        os.killpg(self.worker.pid, number)


async def start_server(home: Home, ports: Ports) -> asyncio.subprocess.Process:
    with (home.path / "server.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *server_command(home, ports, is_fast=False),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


async def connected(ports: Ports, key: bytes) -> Client:
    target = Target(address=f"{LOOPBACK}:{ports[0]}", origin="own")
    async with asyncio.timeout(60):
        while True:
            try:
                return await connect_temporal(target, key=key)
            except ServerUnavailable:
                await asyncio.sleep(0.1)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    os.mkdir(folder)
    home = Home.find(folder).open(create=True)
    key = home.make_key()
    port, http_port, metrics_port, _ = free_ports((0,) * 4)
    ports = (port, http_port, metrics_port, 0)
    server = await start_server(home, ports)
    made: Site | None = None
    try:
        client = await connected(ports, key)
        async with open_house(client, folder, serve=False) as house:
            model = house.script(
                {
                    "when": {"user": "^[a-z]+$"},
                    "reply": {"calls": [{"tool": "write_once_told", "args": {"line": "$user"}}]},
                },
                default={"say": "done"},
            )
            house.agent("writer", model, "lab.write_once_told", timeout_s=300)
            worker = await start_worker(house, ports, key)
            made = Site(house, home, ports, key, server, worker)
            yield made
    finally:
        for process in (made.server, made.worker) if made is not None else (server,):
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def start_worker(house: House, ports: Ports, key: bytes) -> asyncio.subprocess.Process:
    spec = house.agents.get("writer")
    assert spec is not None
    job = {
        "address": f"{LOOPBACK}:{ports[0]}",
        "key": key.hex(),
        "project": house.project,
        "data_dir": str(house.settings.data_dir),
        "agents": [spec.spec.to_json()],
    }
    (house.folder / "job.json").write_text(json.dumps(job))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).parent / "worker_process.py"),
        str(house.folder),
        "w",
        stdin=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    async with asyncio.timeout(60):
        while True:
            if (house.folder / "ready-w").exists():
                return process
            await asyncio.sleep(0.05)


async def told(talk: Talk) -> tuple[list[Any], list[str], list[Any]]:
    """Results, kinds of items that were opened, and who decided them."""
    events = await talk.events()
    return (
        [(e["status"], e["text"]) for e in events if e["kind"] == "tool_ended"],
        [e["item"]["kind"] for e in events if e["kind"] == "item_opened"],
        [(e["choice"], e["by"], e["client"]) for e in events if e["kind"] == "item_decided"],
    )


async def outlive(here: Site, away_s: float) -> list[Talk]:
    """Two calls through an outage: one ends in the middle of it, one afterwards."""
    talks = [await here.talk("early"), await here.talk("late")]
    os.killpg(here.server.pid, signal.SIGKILL)
    await here.server.wait()
    await asyncio.sleep(away_s / 2)
    here.let_go("early")
    await asyncio.sleep(away_s / 2)
    await here.restart_server()
    await asyncio.sleep(1)
    here.let_go("late")
    for talk in talks:
        await talk.idle(timeout_s=60)
    return talks


async def away(folder: Path) -> None:
    """The server is away for 20 s."""
    async with site(folder) as here:
        early, late = await outlive(here, AWAY_S)

        assert await told(early) == ([("ok", "wrote early")], [], [])
        assert await told(late) == ([("ok", "wrote late")], [], [])
        assert sorted(here.house.effects()) == ["early", "late"]


async def away_for_long(folder: Path) -> None:
    """The server is away until it has given up what runs."""
    async with site(folder) as here:
        for talk, line in zip(await outlive(here, LONG_AWAY_S), ("early", "late"), strict=True):
            results, items, decided = await told(talk)

            assert results == [("ok", f"wrote {line}")]
            assert items in ([], ["outcome"])
            assert decided == [("happened", "", "worker")] * len(items)
        assert sorted(here.house.effects()) == ["early", "late"]


async def standstill(folder: Path, *, with_server: bool) -> None:
    """The worker stops for a minute, alone or with the server."""
    async with site(folder) as here:
        talk = await here.talk("one")
        here.signal_worker(signal.SIGSTOP)
        if with_server:
            os.killpg(here.server.pid, signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        if with_server:
            os.killpg(here.server.pid, signal.SIGCONT)
        here.signal_worker(signal.SIGCONT)
        await asyncio.sleep(3)
        here.let_go("one")
        await talk.idle(timeout_s=60)
        results, items, decided = await told(talk)

        assert results == [("ok", "wrote one")]
        # The server may have given the call up: then its worker settles that, nobody else.
        assert items in ([], ["outcome"])
        assert decided == [("happened", "", "worker")] * len(items)
        assert here.house.effects() == ["one"]


@pytest.fixture(scope="module")
async def ordeals(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ordeals]:
    """All at the same time, each at a site of its own: what they do is to wait."""
    folder = tmp_path_factory.mktemp("sites")
    tasks = {
        "away": asyncio.create_task(away(folder / "away")),
        "away for long": asyncio.create_task(away_for_long(folder / "long")),
        "worker stopped": asyncio.create_task(standstill(folder / "worker", with_server=False)),
        "all stopped": asyncio.create_task(standstill(folder / "all", with_server=True)),
    }
    yield tasks
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


async def test_a_server_away_for_20_s_neither_doubles_nor_loses_an_effect(
    ordeals: Ordeals,
) -> None:
    await ordeals["away"]


async def test_a_server_away_for_longer_settles_what_it_gave_up(ordeals: Ordeals) -> None:
    await ordeals["away for long"]


@pytest.mark.parametrize("who", ["worker", "all"])
async def test_a_minute_of_standstill_neither_doubles_nor_loses_an_effect(
    ordeals: Ordeals, who: str
) -> None:
    await ordeals[f"{who} stopped"]
