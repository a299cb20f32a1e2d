"""The worker process of `up`: obeys the pipe, and never outlives its other end.

Run as `python -m capuchin_yaml.cli.worker_main REPORT_FD` with the commands on stdin; the words
of the pipe are in `worker_link`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from capuchin_yaml.cli.agents_on_disk import code_roots, compile_agents, on_disk_json
from capuchin_yaml.cli.logs import MAX_LOG_BYTES, start_logs
from capuchin_yaml.cli.serving import serve, swap
from capuchin_yaml.cli.worker_link import LINE_BYTES, Message
from capuchin_yaml.errors import CapuchinError

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.engine.scrub_output import ScrubbedLog

ORPHAN_S = 0.7
"""Time that running calls get once `up` is gone: nobody waits for them any more."""
TERM_S = 10.0
"""Time they get when somebody else ends this process."""
REPORT_S = 1.0
"""Time to tell the server of calls that were cut off."""
_TO_SERVE = (
    "capuchin_yaml.client.connection",
    "capuchin_yaml.client.project_store",
    "capuchin_yaml.cli.running_calls",
    "capuchin_yaml.engine.worker",
    "jsonschema",
)
"""What serving needs and compiling does not; half of the time from `up` to the first call."""
logger = logging.getLogger("capuchin_yaml.worker")


class WorkerProcess:
    """Obeys `up` until it says to end, or is gone."""

    def __init__(self, reports: BinaryIO) -> None:
        from capuchin_yaml.engine.agents import AgentTable
        from capuchin_yaml.tools.registry import Registry

        self.output: ScrubbedLog | None = None
        """Where stdout and stderr lead, once this process serves."""
        self._reports = reports
        self._registry = Registry.installed()
        self._table = AgentTable()
        self._answering: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._is_orphan = False
        self._work: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, commands: asyncio.StreamReader) -> int:
        """Carry out commands; returns the exit code once everything is drained."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end_in, TERM_S)
        listening = asyncio.create_task(self._listen(commands))
        listening.add_done_callback(lambda _: self._end_as_orphan())
        return await self._code

    async def _listen(self, commands: asyncio.StreamReader) -> None:
        while line := await commands.readline():
            message = json.loads(line)
            if message["do"] == "retire":
                self._end_in(float(message["grace_s"]))
                continue
            # Why a task: an import that hangs must not keep `retire` from being heard.
            task = asyncio.create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, message: Message) -> None:
        try:
            reply = await self._obey(message)
        except CapuchinError as error:
            reply = {"event": "failed", "error": type(error).__name__, "message": str(error)}
        except Exception as error:
            logger.exception("command %s failed", message["do"])
            text = f"{type(error).__name__}: {error}"
            reply = {"event": "failed", "error": "WorkerUnavailable", "message": text}
        self._reports.write(json.dumps({**reply, "id": message["id"]}).encode() + b"\n")
        self._reports.flush()
        if self._loading is None:
            # Why only now: `up` waits for the answer first, and then for its server.
            self._loading = asyncio.create_task(asyncio.to_thread(_load))

    async def _obey(self, message: Message) -> Message:
        match message["do"]:
            case "compile":
                return await asyncio.to_thread(
                    self._compile, message["paths"], message.get("profile")
                )
            case "adopt":
                swap(self._table, message["agents"])
                return {"event": "adopted"}
            case "serve":
                swap(self._table, message["agents"])
                await self._serve(message)
                return {"event": "polling"}
            case other:
                raise ValueError(f"unknown command {other!r}")

    def _compile(self, paths: list[str], profile: str | None) -> Message:
        compiled = compile_agents([Path(path) for path in paths], self._registry, profile)
        specs = [c.spec for c in compiled if c.spec is not None]
        return {
            "event": "compiled",
            "results": [on_disk_json(c) for c in compiled],
            "roots": [str(root) for root in code_roots(specs)],
        }

    async def _serve(self, message: Message) -> None:
        if self._loading is not None:
            await self._loading
        from capuchin_yaml.client.home import Home
        from capuchin_yaml.client.server import find_server

        home = Home(Path(message["home"]), Path(message["project_dir"])).open()
        self.output = self.output or _send_output_to(home)
        ready = asyncio.Event()
        self._work = asyncio.create_task(
            serve(
                home,
                project=message["project"],
                target=await find_server(home),
                agents=self._table,
                registry=self._registry,
                stop=self._stop,
                ready=ready,
                hurry=self._hurry,
                output=self.output,
            )
        )
        polling = asyncio.create_task(ready.wait())
        await asyncio.wait({polling, self._work}, return_when=asyncio.FIRST_COMPLETED)
        polling.cancel()
        if self._work.done():
            work, self._work = self._work, None
            work.result()
        else:
            self._work.add_done_callback(self._work_ended)

    def _end_in(self, grace_s: float) -> None:
        """Take no more work; end after the last call or `grace_s` seconds (the newest counts)."""
        self._stop.set()
        if self._limit is not None:
            self._limit.cancel()
        self._limit = asyncio.get_running_loop().call_later(grace_s, self._cut_off)
        if self._work is None or self._work.done():
            self._finish(0)

    def _end_as_orphan(self) -> None:
        # The pipe's end is the end of `up`: nobody waits for the running calls any more, and
        # nobody else ends what tools have started.
        self._is_orphan = True
        self._end_in(ORPHAN_S)

    def _cut_off(self) -> None:
        self._hurry.set()
        self._limit = asyncio.get_running_loop().call_later(REPORT_S, self._finish, 1)

    def _work_ended(self, work: asyncio.Task[None]) -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            logger.error("the worker failed", exc_info=error)
            self._finish(1)
        else:
            self._finish(0)

    def _finish(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(1 if self._is_orphan else code)


def _load() -> None:
    for name in _TO_SERVE:
        importlib.import_module(name)


def main() -> None:
    """Run the process; it ends hard, because nothing may be left that keeps it."""
    # Why moved: a tool that reads stdin, or starts a program that does, must not take commands.
    commands = os.fdopen(os.dup(0), "rb", buffering=0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    reports = os.fdopen(int(sys.argv[1]), "wb")
    os.set_inheritable(reports.fileno(), False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start_logs(verbose=False)
    asyncio.run(_run(commands, reports))


async def _run(commands: BinaryIO, reports: BinaryIO) -> int:
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), commands
    )
    process = WorkerProcess(reports)
    code = await process.run(reader)
    logging.shutdown()
    if process.output is not None:
        process.output.drain()
    # Why so hard: threads of tools and of the SDK would keep the process, and what tools
    # started in this session would outlive it.
    if code and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(code)


def _send_output_to(home: Home) -> ScrubbedLog | None:
    """What tools and native code write goes to a log: never to a terminal, never to the pipe."""
    from capuchin_yaml.engine.scrub_output import ScrubbedLog

    start_logs(verbose=False, log_file=home.log_dir / "worker.log")
    output: ScrubbedLog | None = None
    file = home.log_dir / "worker-output.log"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        if file.exists() and file.stat().st_size > MAX_LOG_BYTES:
            flags |= os.O_TRUNC
        output = ScrubbedLog(os.open(file, flags, 0o600), home.log_dir)
    # Why: the process ends hard, and what a tool printed must not be lost in a buffer.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    return output


if __name__ == "__main__":
    main()
