"""What the system says of other processes: whether they live, what they are, where they listen."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from capuchin_yaml.client.guard import IS_LINUX, process_start

_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Listener:
    """One address that a process takes connections on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback


def is_alive(pid: int, start: str) -> bool:
    """Whether the very process that started at `start` still runs."""
    return process_start(pid) == start


def command_line(pid: int) -> tuple[str, ...]:
    """Return the words a process was started with, nothing when it cannot be seen."""
    if IS_LINUX:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            return tuple(os.fsdecode(word) for word in words if word)
        return ()
    shown = subprocess.run(
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return tuple(shown.split())


def listeners(pid: int) -> tuple[Listener, ...] | None:
    """Return every TCP address that process `pid` listens on; None where that cannot be seen."""
    if not IS_LINUX:
        return None
    sockets = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                link = os.readlink(entry.path)
                if link.startswith("socket:["):
                    sockets.add(link[8:-1])
    except OSError:
        return None
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and fields[9] in sockets:
                    found.append(_listener(fields[1]))
    return tuple(sorted(found, key=lambda listener: listener.port))


def end_process(pid: int, start: str) -> None:
    """Kill the very process that started at `start`, if it still runs."""
    if is_alive(pid, start):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _listener(text: str) -> Listener:
    # The kernel writes each 32-bit word of an address in the machine's byte order.
    raw, port = text.split(":")
    words = [bytes.fromhex(raw[i : i + 8]) for i in range(0, len(raw), 8)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return Listener(str(ipaddress.ip_address(b"".join(words))), int(port, 16))
