"""Ends the programs that tools started when the worker that started them is gone.

Run by its path with `python -I -S` in a session of its own; imports the standard library
only. Standard input is a pipe that the worker holds. Lines: `+N` keep process group N in
mind, `-N` forget it. When the pipe closes, however the worker ended, all groups are killed.

Why a process: the kernel's own parent-death signal reaches no grandchildren, exists on Linux
only, and is lost when the thread that started a program ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main() -> None:
    """Watch until the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        with contextlib.suppress(ValueError):
            group = int(line[1:])
            groups.add(group) if line[:1] == b"+" else groups.discard(group)
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
