"""Start our own dev server under its guard, wait until it takes conversations, and end it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys

from capuchin_yaml.client import guard
from capuchin_yaml.client.dev_server import (
    LOOPBACK,
    TEMPORAL_NEEDED,
    Ports,
    ServerRecord,
    free_ports,
    has_crashed,
    last_words,
    logged_since,
    read_record,
    server_command,
    server_log,
)
from capuchin_yaml.client.hold import Hold, guard_pipe, take_server_lock
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.private_files import shown
from capuchin_yaml.client.processes import end_process, listeners
from capuchin_yaml.client.target import Target
from capuchin_yaml.errors import ServerUnavailable
from capuchin_yaml.terminal_text import visible

_GUARD = os.path.realpath(guard.__file__)
_SPAWN_S = 15.0
_READY_S = 30.0
_END_S = 4.0
_ATTEMPTS = 4
_LEAST_FREE_BYTES = 4 * 1024 * 1024
"""The database alone takes more than this within its first moments."""
# What the server may see of our environment: no keys, and no setting of Temporal's own.
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ")


async def start_server(
    home: Home, lock: int, wanted: Ports, *, temporal_ui: bool, is_fast: bool
) -> tuple[ServerRecord, Hold]:
    """Start guard and server on free ports, the wanted ones where they can be had.

    `lock` owns the database; guard and server inherit it.

    Raises:
        ServerUnavailable: the server cannot be run, or does not become ready.
    """
    # While the server starts, load what will talk to it.
    loading = asyncio.create_task(
        asyncio.to_thread(importlib.import_module, "capuchin_yaml.client.connection")
    )
    for _ in range(_ATTEMPTS):
        port, http_port, metrics_port, ui_port = free_ports(wanted)
        ports = (port, http_port, metrics_port, ui_port if temporal_ui else 0)
        log = server_log(home)
        logged_bytes = log.stat().st_size if log.exists() else 0
        holder = await _spawn(home, ports, lock, is_fast=is_fast)
        try:
            record = read_record(home)
            if record is None:
                raise ServerUnavailable(f"{shown(home.server_file)} vanished; run it again")
            await loading
            failure = await _wait_ready(record)
        except BaseException:
            holder.release()
            raise
        if failure is None:
            return record, holder
        holder.release()
        await _guard_ended(record)
        logged = logged_since(home, logged_bytes)
        words = last_words(logged) or failure
        # Why: a port may be taken between our choosing it and the server's binding it, and the
        # server chooses more for itself.
        if "address already in use" not in logged and not has_crashed(logged):
            break
        if any(f":{taken}: " in logged for taken in ports if taken):
            wanted = (0, 0, 0, 0)
    raise _failed(home, words)


async def prepare(target: Target, *, patience_s: float = 0.0, is_ours: bool = False) -> None:
    """Check that a server answers, and make what conversations need in its namespace.

    Raises:
        ServerUnavailable: it does not answer within `patience_s` and one attempt, or what is
            missing in its namespace cannot be made by this user.
    """
    from capuchin_yaml.client import cluster
    from capuchin_yaml.client.connection import connect_unsealed

    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    while True:
        try:
            client = await connect_unsealed(target)
            await cluster.ensure_search_attributes(client)
            if is_ours:
                await cluster.keep_for_ever(client)
        except ServerUnavailable:
            # A server that has just started takes a moment to make its namespace.
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(0.02)
        else:
            return


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


async def _spawn(home: Home, ports: Ports, lock: int, *, is_fast: bool) -> Hold:
    pipe = guard_pipe(home)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe, 0o600)
    ear = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    holder = Hold.take(home)
    if holder is None:
        os.close(ear)
        raise ServerUnavailable(f"{shown(pipe)} vanished; run it again")
    # Why a copy: if we are cancelled, the thread still needs it for a moment.
    inherited_lock = os.dup(lock)
    names = ("port", "http_port", "metrics_port", "ui_port")
    plan = {
        "state_file": str(home.server_file),
        "log_file": str(server_log(home)),
        "pipe_file": str(pipe),
        "up_lock_file": str(home.path / "up.lock"),
        "server_lock": inherited_lock,
        "record": {"v": 1, "is_fast": is_fast, **dict(zip(names, ports, strict=True))},
    }
    command = [sys.executable, "-I", "-S", _GUARD, json.dumps(plan)]
    command += server_command(home, ports, is_fast=is_fast)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["TEMPORAL_VERSION_CHECK_DISABLED"] = "1"

    def run() -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                command,
                stdin=ear,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=home.path,
                pass_fds=(inherited_lock,),
                start_new_session=True,
                timeout=_SPAWN_S,
                check=False,
            )
        finally:
            os.close(ear)
            os.close(inherited_lock)

    try:
        # Why shielded: a cancelled thread may never run, and then nobody closes what it inherits.
        ran = await asyncio.shield(asyncio.to_thread(run))
    except subprocess.TimeoutExpired as error:
        holder.release()
        raise ServerUnavailable(f"the dev server was not started within {_SPAWN_S:g} s") from error
    except BaseException:
        holder.release()
        raise
    if ran.returncode:
        holder.release()
        cause = visible(ran.stderr.decode(errors="replace").strip().rpartition("\n")[2])
        way_out = _room(home) or f"install it again: {TEMPORAL_NEEDED}"
        raise ServerUnavailable(f"the dev server cannot be run ({cause}); {way_out}")
    return holder


async def _wait_ready(record: ServerRecord) -> str | None:
    """Wait until the server takes conversations; what is wrong when it never will."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_S
    while loop.time() < deadline:
        if guard.process_start(record.pid) != record.start:
            return "it ended at once"
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, record.port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.close()
        break
    try:
        await prepare(
            Target(address=record.address), patience_s=deadline - loop.time(), is_ours=True
        )
    except ServerUnavailable as error:
        return str(error)
    open_to_others = [
        f"{listener.host}:{listener.port}"
        for listener in listeners(record.pid) or ()
        if not listener.is_loopback
    ]
    if open_to_others:
        return f"it listens where other machines can reach it: {', '.join(open_to_others)}"
    return None


async def _guard_ended(record: ServerRecord) -> None:
    """Wait until all that the server said is in its log, and it is gone; not for ever."""
    deadline = asyncio.get_running_loop().time() + guard.POLITE_S + 2.0
    # Why no event: the guard is nobody's child of ours.
    while (  # noqa: ASYNC110
        guard.process_start(record.guard_pid) == record.guard_start
        and asyncio.get_running_loop().time() < deadline
    ):
        await asyncio.sleep(0.01)


def _failed(home: Home, words: str) -> ServerUnavailable:
    database = shown(home.database)
    hint = f"its log is {shown(server_log(home))}"
    if "not a database" in words or "malformed" in words:
        hint = f"{database} is damaged; put a copy back, or move it away to start anew"
    elif "no such table" in words or "locked" in words or "busy" in words:
        hint = f"another program has {database} open; end it"
    elif "unable to open" in words or "readonly" in words:
        hint = f"{database} cannot be written; mend it, or name another folder in CAPUCHIN_HOME"
    return ServerUnavailable(f"the dev server does not start ({words}); {_room(home) or hint}")


def _room(home: Home) -> str:
    """Say that the disk is full, which a server without room for its log cannot say itself."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage(home.path).free < _LEAST_FREE_BYTES:
            return (
                f"the disk that holds {shown(home.path)} is full; free some space, or name a"
                " folder elsewhere in CAPUCHIN_HOME"
            )
    return ""
