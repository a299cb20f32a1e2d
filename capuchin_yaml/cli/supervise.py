"""`up` at work: a server, a worker process, and what keeps both alive until somebody stops them.

    compile ─► server ─► worker polls ─► watch (files, worker, server) ─► drain ─► server ends

Everything that was started is ended again, however the work ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capuchin_yaml.cli.agents_file import write_agents
from capuchin_yaml.cli.face import Face
from capuchin_yaml.cli.reload import Reloader
from capuchin_yaml.cli.roster import Roster, first_roster
from capuchin_yaml.cli.serving import LAST_CALL_S
from capuchin_yaml.cli.up_lock import UpLock
from capuchin_yaml.cli.worker_link import WorkerChild, how_it_ended
from capuchin_yaml.errors import CapuchinError, InvalidAgent, RequestRefused

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.client.server import Server

PAUSES_S = (0.0, 0.5, 2.0, 5.0, 15.0, 30.0)
"""Before a worker or server that ended by itself is started again; the last one repeats."""
STEADY_S = 120.0
"""Time after which an end counts as the first one again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `up` was asked to do."""

    home: Home
    find: tuple[Path, ...]
    """Files and folders as given; folders are looked through again at every change."""
    profile: str | None = None
    """Which of their profiles the agents are taken with."""
    temporal_ui: bool = False
    is_fast: bool = False
    grace_s: float = 10.0
    """Time that running calls get when everything is stopped."""


@dataclass(frozen=True, slots=True)
class Running:
    """What runs once `start` is through."""

    server: Server
    roster: Roster


class Supervisor:
    """Runs a plan: `start` brings everything up, `watch` keeps it so, `stop` ends it."""

    def __init__(self, plan: Plan, face: Face) -> None:
        self.plan = plan
        self.face = face
        self.roster: Roster = {}
        self.worker: WorkerChild | None = None
        self.hurry = asyncio.Event()
        """Set when somebody wants the stop to be quick."""
        self._project = ""
        self._server: Server | None = None
        self._lock: UpLock | None = None
        self._reloader = Reloader(self)
        self._children: set[WorkerChild] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[float] = []
        self._stopping = asyncio.Event()

    async def start(self) -> Running:
        """Compile, then start server and worker; returns when the worker polls.

        Raises:
            InvalidAgent: files have mistakes; the text holds all of them.
            CapuchinError: something else keeps it from starting, in words.
        """
        self.face.stage("reading the agents")
        worker = await self.spare_worker()
        # Why so early: reading the agents takes as long, and both wait for nothing of each other.
        # A project that was never up is read first, so that mistakes leave no state behind.
        begun = self.plan.home.database.exists()
        starting = asyncio.create_task(self._start_server()) if begun else None
        try:
            await self._read_agents(worker)
            self.face.stage("starting the server")
            server = await (starting or self._start_server())
        except BaseException:
            if starting is not None:
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
            raise
        self.face.stage("starting the worker")
        await self._serve(worker, self.roster)
        self._publish()
        return Running(server, self.roster)

    async def _read_agents(self, worker: WorkerChild) -> None:
        on_disk = await self._reloader.first_look(worker)
        self.roster, problems = first_roster(on_disk)
        if problems:
            raise InvalidAgent("\n".join(problem.rstrip("\n") for problem in problems))
        if not self.roster:
            raise RequestRefused(f"no agent files in {_listed(self.plan.find)}")
        for agent in on_disk:
            if agent.problems:
                self.face.warn(agent.problems)

    async def watch(self) -> None:
        """Keep server, worker and agents as they should be; runs until cancelled."""
        mending = asyncio.create_task(self._mend_server())
        try:
            await asyncio.gather(mending, self._reloader.watch())
        finally:
            mending.cancel()
            await asyncio.gather(mending, return_exceptions=True)

    async def stop(self) -> None:
        """Let running calls finish in the grace time, then end workers and server."""
        self._stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(
            *(child.end(self.plan.grace_s, self.hurry) for child in self._children),
            return_exceptions=True,
        )
        self._children.clear()
        self.worker = None
        if self._server is not None:
            await self._server.close()
            self._server = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def adopt(self, roster: Roster) -> None:
        """Serve these agents to new conversations, and tell the other terminals."""
        if roster == self.roster:
            return
        if self.worker is not None:
            await self.worker.adopt(_agents_json(roster))
        self.roster = roster
        self._publish()

    async def spare_worker(self) -> WorkerChild:
        """A worker process with the code as it is now, which does not poll yet."""
        spawning = asyncio.create_task(WorkerChild.spawn())
        try:
            child = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            # Why: a stop in this moment must not lose sight of the process.
            self._children.add(await spawning)
            raise
        self._children.add(child)
        return child

    async def switch_to(self, worker: WorkerChild, roster: Roster) -> None:
        """Let a second worker take over; the old one ends after its last call."""
        old = self.worker
        await self._serve(worker, roster)
        self.roster = roster
        self._publish()
        if old is not None:
            self._spawn_task(self._retire(old))

    def discard(self, worker: WorkerChild) -> None:
        """Drop a worker process that was never used."""
        worker.kill()
        self._children.discard(worker)

    async def _retire(self, worker: WorkerChild) -> None:
        await worker.retire(LAST_CALL_S)
        await worker.ended()
        self.discard(worker)
        self._record()

    async def _start_server(self) -> Server:
        from capuchin_yaml.client.home import project_name
        from capuchin_yaml.client.server import find_or_start

        home = self.plan.home.open(create=True)
        self._lock = self._lock or UpLock.take(home)
        home.make_key()
        self._project = project_name(home)
        server = await find_or_start(
            home, temporal_ui=self.plan.temporal_ui, is_fast=self.plan.is_fast
        )
        self._server = server
        for note in server.notes:
            self.face.warn(note)
        return server

    async def _serve(self, worker: WorkerChild, roster: Roster) -> None:
        home = self.plan.home
        await worker.serve(
            {
                "home": str(home.path),
                "project_dir": str(home.project_dir),
                "project": self._project,
                "agents": _agents_json(roster),
            }
        )
        self.worker = worker
        self._record()
        self._spawn_task(self._watch_over(worker))

    async def _watch_over(self, worker: WorkerChild) -> None:
        """Start another worker when this one ends although nobody told it to."""
        code = await worker.ended()
        if worker is not self.worker:
            return
        self.discard(worker)
        self.face.warn(f"the worker ended ({how_it_ended(code)}); starting another")
        while True:
            await asyncio.sleep(self._pause_s())
            another = await self.spare_worker()
            try:
                await self._serve(another, self.roster)
            except CapuchinError as error:
                self.discard(another)
                self.face.warn(f"the worker does not start: {error}")
            else:
                self.face.news("the worker runs again")
                return

    async def _mend_server(self) -> None:
        """Start our own server again when it ends although nobody told it to."""
        while True:
            server = self._server
            assert server is not None
            await server.wait_ended()
            self.face.warn("the server ended; starting it again")
            await server.close()
            while True:
                await asyncio.sleep(self._pause_s())
                try:
                    again = await self._start_server()
                except CapuchinError as error:
                    self.face.warn(str(error))
                else:
                    break
            if again.target.address != server.target.address and self.worker is not None:
                # Its port was taken meanwhile: only a new process looks for the new one.
                self.worker.kill()
            self.face.news("the server runs again; nothing was lost")

    def _pause_s(self) -> float:
        now = time.monotonic()
        self._ends = [end for end in self._ends if now - end < STEADY_S]
        pause_s = PAUSES_S[min(len(self._ends), len(PAUSES_S) - 1)]
        self._ends.append(now)
        return pause_s

    def _publish(self) -> None:
        write_agents(self.plan.home, [serving.for_others() for serving in self.roster.values()])

    def _record(self) -> None:
        if self._lock is not None and not self._stopping.is_set():
            pids = [child.pid for child in self._children if not child.has_ended]
            self._lock.record(pids, grace_s=self.plan.grace_s)

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _agents_json(roster: Roster) -> dict[str, Any]:
    return {name: serving.to_json() for name, serving in roster.items()}


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in paths)
