"""How the figures of the screen are taken: what came when is kept first and drawn afterwards."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.bench.report import Figure
from tests.tui.terminal import TuiTerminal

PROMPT = "write a message"
SETTLE_S = 2.0
Wanted: TypeAlias = Callable[[str, str], bool]
"""Of the screen when something was done, and of the screen now: whether it is answered."""


@dataclass(slots=True)
class _Step:
    at: float
    wanted: Wanted
    before: str | None = None
    taken_s: float | None = None


def answers(
    terminal: TuiTerminal, acts: Sequence[tuple[Callable[[], None], Wanted]], pause_s: float
) -> list[float]:
    """Seconds from each act to the last byte of the piece after which it was answered.

    The emulator works only when all is over, so it takes no time from what is measured.

    Raises:
        AssertionError: an act was not answered before the end.
    """
    steps: list[_Step] = []
    pieces: list[tuple[float, bytes]] = []
    for act, wanted in acts:
        steps.append(_Step(time.monotonic(), wanted))
        act()
        pieces += terminal.record(pause_s)
    pieces += terminal.record(1.0)
    for came, chunk in pieces:
        text = terminal.text
        for step in steps:
            if step.before is None and step.at <= came:
                step.before = text
        terminal.draw(chunk)
        text = terminal.text
        for step in steps:
            if step.before is not None and step.taken_s is None and step.wanted(step.before, text):
                step.taken_s = came - step.at
    taken = [step.taken_s for step in steps if step.taken_s is not None]
    assert len(taken) == len(steps), f"{len(steps) - len(taken)} acts without an answer"
    return taken


class Used:
    """What a process uses: processor time since the start of this, and memory now."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._start, self._before = time.monotonic(), self._ticks()

    @property
    def seconds(self) -> float:
        """Processor time."""
        return self._ticks() - self._before

    @property
    def share(self) -> float:
        """Processor time, in hundredths of one processor."""
        return 100 * self.seconds / (time.monotonic() - self._start)

    @property
    def memory_mb(self) -> float:
        """Resident memory."""
        for line in Path(f"/proc/{self._pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def _ticks(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(name: str, samples_s: Sequence[float], p95_ms: float, p99_ms: float = 0) -> list[Figure]:
    """Median and high percentiles of times, in ms; the goal is for the 95th."""
    high = [at(samples_s, share) * 1000 for share in (0.95, 0.99)]
    return [
        Figure(f"{name}, median of {len(samples_s)}", statistics.median(samples_s) * 1000, "ms"),
        Figure(f"{name}, 95th percentile", high[0], "ms", p95_ms),
        *([Figure(f"{name}, 99th percentile", high[1], "ms", p99_ms)] if p99_ms else []),
    ]


def at(samples: Sequence[float], share: float) -> float:
    """The sample that this share of all does not exceed."""
    ordered = sorted(samples)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def draft(text: str) -> str:
    """The line of the composer."""
    return text.splitlines()[-2].rstrip()
