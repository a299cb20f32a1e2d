"""Where the contenders run: the stock server, ours as `up` starts it, and a worker for each.

Everything runs in processes of its own on loopback, with its files in a folder of the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from capuchin_yaml.cli.up_lock import read_up
from capuchin_yaml.client.connection import connect
from capuchin_yaml.client.dev_server import LOOPBACK, free_ports, read_record, temporal_program
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.home import Home
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.errors import ServerUnavailable, UnsafeState

ROOT = Path(__file__).parents[2]
_LAB = ROOT / "tests" / "engine" / "lab"
_READY_S = 60.0
_ATTEMPTS = 3
_END_S = 20.0

_AGENT = """\
apiVersion: capuchin/v1
name: bench
model: scripted:script.yaml
prompt: You are a bench.
tools: [lab.echo]
"""
_ASKING = """\
apiVersion: capuchin/v1
name: asking
model: scripted:script.yaml
prompt: You are a bench.
tools: [lab.write]
approval: all
"""
_SCRIPT = """\
rules:
  - when: {user: '^write (.*)'}
    reply: {calls: [{tool: write, args: {line: $1}}]}
  - when: {user: '^many (\\d+)'}
    reply:
      calls:
        - {tool: echo, args: {text: $1 a}}
        - {tool: echo, args: {text: $1 b}}
        - {tool: echo, args: {text: $1 c}}
        - {tool: echo, args: {text: $1 d}}
        - {tool: echo, args: {text: $1 e}}
        - {tool: echo, args: {text: $1 f}}
        - {tool: echo, args: {text: $1 g}}
        - {tool: echo, args: {text: $1 h}}
  - when: {user: '(?s)^(.*)$'}
    reply: {calls: [{tool: echo, args: {text: $1}}]}
default: {say: $user}
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A server and the worker of one contender on it, by process number."""

    address: str
    server_pid: int
    worker_pid: int

    @property
    def pids(self) -> dict[str, int]:
        """By role."""
        return {"server": self.server_pid, "worker": self.worker_pid}


@dataclass(frozen=True, slots=True)
class OurPlace(Place):
    """Our project as `up` runs it, and a client of it."""

    fleet: Capuchin
    store: FolderStore
    """What was too large for history."""
    metrics_port: int


@dataclass(frozen=True, slots=True)
class PlainPlace(Place):
    """A plain worker on some server, and a client of it."""

    client: Client
    queue: str


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[OurPlace]:
    """Run `capuchin up --no-tui` on the bench's agent, and talk to it through the client."""
    home = lay_out(folder)
    up = await start_up(folder)
    try:
        fleet = await reach(home, up, folder / "up.log")
        record, running = read_record(home), read_up(home)
        assert record is not None
        assert running is not None
        yield OurPlace(
            record.address,
            record.pid,
            running.workers[0][0],
            fleet,
            FolderStore(home.store_dir),
            record.metrics_port,
        )
        await fleet.close()
    finally:
        await end(up)


def lay_out(folder: Path) -> Home:
    """Write the bench's agents into a folder."""
    agents = folder / "agents"
    agents.mkdir(parents=True)
    (agents / "bench.yaml").write_text(_AGENT)
    (agents / "asking.yaml").write_text(_ASKING)
    (agents / "script.yaml").write_text(_SCRIPT)
    return Home.find(agents)


async def start_up(folder: Path) -> asyncio.subprocess.Process:
    """Start `capuchin up --no-tui` on them; it is not waited for."""
    with (folder / "up.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from capuchin_yaml.cli.app import main; main()",
            "up",
            "--no-tui",
            str(folder / "agents" / "bench.yaml"),
            str(folder / "agents" / "asking.yaml"),
            cwd=folder,
            env=_environment() | {"PYTHONPATH": str(_LAB)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@asynccontextmanager
async def stock_server(folder: Path) -> AsyncIterator[tuple[str, int]]:
    """Run `temporal server start-dev` with a database file and nothing tuned: address and pid."""
    os.makedirs(folder)
    for attempt in range(_ATTEMPTS):
        [port] = free_ports([0])
        with (folder / f"server-{attempt}.log").open("wb") as log:
            server = await asyncio.create_subprocess_exec(
                str(temporal_program()),
                *("server", "start-dev", "--headless", "--port", str(port)),
                *("--db-filename", str(folder / "temporal.db"), "--log-level", "error"),
                cwd=folder,
                env=_environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        address = f"{LOOPBACK}:{port}"
        try:
            # A port may be taken between our choosing it and the server's binding it.
            if await _serves(address, server):
                yield address, server.pid
                return
        finally:
            await end(server)
    raise RuntimeError("the stock server does not start")


@asynccontextmanager
async def plain(address: str, server_pid: int, queue: str) -> AsyncIterator[PlainPlace]:
    """Run a plain worker on this server, and a client of it."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.bench.plain_design", address, queue),
        cwd=ROOT,
        env=_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert worker.stdout is not None
        assert await worker.stdout.readline() == b"polling\n"
        yield PlainPlace(address, server_pid, worker.pid, await Client.connect(address), queue)
    finally:
        await end(worker)


async def reach(home: Home, up: asyncio.subprocess.Process, log: Path) -> Capuchin:
    """Return a client once the project serves."""
    async with asyncio.timeout(_READY_S):
        while up.returncode is None:
            # A state folder that is just being made is not believed yet.
            with contextlib.suppress(ServerUnavailable, UnsafeState):
                fleet = await connect(home, program="bench")
                if (await fleet.check()).workers and read_up(home) is not None:
                    return fleet
            await asyncio.sleep(0.2)
    raise RuntimeError(f"`capuchin up` ended; it said:\n{await asyncio.to_thread(log.read_text)}")


async def _serves(address: str, server: asyncio.subprocess.Process) -> bool:
    async with asyncio.timeout(_READY_S):
        while server.returncode is None:
            with contextlib.suppress(RuntimeError):
                client = await Client.connect(address)
                async for _ in client.list_workflows(limit=1):
                    pass
                return True
            await asyncio.sleep(0.2)
    return False


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process politely, or else at once."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _environment() -> dict[str, str]:
    """Nothing that chooses a server, key or model for anybody."""
    ours = ("TEMPORAL_", "CAPUCHIN_", "ANTHROPIC_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"TEMPORAL_CONFIG_FILE": os.devnull}
