"""What tests ask of processes that tools started."""

from __future__ import annotations

import os
import time
from pathlib import Path


def is_gone(pid: int, within_s: float = 5.0) -> bool:
    """Whether a process ends in time; a zombie counts as ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def written(file: Path, lines: int = 1) -> list[int]:
    """The numbers that a script wrote into a file, once they are all there."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = file.read_text().split() if file.exists() else []
        if len(found) >= lines:
            return [int(n) for n in found]
        time.sleep(0.02)
    raise AssertionError(f"{file} was not written")
