"""The pipe between `up` and its worker process: JSON lines both ways, and death is seen by both.

`up` holds the worker's stdin, so the worker sees its end when `up` is gone, however it went. The
worker is a session of its own: Ctrl-C in the terminal reaches `up` alone, and what its tools
started can be ended with it.

To the worker              | answered with
`compile {paths, profile}` | `compiled {results, roots}`
`adopt {agents}`           | `adopted`
`serve {home, ...}`        | `polling`
`retire {grace_s}`         | nothing: the process ends after its last call, or after `grace_s`

A command that fails is answered with `failed {error, message}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from capuchin_yaml import errors
from capuchin_yaml.errors import CapuchinError, WorkerUnavailable
from capuchin_yaml.spec import JsonValue

Message = dict[str, JsonValue]
LINE_BYTES = 256 * 1024 * 1024
"""Longest line; specs with big schemas are far below it."""
KILL_S = 3.0
"""Beyond the grace time, in which the process must be gone."""


class WorkerChild:
    """One worker process, as `up` sees it."""

    def __init__(self, process: asyncio.subprocess.Process, reports: asyncio.StreamReader) -> None:
        self._process = process
        self._reports = reports
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._reader = asyncio.create_task(self._read())
        self._has_work = False

    @classmethod
    async def spawn(cls) -> WorkerChild:
        """Start a worker process. It writes nowhere until it has a state folder for its logs."""
        report_in, report_out = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                # Why: no folder that somebody works in may put a module in the worker's way.
                "-P",
                "-m",
                "capuchin_yaml.cli.worker_main",
                str(report_out),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(report_out,),
                start_new_session=True,
            )
        except BaseException:
            os.close(report_in)
            raise
        finally:
            os.close(report_out)
        reports = asyncio.StreamReader(limit=LINE_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reports), os.fdopen(report_in, "rb")
        )
        return cls(process, reports)

    @property
    def pid(self) -> int:
        """The process's number, which is its session's too."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.returncode is not None

    async def compile(self, paths: Sequence[Path], profile: str | None = None) -> Message:
        """Have the files read by the code that would run them."""
        named = [str(path) for path in paths]
        return await self._call({"do": "compile", "paths": named, "profile": profile})

    async def adopt(self, agents: Mapping[str, JsonValue]) -> None:
        """Make these the agents of new conversations."""
        await self._call({"do": "adopt", "agents": dict(agents)})

    async def serve(self, settings: Mapping[str, JsonValue]) -> None:
        """Connect and take work; returns when it polls."""
        self._has_work = True
        await self._call({"do": "serve", **settings})

    async def retire(self, grace_s: float) -> None:
        """Tell the process to take no more work and to end after its last call."""
        with contextlib.suppress(WorkerUnavailable):
            await self._send({"do": "retire", "grace_s": grace_s})

    async def ended(self) -> int:
        """The exit code, once the process is gone; negative for a signal."""
        return await self._process.wait()

    async def end(self, grace_s: float, hurry: asyncio.Event) -> None:
        """Let the running calls finish for `grace_s` seconds, then end it and what it started.

        `hurry` cuts the patience short.
        """
        gone = asyncio.create_task(self.ended())
        if not self._has_work:
            self.kill()
        await self.retire(grace_s)
        in_a_hurry = asyncio.create_task(hurry.wait())
        await asyncio.wait(
            {gone, in_a_hurry}, timeout=grace_s + KILL_S, return_when=asyncio.FIRST_COMPLETED
        )
        in_a_hurry.cancel()
        self.kill()
        await gone
        self._reader.cancel()

    def kill(self) -> None:
        """End the process and every process that its tools left behind, now."""
        # Why the group: it outlives its leader as long as a tool's own process is in it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _call(self, message: Message) -> Message:
        number = next(self._numbers)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({**message, "id": number})
            reply = await answer
        finally:
            self._waiting.pop(number, None)
        if reply["event"] == "failed":
            raise _error(str(reply["error"]), str(reply["message"]))
        return reply

    async def _send(self, message: Message) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            await stdin.drain()
        except (OSError, RuntimeError) as error:
            raise WorkerUnavailable("the worker process has ended") from error

    async def _read(self) -> None:
        try:
            while line := await self._reports.readline():
                reply = json.loads(line)
                answer = self._waiting.get(reply.get("id", 0))
                if answer is not None and not answer.done():
                    answer.set_result(reply)
        finally:
            code = self._process.returncode
            for answer in self._waiting.values():
                if not answer.done():
                    how = "" if code is None else f" ({how_it_ended(code)})"
                    answer.set_exception(WorkerUnavailable(f"the worker process has ended{how}"))


def how_it_ended(code: int) -> str:
    """An exit code in words: `exit code 1` or `signal 9`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _error(name: str, message: str) -> CapuchinError:
    found = getattr(errors, name, None)
    if isinstance(found, type) and issubclass(found, CapuchinError):
        return found(message)
    return WorkerUnavailable(message)
