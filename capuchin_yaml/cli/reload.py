"""Hot reload: changed agent files are swapped in place, changed package code gets a new worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capuchin_yaml.cli.agents_on_disk import on_disk_from_json
from capuchin_yaml.cli.roster import Loosening, OnDisk, next_roster
from capuchin_yaml.cli.watch_files import Marks, code_files, marks, wake_ups
from capuchin_yaml.cli.worker_link import Message, WorkerChild
from capuchin_yaml.errors import CapuchinError

if TYPE_CHECKING:
    from capuchin_yaml.cli.supervise import Supervisor

logger = logging.getLogger(__name__)


def read_compiled(reply: Message) -> tuple[tuple[OnDisk, ...], tuple[Path, ...]]:
    """The agents and the code roots in a worker's answer to `compile`."""
    agents = tuple(on_disk_from_json(value) for value in reply["results"])
    return agents, tuple(Path(root) for root in reply["roots"])


class Reloader:
    """Watches the files of what is served and brings each change into use."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._find = supervisor.plan.find
        self._profile = supervisor.plan.profile
        # Why before the first compile: a change that comes while everything starts counts too.
        self._agents = marks(self._files())
        self._roots: tuple[Path, ...] = ()
        self._code: Marks = {}
        self._parts: tuple[Path, ...] = ()
        self._accepted: frozenset[str] = frozenset()
        self._asking: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def first_look(self, worker: WorkerChild) -> tuple[OnDisk, ...]:
        """Have the agents compiled, and remember the code that this has loaded.

        Raises:
            WorkerUnavailable: the worker process ended under it.
        """
        agents, roots = read_compiled(await worker.compile(self._find, self._profile))
        self._set_roots(roots)
        self._parts = _parts(agents)
        self._agents |= marks(self._parts)
        return agents

    async def watch(self) -> None:
        """React to changes until cancelled."""
        try:
            await asyncio.gather(self._watch_agents(), self._watch_code())
        finally:
            self._stop_asking()

    async def _watch_agents(self) -> None:
        folders = sorted({p if p.is_dir() else p.parent for p in self._find})
        async with aclosing(wake_ups(folders, recursive=False)) as wakes:
            async for _ in wakes:
                now = marks([*self._files(), *self._parts])
                if now != self._agents and await self._tried(self._reload()):
                    self._agents = now | marks(self._parts)

    async def _watch_code(self) -> None:
        while True:
            roots = self._roots
            async with aclosing(wake_ups(roots, recursive=True)) as wakes:
                async for _ in wakes:
                    now = await asyncio.to_thread(lambda: marks(code_files(self._roots)))
                    if now != self._code and await self._tried(self._renew_worker()):
                        self._code = now
                    if roots != self._roots:
                        break

    def _files(self) -> list[Path]:
        from capuchin_yaml.compiler.load import find_agents

        return list(find_agents(self._find))

    async def _tried(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run one change; False when it should be tried again at the next wake-up."""
        async with self._one_at_a_time:
            try:
                await work
            except CapuchinError as error:
                # The worker may have ended under it; it is being started again meanwhile.
                logger.warning("reload failed: %s", error)
                return False
        return True

    async def _reload(self) -> None:
        self._stop_asking()
        worker = self._supervisor.worker
        if worker is None:
            return
        agents, roots = read_compiled(await worker.compile(self._find, self._profile))
        self._parts = _parts(agents)
        step = next_roster(self._supervisor.roster, agents, self._accepted)
        await self._supervisor.adopt(step.roster)
        self._say(step.news, step.warnings)
        self._set_roots(roots)
        if step.asks:
            self._asking = asyncio.create_task(self._ask(step.asks, code=False))

    async def _renew_worker(self) -> None:
        self._stop_asking()
        face = self._supervisor.face
        face.stage("package code changed: trying it in a second worker")
        spare = await self._supervisor.spare_worker()
        taken = False
        try:
            agents, roots = read_compiled(await spare.compile(self._find, self._profile))
            step = next_roster(self._supervisor.roster, agents, self._accepted)
            if step.broke:
                self._say((), step.warnings)
                face.warn("the package code before is still the one that runs")
            elif step.asks:
                self._asking = asyncio.create_task(self._ask(step.asks, code=True))
            else:
                await self._supervisor.switch_to(spare, step.roster)
                taken = True
                self._say(step.news, step.warnings)
                face.news("the new package code runs; the old worker ends after its last call")
                self._set_roots(roots)
        finally:
            if not taken:
                self._supervisor.discard(spare)

    async def _ask(self, asks: Sequence[Loosening], *, code: bool) -> None:
        """Ask for each; a yes brings the change into use for new conversations."""
        face = self._supervisor.face
        for ask in asks:
            title, body = question(ask)
            agreed = await face.agrees(title, body)
            if agreed:
                self._accepted |= {ask.definition_hash}
                continue
            face.warn(f"{title}; new conversations still get the version before{way_out(agreed)}")
        if any(ask.definition_hash in self._accepted for ask in asks):
            self._asking = None  # this very task; what follows must not cancel it
            await self._tried(self._renew_worker() if code else self._reload())

    def _say(self, news: Sequence[str], warnings: Sequence[str]) -> None:
        for text in news:
            self._supervisor.face.news(text)
        for text in warnings:
            self._supervisor.face.warn(text)

    def _set_roots(self, roots: tuple[Path, ...]) -> None:
        if roots != self._roots:
            self._roots = roots
            self._code = marks(code_files(roots))

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None


def _parts(agents: Sequence[OnDisk]) -> tuple[Path, ...]:
    return tuple(sorted({part for agent in agents for part in agent.parts}))


def question(ask: Loosening) -> tuple[str, str]:
    """What a person is asked before a loosened agent is used."""
    tools = ", ".join(ask.tools)
    return (
        f"{ask.path} loosens its approval: {tools} would run without asking",
        f"{ask.name} would be: {ask.sentence}",
    )


def way_out(agreed: bool | None) -> str:
    """What to type where nobody could be asked."""
    if agreed is None:
        return "; to use it: stop `capuchin up` (or capuchin down) and start it again"
    return ""
