"""Talks whose server and worker are killed at events that a seed chooses, in real processes.

`python -m tests.engine.kill_points --seeds 60` runs them all. Each talk has several steps with
parallel calls, an approval and a second message. A test plays the person: it approves, and tells
of an unknown outcome what the ledger of effects says. However the kills fall there must be one
final state, a log that was only ever extended, a history that replays, and every effect once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from capuchin_yaml.client.connection import connect_temporal, sdk_runtime
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.dev_server import free_ports, server_command
from capuchin_yaml.client.diagnosis import describe
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.target import Target
from capuchin_yaml.engine.replay import replay_histories
from capuchin_yaml.errors import (
    CapuchinError,
    ConversationBlocked,
    ServerUnavailable,
    WorkerUnavailable,
)
from capuchin_yaml.events import Event, ItemDecided, to_json
from capuchin_yaml.items import Item
from capuchin_yaml.messages import AssistantMessage, CallBlock, ToolResult
from capuchin_yaml.spec import AgentSpec, ApprovalSpec
from capuchin_yaml.tools.registry import Registry
from tests.engine.house import tool_specs

PATIENCE_S = 300.0
KILLS = (2, 4)
"""Fewest and most kills of one talk."""
EVENTS = (6, 62)
"""History lengths at which something is killed."""
HEARTBEAT_S = 8.0
"""Silence after which a one-attempt call is given up. Why not the product's minute: a seed that
kills a worker inside such a call would do nothing but wait. A tool here takes a quarter of a
second, so it has ended long before a person is asked about it."""
LINES = ["a", "b", "c", "d", "e", "wiped x"]
_AWAY = (ServerUnavailable, WorkerUnavailable, ConversationBlocked, OSError, RuntimeError)
_TIMES = ("time", "requested_at", "due", "waited_s", "duration_s", "claimed_until")


def _call(tool: str, **args: str) -> dict[str, object]:
    return {"tool": tool, "args": args}


SCRIPT = {
    "rules": [
        {
            "when": {"replies": 0},
            "reply": {
                "say": "first",
                "delay_s": 0.1,
                "calls": [
                    _call("write_once", line="a"),
                    _call("write_in_time", line="b"),
                    _call("echo", text="hello"),
                ],
            },
        },
        {
            "when": {"replies": 1},
            "reply": {
                "delay_s": 0.1,
                "calls": [_call("wipe", target="x"), _call("write_in_time", line="c")],
            },
        },
        {"when": {"replies": 2}, "reply": {"calls": [_call("write_once", line="d")]}},
        {"when": {"replies": 3}, "reply": {"say": "done", "delay_s": 0.1}},
        {"when": {"replies": 4}, "reply": {"calls": [_call("write_in_time", line="e")]}},
    ],
    "default": {"say": "all done"},
}


@dataclass(frozen=True)
class Kill:
    """What is killed, and when."""

    at_event: int
    """History length from which on it is killed."""
    server: bool
    worker: bool


def plan(seed: int) -> list[Kill]:
    """The kills of a seed, in order."""
    chance = random.Random(seed)
    at = sorted(chance.sample(range(*EVENTS), chance.randint(*KILLS)))
    kinds = [(False, True), (True, False), (True, True)]
    return [Kill(n, *chance.choice(kinds)) for n in at]


@dataclass
class Site:
    """A server and a worker of their own, each in its process."""

    folder: Path
    home: Home
    key: bytes
    ports: tuple[int, ...]
    server: asyncio.subprocess.Process | None = None
    worker: asyncio.subprocess.Process | None = None
    workers: int = 0

    @classmethod
    def make(cls, folder: Path) -> Site:
        """Lay out a state folder, the job of the worker, and choose ports."""
        home = Home.find(folder).open(create=True)
        ports = free_ports((0, 0, 0, 0))
        site = cls(folder, home, home.make_key(), ports)
        script = folder / "script.yaml"
        script.write_text(yaml.safe_dump(SCRIPT))
        tools = ("write_once", "write_in_time", "echo", "wipe")
        spec = AgentSpec(
            name="keeper",
            prompt="You are a test.",
            model=f"scripted:{script}",
            tools=tool_specs(Registry.installed(), *(f"lab.{t}" for t in tools)),
            approval=ApprovalSpec(policy="denylist", tools=("lab.wipe",)),
        )
        job = {
            "address": site.address,
            "key": site.key.hex(),
            "project": "kills",
            "data_dir": str(folder / "data"),
            "agents": [spec.to_json()],
            "one_attempt_heartbeat_s": HEARTBEAT_S,
        }
        (folder / "job.json").write_text(json.dumps(job))
        return site

    @property
    def address(self) -> str:
        """Where the server listens, also after a restart."""
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def effects(self) -> list[str]:
        """Lines in the ledger."""
        ledger = self.folder / "data" / "lab" / "effects"
        return (
            [x.split(" ", 1)[1] for x in ledger.read_text().splitlines()]
            if (ledger.exists())
            else []
        )

    async def start_server(self) -> None:
        """Start it on the same database and port, and wait until it serves."""
        async with asyncio.timeout(60):
            while not await self._serves():  # noqa: ASYNC110 another process
                # Why: the port may be held for a moment by a connection of the killed server.
                await asyncio.sleep(0.2)

    async def _serves(self) -> bool:
        """Start the server once; False when it ended instead of serving."""
        port, http_port, metrics_port = self.ports[:3]
        command = server_command(self.home, (port, http_port, metrics_port, 0), is_fast=False)
        with (self.folder / "server.log").open("ab") as log:
            self.server = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        while self.server.returncode is None:
            try:
                await connect_temporal(Target(address=self.address), key=self.key)
            except CapuchinError:
                await asyncio.sleep(0.05)
            else:
                return True
        return False

    async def start_worker(self) -> None:
        """Start it; it is not waited for."""
        self.workers += 1
        log = (self.folder / f"worker-{self.workers}.log").open("wb")
        self.worker = await asyncio.create_subprocess_exec(
            *(sys.executable, str(Path(__file__).parent / "worker_process.py")),
            *(str(self.folder), str(self.workers)),
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        log.close()

    async def kill(self, kill: Kill) -> None:
        """Carry one kill out, and bring back what was killed."""
        for process, wanted in ((self.worker, kill.worker), (self.server, kill.server)):
            if wanted and process is not None and process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        if kill.server:
            await self.start_server()
        if kill.worker or (self.worker is not None and self.worker.returncode is not None):
            await self.start_worker()

    async def end(self) -> None:
        """Leave nothing behind."""
        for process in (self.worker, self.server):
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    """A running server and worker."""
    made = Site.make(folder)
    try:
        await made.start_server()
        await made.start_worker()
        async with asyncio.timeout(60):
            while not (folder / "ready-1").exists():  # noqa: ASYNC110 another process
                await asyncio.sleep(0.05)
        yield made
    finally:
        await made.end()


@dataclass
class Report:
    """What came of one seed."""

    seed: int
    kills: list[Kill]
    problems: list[str] = field(default_factory=list)
    outcomes: int = 0
    """Calls of which nobody knew whether they had happened."""
    seconds: float = 0.0

    def __str__(self) -> str:
        kills = " ".join(
            f"{k.at_event}:{'s' if k.server else ''}{'w' if k.worker else ''}" for k in self.kills
        )
        verdict = "; ".join(self.problems) or "ok"
        return (
            f"seed {self.seed}: {verdict} ({self.seconds:.0f} s, kills {kills},"
            f" {self.outcomes} unknown outcomes)"
        )


@dataclass
class _Person:
    """Talks, approves, and answers what nobody else can know."""

    site: Site
    talk: Conversation
    report: Report
    log: list[dict[str, Any]] = field(default_factory=list)

    async def see_through(self) -> None:
        """Go on until both messages are answered."""
        sent_more = False
        while True:
            state = await self.insist(self.talk.state)
            for item in state.items:
                await self.answer(item)
            await self.check_log()
            if state.status == "idle":
                if sent_more:
                    return
                await self.insist(lambda: self.talk.send("more", by="ann", message_id="more"))
                sent_more = True
            await asyncio.sleep(0.05)

    async def answer(self, item: Item) -> None:
        """Decide one item."""
        choice, result = {"approval": "approve", "limit": "go_on"}.get(item.kind, ""), ""
        if item.kind == "outcome":
            self.report.outcomes += 1
            argument = next(iter(json.loads(item.arguments).values()))
            line = f"wiped {argument}" if item.tool == "lab.wipe" else argument
            happened = line in self.site.effects
            choice = "happened" if happened else "rerun"
            result = f"wrote {line}" if happened else ""
        with contextlib.suppress(CapuchinError):
            await self.talk.decide(
                item.id, digest=item.digest, choice=choice, by="ann", result=result
            )

    async def check_log(self) -> None:
        """Compare the log with what it was before."""
        events = [_without_times(to_json(e)) for e in await self.insist(self.talk.events)]
        if events[: len(self.log)] != self.log:
            at = next(i for i, (x, y) in enumerate(zip(self.log, events, strict=False)) if x != y)
            self.report.problems.append(f"event {at} changed: {self.log[at]} -> {events[at]}")
        self.log = events

    async def insist(self, ask: Any) -> Any:
        """Ask until something answers; servers and workers come back."""
        while True:
            try:
                return await ask()
            except _AWAY:
                await asyncio.sleep(0.1)


async def run_seed(seed: int, folder: Path) -> Report:
    """Run the talk of one seed and judge it."""
    report = Report(seed, plan(seed))
    began = time.monotonic()
    async with site(folder) as made:
        temporal = await connect_temporal(Target(address=made.address), key=made.key)
        fleet = Capuchin(temporal, project="kills", program="test")
        talk = await fleet.start("keeper", "plan", by="ann")
        person = _Person(made, talk, report)
        killer = asyncio.create_task(_kill_at_events(made, fleet, talk, report.kills))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await _both(person.see_through(), killer)
                killer.cancel()
                await asyncio.gather(killer, return_exceptions=True)
                if made.worker is not None and made.worker.returncode is not None:
                    await made.start_worker()
                await _judge(made, fleet, talk, person)
        except TimeoutError:
            state = await talk.state()
            report.problems.append(f"no end within {PATIENCE_S:.0f} s: {state}")
        finally:
            killer.cancel()
            await asyncio.gather(killer, return_exceptions=True)
    report.seconds = time.monotonic() - began
    return report


async def _both(talk: Coroutine[Any, Any, None], killer: asyncio.Task[None]) -> None:
    """See a talk through; a killer that cannot bring back what it killed ends it at once."""
    talking = asyncio.ensure_future(talk)
    try:
        await asyncio.wait({talking, killer}, return_when=asyncio.FIRST_COMPLETED)
        if killer.done():
            killer.result()
        await talking
    finally:
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)


async def _kill_at_events(
    made: Site, fleet: Capuchin, talk: Conversation, kills: list[Kill]
) -> None:
    for kill in kills:
        while True:
            with contextlib.suppress(*_AWAY):
                found = await describe(fleet._link, talk.id)
                if found.workflow_execution_info.history_length >= kill.at_event:
                    break
            await asyncio.sleep(0.02)
        # Why shielded: the end of the talk must not catch it between a kill and the restart.
        await asyncio.shield(made.kill(kill))


async def _judge(made: Site, fleet: Capuchin, talk: Conversation, person: _Person) -> None:
    problems = person.report.problems
    state = await person.insist(talk.state)
    if (state.status, state.items, state.queued) != ("idle", (), ()):
        problems.append(f"the end is {state.status} with {len(state.items)} items")
    if sorted(made.effects) != LINES:
        problems.append(f"effects {sorted(made.effects)}")
    await person.check_log()
    events: list[Event] = await person.insist(talk.events)
    decided = [e.item_id for e in events if isinstance(e, ItemDecided)]
    if len(decided) != len(set(decided)):
        problems.append(f"decided twice: {decided}")
    asked: list[str] = []
    for entry in await person.insist(talk.transcript):
        if isinstance(entry, AssistantMessage):
            if asked:
                problems.append(f"calls without result: {asked}")
            asked = [b.call_id for b in entry.blocks if isinstance(b, CallBlock)]
        elif isinstance(entry, ToolResult):
            asked.remove(entry.call_id)
    converter = fleet.temporal.data_converter
    histories = fleet.histories([talk.id])
    async for replayed in replay_histories(histories, converter, runtime=sdk_runtime()):
        if replayed.problem:
            problems.append(replayed.problem)
    await person.insist(lambda: talk.close(by="ann"))
    closed = await person.insist(talk.settle)
    if closed.status != "closed":
        problems.append(f"closed, it is {closed.status}")


def _without_times(event: Mapping[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in event.items() if k not in _TIMES}
    if isinstance(plain.get("item"), Mapping):
        plain["item"] = _without_times(plain["item"])
    return plain


async def run_seeds(seeds: list[int], at_once: int) -> list[str]:
    """Run many seeds, some at a time; print each report, and return those with a problem."""
    room = asyncio.Semaphore(at_once)

    async def one(seed: int) -> str:
        async with room:
            report = await _in_a_process(seed)
            print(report, flush=True)  # noqa: T201 a program of its own
            return report

    reports = await asyncio.gather(*(one(seed) for seed in seeds))
    return [report for report in reports if ": ok (" not in report]


async def _in_a_process(seed: int) -> str:
    # Why a process for each: the SDK's native client may crash the program that kills its servers
    # under it (a reference is dropped without the interpreter's lock). Then the seed runs again.
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.engine.kill_points", "--only", str(seed)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        try:
            said, failed = await process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is not None and process.returncode >= 0:
            break
    reports = [x for x in said.decode().splitlines() if x.startswith(f"seed {seed}: ")]
    return reports[-1] if reports else f"seed {seed}: no report: {failed.decode()[-800:]}"


def main() -> None:
    """Run the seeds of the command line; exit 1 when one has a problem."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=60, help="how many")
    arguments.add_argument("--first", type=int, default=0, help="the first of them")
    arguments.add_argument("--at-once", type=int, default=3)
    arguments.add_argument("--only", type=int, help="run this one here")
    given = arguments.parse_args()
    if given.only is not None:
        with tempfile.TemporaryDirectory(prefix="capuchin-kills-") as folder:
            report = asyncio.run(run_seed(given.only, Path(folder)))
        print(report, flush=True)  # noqa: T201 a program of its own
        return
    seeds = list(range(given.first, given.first + given.seeds))
    bad = asyncio.run(run_seeds(seeds, given.at_once))
    print(f"{len(seeds) - len(bad)} of {len(seeds)} seeds hold")  # noqa: T201
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
