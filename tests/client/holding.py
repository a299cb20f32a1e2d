"""Processes that hold a project's server as `up` does, and waiting for the end of others."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import select
import sys
import time
from dataclasses import dataclass
from typing import Self

from capuchin_yaml.client.guard import process_start
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.processes import end_process

_HOLDER = """
import asyncio, dataclasses, json, signal, sys
from pathlib import Path
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.server import find_or_start

async def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = await find_or_start(Home.find(Path(sys.argv[1])))
    found = {"was_started": server.was_started, "notes": server.notes}
    print(json.dumps(found | dataclasses.asdict(server.record)), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass(frozen=True)
class Holder:
    """A process that holds a server, and what it found."""

    process: asyncio.subprocess.Process
    was_started: bool
    notes: list[str]
    pid: int
    start: str
    guard_pid: int
    guard_start: str
    port: int

    @classmethod
    async def of(cls, home: Home) -> Self:
        """Start the process and wait until its server is ready."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _HOLDER, str(home.project_dir)),
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            found = json.loads(await process.stdout.readline())
        except BaseException:
            process.kill()
            await process.wait()
            raise
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(process, **{name: found[name] for name in names & found.keys()})

    async def kill(self) -> None:
        """End it as `kill -9` does."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def clear(self) -> None:
        """End it and whatever it has left behind."""
        await self.kill()
        end_process(self.guard_pid, self.guard_start)
        end_process(self.pid, self.start)
        assert is_gone_within(self.pid, self.start, 5.0)


def is_gone_within(pid: int, start: str, seconds: float) -> bool:
    """Wait until a process that is not our child has ended; false when it takes longer."""
    deadline = time.monotonic() + seconds
    if hasattr(os, "pidfd_open"):
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            if process_start(pid) == start:
                select.select([fd], [], [], seconds)
        finally:
            os.close(fd)
    while process_start(pid) == start and time.monotonic() < deadline:
        time.sleep(0.01)
    return process_start(pid) != start
