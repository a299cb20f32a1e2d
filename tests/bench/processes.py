"""What a process has cost so far, as the system counts it; Linux only, None elsewhere."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

_TICKS_A_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float | None:
    """Seconds of processor time, user and system, of all threads."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_S
    return None


def peak_mb(pid: int) -> float | None:
    """Most memory that was resident at once, in MB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


class CpuMeter:
    """Sums the processor time of named processes and of this one over chosen stretches."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._began: dict[str, float | None] = {}
        self.spent_s: dict[str, float] = dict.fromkeys((*pids, "client"), 0.0)

    def begin(self) -> None:
        """A stretch begins."""
        self._began = self._now()

    def end(self) -> float:
        """It ends; only what lies between counts. Return the seconds of this one, of all."""
        total_s = 0.0
        for name, now in self._now().items():
            before = self._began[name]
            if now is not None and before is not None:
                self.spent_s[name] += now - before
                total_s += now - before
        return total_s

    def _now(self) -> dict[str, float | None]:
        found = {name: cpu_s(pid) for name, pid in self._pids.items()}
        return {**found, "client": time.process_time()}
