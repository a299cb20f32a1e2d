"""`capuchin worker`: a worker alone, for a real cluster; scale by running more of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_file import told_to_others
from capuchin_yaml.cli.agents_on_disk import compile_agents, rule_places, shown_problems, ungranted
from capuchin_yaml.cli.answering_model import FORCED, answering_model
from capuchin_yaml.cli.durations import DURATION
from capuchin_yaml.cli.logs import drop_old_worker_logs
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import home_of, start_logs_in
from capuchin_yaml.cli.roster import OnDisk, Roster, first_roster
from capuchin_yaml.cli.stopping import stop_signals
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.terminal_text import visible

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.client.target import Target
    from capuchin_yaml.tools.registry import Registry

GRACE_S = 30.0
REPORT_S = 1.0
"""Time to tell the server of calls that were cut off."""


@click.command(cls=Verb)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--grace",
    "grace_s",
    type=DURATION,
    default=f"{GRACE_S:g}s",
    show_default=True,
    metavar="TIME",
    help="How long running calls may take once it is told to stop.",
)
@options.profile
def command(paths: tuple[Path, ...], grace_s: float, profile: str | None) -> ExitCode:
    """Run a worker alone, for a real cluster.

    The server is the one that TEMPORAL_ADDRESS or a temporal.toml profile names, else this
    project's own. SIGTERM and Ctrl-C let running calls finish; once more ends it at once. A
    worker never rehearses: without the key of a model it does not start.
    """
    return run_async(_worker(output(), paths, grace_s, profile))


async def _worker(
    out: Output, paths: tuple[Path, ...], grace_s: float, profile: str | None
) -> ExitCode:
    from capuchin_yaml.tools.registry import Registry

    registry = Registry.installed()
    roster = _roster(out, paths, registry, profile)
    if roster is None or not _has_models(out, roster):
        return ExitCode.REFUSED
    home = home_of(paths).open(create=True)
    drop_old_worker_logs(home.log_dir)
    start_logs_in(home, f"worker-{os.getpid()}.log")
    sys.stdout = sys.stderr = _VisibleLines(sys.stderr)
    return await _serve(out, home, roster, registry, grace_s)


def _roster(
    out: Output, paths: tuple[Path, ...], registry: Registry, profile: str | None
) -> Roster | None:
    compiled = compile_agents(paths, registry, profile)
    for one in compiled:
        out.tell_rendered(shown_problems(one))
    if any(one.spec is None for one in compiled):
        return None
    roster, problems = first_roster(
        [OnDisk(one.path, one.spec, rule_places=rule_places(one)) for one in compiled]
    )
    chosen = {one.path: one.profile for one in compiled}
    wants = [ungranted(s.spec, s.path, chosen[s.path]) for s in roster.values()]
    problems = (*problems, *(f"error: {want}" for want in wants if want))
    for problem in problems:
        out.tell(problem)
    if not roster:
        out.fail(f"no agent files in {', '.join(str(path) for path in paths)}")
    return None if problems or not roster else roster


def _has_models(out: Output, roster: Roster) -> bool:
    """Whether every agent is answered by the model that is meant, and not by a stand-in."""
    is_complete = True
    for name, serving in roster.items():
        try:
            model = answering_model(serving.spec.model, settings=serving.spec.model_settings)
        except ModelRejected as error:
            out.fail(f"{name}: {error}")
            is_complete = False
            continue
        if model.notice:
            out.fail(f"{name}: {model.notice}; a worker does not rehearse. Set {model.key}")
            is_complete = False
        elif serving.spec.model is None and not os.environ.get(FORCED):
            out.fail(
                f"{name} names no model, and a worker does not rehearse. Write `model:` in "
                f"{serving.path}, or set {FORCED} ({FORCED}=rehearsal to rehearse on purpose)"
            )
            is_complete = False
    return is_complete


async def _serve(
    out: Output, home: Home, roster: Roster, registry: Registry, grace_s: float
) -> ExitCode:
    from capuchin_yaml.cli.serving import serve, swap
    from capuchin_yaml.client.cluster import ensure_search_attributes, retention_note
    from capuchin_yaml.client.connection import connect_unsealed
    from capuchin_yaml.client.home import project_name
    from capuchin_yaml.client.server import find_server
    from capuchin_yaml.engine.agents import AgentTable
    from capuchin_yaml.engine.contract import task_queue
    from capuchin_yaml.engine.deployment import deployment_from

    project = project_name(home)
    deployment = deployment_from(os.environ)
    target = await find_server(home)
    home.key()
    client = await connect_unsealed(target)
    await ensure_search_attributes(client)
    if (note := await retention_note(client)) is not None:
        out.warn(note)
    table = AgentTable()
    swap(table, {name: serving.to_json() for name, serving in roster.items()})
    stop, ready = asyncio.Event(), asyncio.Event()
    signals = _Signals(stop, grace_s)
    work = asyncio.create_task(
        serve(
            home,
            project=project,
            target=target,
            agents=table,
            registry=registry,
            stop=stop,
            ready=ready,
            hurry=signals.hurry,
            deployment=deployment,
        )
    )
    signals.listen()
    polling = asyncio.create_task(ready.wait())
    await asyncio.wait({polling, work}, return_when=asyncio.FIRST_COMPLETED)
    if ready.is_set():
        out.tell(f"polling {task_queue(project)} at {target.address}: {', '.join(roster)}")
        if deployment is not None:
            command = deployment.command(address=target.address, namespace=client.namespace)
            out.tell(f"build {deployment.build_id} takes work once it is current: {command}")
        marks = asyncio.create_task(_tell_others(home, target, project, roster))
        out_of_time = asyncio.create_task(signals.out_of_time())
        await asyncio.wait({work, out_of_time}, return_when=asyncio.FIRST_COMPLETED)
        out_of_time.cancel()
        marks.cancel()
        await asyncio.gather(marks, return_exceptions=True)
    polling.cancel()
    if work.done():
        await work
        out.tell("stopped")
    return ExitCode.INTERRUPTED if signals.number == signal.SIGINT else ExitCode.DONE


async def _tell_others(home: Home, target: Target, project: str, roster: Roster) -> None:
    """Keep every terminal told, on whatever machine, which agents are served here."""
    from capuchin_yaml.client.connection import connect_temporal
    from capuchin_yaml.client.served import Marks

    client = await connect_temporal(target, key=home.key())
    told = {
        name: told_to_others(serving.for_others())
        | {"model": answering_model(serving.spec.model).name}
        for name, serving in roster.items()
    }
    await Marks(client, project, told).keep()


class _Signals:
    """The first signal drains, the second (or the end of the grace time) cuts calls off."""

    def __init__(self, stop: asyncio.Event, grace_s: float) -> None:
        self._stop = stop
        self._grace_s = grace_s
        self.hurry = asyncio.Event()
        self.number: int | None = None

    def listen(self) -> None:
        """Take over the signals of this process."""
        for number in stop_signals():
            asyncio.get_running_loop().add_signal_handler(number, self._take, number)

    async def out_of_time(self) -> None:
        """Return when calls that were cut off have had the time to be reported."""
        await self.hurry.wait()
        await asyncio.sleep(REPORT_S)

    def _take(self, number: int) -> None:
        if self._stop.is_set():
            self.hurry.set()
            return
        self.number = number
        self._stop.set()
        asyncio.get_running_loop().call_later(self._grace_s, self.hurry.set)


class _VisibleLines:
    """stdout and stderr for tool code of this process: what it prints is made visible first."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write with control marks spelled out."""
        self._stream.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Pass on."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Tools should not paint here."""
        return False

    def fileno(self) -> int:
        """The descriptor below."""
        return self._stream.fileno()
