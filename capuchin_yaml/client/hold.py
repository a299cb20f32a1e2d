"""Who owns a project's database, who keeps its server alive, and who is looking for it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

from capuchin_yaml.client import guard
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.private_files import shown
from capuchin_yaml.errors import ServerUnavailable, UnsafeState

_LOCK_S = 40.0


@contextlib.asynccontextmanager
async def up_lock(home: Home) -> AsyncIterator[None]:
    """Let one `up` at a time look for, start or end the server of a project.

    Raises:
        ServerUnavailable: another one has held it for too long.
    """
    fd = _open_lock(home.path / "up.lock")
    try:
        if not await _locked_within(fd, _LOCK_S):
            raise ServerUnavailable(
                "another `capuchin up` of this project is still starting"
                f" ({shown(home.path)}); wait for it, or end it"
            )
        yield
    finally:
        os.close(fd)


async def take_server_lock(home: Home, patience_s: float = 0.0) -> int | None:
    """Return a descriptor that owns the database, None while a server or its guard lives."""
    fd = _open_lock(home.path / "server.lock")
    if await _locked_within(fd, patience_s):
        return fd
    os.close(fd)
    return None


class Hold:
    """Keeps the running server alive; it ends with the last of these, or is told to through one."""

    def __init__(self, home: Home, pipe: int) -> None:
        self._home = home
        self._pipe = pipe
        # Shared by all holders, so that one that leaves can see whether it is the last.
        self._lock = _open_lock(home.path / "hold.lock")
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self.tell(guard.HELLO)

    @classmethod
    def take(cls, home: Home) -> Self | None:
        """Hold the server that runs here; None when no guard listens."""
        pipe = guard_pipe(home)
        try:
            fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return None
            raise UnsafeState(
                f"{shown(pipe)} cannot be opened ({error.strerror}); remove it"
            ) from error
        return cls(home, fd)

    def tell(self, word: bytes) -> None:
        """Send the guard one of its words; nothing happens when it is gone."""
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            os.write(self._pipe, word)

    def release(self) -> bool:
        """Let go; whether this was the last hold, so that the server ends unless detached."""
        self.tell(guard.BYE)
        os.close(self._pipe)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(self._lock)


def guard_pipe(home: Home) -> Path:
    """The named pipe that the guard listens on."""
    return home.path / "guard.pipe"


def _open_lock(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnsafeState(
            f"cannot write the state folder {shown(file.parent)} ({error.strerror}); make it"
            " usable, or name another folder in CAPUCHIN_HOME"
        ) from error


async def _locked_within(fd: int, patience_s: float) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(0.02)
        else:
            return True
