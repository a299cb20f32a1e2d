"""The server lives exactly as long as somebody holds it, however the holder ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from capuchin_yaml.client import guard
from capuchin_yaml.client.dev_server import read_record
from capuchin_yaml.client.guard import LOG_BYTES, POLITE_S, process_start
from capuchin_yaml.client.hold import guard_pipe, take_server_lock
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.server import find_or_start, find_server, stop
from capuchin_yaml.errors import ServerUnavailable
from tests.client.conftest import Holding
from tests.client.holding import is_gone_within

END_S = 2.0


async def test_a_killed_parent_takes_the_server_with_it_within_two_seconds(hold: Holding) -> None:
    holder = await hold()

    holder.process.kill()

    assert is_gone_within(holder.pid, holder.start, END_S)
    assert is_gone_within(holder.guard_pid, holder.guard_start, 1.0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
async def test_an_ended_guard_takes_the_server_with_it(
    hold: Holding, number: signal.Signals
) -> None:
    holder = await hold()

    os.kill(holder.guard_pid, number)

    assert is_gone_within(holder.pid, holder.start, END_S)


async def test_ctrl_c_in_the_terminal_of_up_does_not_reach_the_server(
    project: Home, hold: Holding
) -> None:
    holder = await hold()

    os.killpg(holder.process.pid, signal.SIGINT)
    target = await find_server(project)

    assert target.address == f"127.0.0.1:{holder.port}"
    ours = holder.process.pid
    assert ours not in (os.getsid(holder.pid), os.getpgid(holder.pid), os.getsid(holder.guard_pid))


async def test_the_server_stays_while_another_up_holds_it(project: Home, hold: Holding) -> None:
    first, second = await hold(), await hold()

    await first.kill()

    assert not is_gone_within(first.pid, first.start, POLITE_S + 0.5)
    assert (second.was_started, second.pid) == (False, first.pid)
    await second.kill()
    assert is_gone_within(first.pid, first.start, END_S)


async def test_a_detached_server_lives_on_until_it_is_stopped(project: Home) -> None:
    server = await find_or_start(project)
    server.detach()
    await server.close()
    record = server.record
    assert record is not None

    assert (await find_server(project)).address == record.address
    assert await stop(project)
    assert process_start(record.pid) != record.start
    assert process_start(record.guard_pid) != record.guard_start
    assert not await stop(project)


async def test_an_up_that_joins_a_detached_server_does_not_end_it(project: Home) -> None:
    server = await find_or_start(project)
    server.detach()
    await server.close()

    async with await find_or_start(project) as joined:
        assert not joined.was_started

    assert (await find_server(project)).address == server.target.address


async def test_after_everything_was_killed_the_next_up_starts_on_the_same_ports(
    project: Home, hold: Holding
) -> None:
    holder = await hold()
    await holder.clear()
    assert is_gone_within(holder.pid, holder.start, END_S)
    with pytest.raises(ServerUnavailable, match="capuchin up"):
        await find_server(project)

    async with await find_or_start(project) as server:
        assert server.was_started
        assert server.record is not None
        assert server.record.port == holder.port
        assert server.record.pid != holder.pid


async def test_a_holder_learns_that_its_server_was_killed_and_can_start_it_again(
    project: Home,
) -> None:
    async with await find_or_start(project) as server:
        assert server.record is not None
        os.kill(server.record.pid, signal.SIGKILL)

        async with asyncio.timeout(5):
            await server.wait_ended()
        await server.close()
        async with await find_or_start(project) as again:
            assert again.target == server.target


async def test_closing_returns_when_the_server_is_gone(project: Home) -> None:
    server = await find_or_start(project)
    assert server.record is not None

    await server.close()

    assert process_start(server.record.pid) != server.record.start


async def test_an_up_that_is_interrupted_while_it_starts_leaves_no_server(project: Home) -> None:
    starting = asyncio.create_task(find_or_start(project))
    async with asyncio.timeout(20):
        while not guard_pipe(project).exists():  # noqa: ASYNC110 - the moment is what is tested
            await asyncio.sleep(0)

    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    lock = await take_server_lock(project, 4.0)
    assert lock is not None
    os.close(lock)


def guarded(home: Home, *command: str) -> subprocess.Popen[bytes]:
    """Run a guard over another program than the server; our end of its pipe is its stdin."""
    home.open(create=True)
    lock = os.open(home.path / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    plan = {
        "state_file": str(home.server_file),
        "log_file": str(home.log_dir / "server.log"),
        "pipe_file": str(home.path / "guard.pipe"),
        "up_lock_file": str(home.path / "up.lock"),
        "server_lock": lock,
        "record": {
            **{"port": 1, "http_port": 2, "metrics_port": 3, "ui_port": 0},
            "is_fast": False,
        },
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, json.dumps(plan), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock,),
        cwd=home.path,
    )
    os.close(lock)
    assert process.wait() == 0
    return process


def test_the_log_of_the_server_is_bounded(project: Home) -> None:
    chatter = f"print(('x' * 99 + chr(10)) * {LOG_BYTES // 20})"
    process = guarded(project, sys.executable, "-c", chatter)
    record = read_record(project)
    assert record is not None
    assert is_gone_within(record.guard_pid, record.guard_start, 20)
    assert process.stdin is not None
    process.stdin.close()

    sizes = [file.stat().st_size for file in project.log_dir.iterdir()]
    assert len(sizes) == 2
    assert all(size <= LOG_BYTES + 65536 for size in sizes)
    project.server_file.unlink()


def test_a_server_that_ignores_the_polite_signal_is_killed(project: Home) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('up', flush=True); time.sleep(60)"
    )
    process = guarded(project, sys.executable, "-c", stubborn)
    record = read_record(project)
    assert record is not None
    log = project.log_dir / "server.log"
    deadline = time.monotonic() + 20
    while log.read_text() != "up\n" and time.monotonic() < deadline:
        time.sleep(0.01)

    assert process.stdin is not None
    process.stdin.close()

    assert is_gone_within(record.pid, record.start, END_S)
    project.server_file.unlink()


def test_what_the_guard_writes_is_for_this_user_only(project: Home) -> None:
    process = guarded(project, sys.executable, "-c", "open('made', 'w')")
    record = read_record(project)
    assert record is not None
    assert is_gone_within(record.guard_pid, record.guard_start, 20)
    assert process.stdin is not None
    process.stdin.close()

    for file in (project.server_file, project.log_dir / "server.log", project.path / "made"):
        assert file.stat().st_mode & 0o077 == 0
    project.server_file.unlink()
