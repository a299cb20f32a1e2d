"""The terminal UI in a pseudo-terminal: `python -m tests.bench.terminal [--runs 10] [--only NAME]`.

The world behind it is the scripted gateway of the tests, so the figures are the screen's alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.report import Figure
from tests.tui.terminal import TuiTerminal

PROMPT = "write a message"
DIGITS = "0123456789"
_SETTLE_S = 1.0


class Stopwatch:
    """Time that passes, and processor time that the program takes meanwhile.

    The second one hardly depends on what else the machine does.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._start, self._before = time.monotonic(), self._used()

    def stop(self) -> tuple[float, float]:
        """Both, in seconds."""
        return time.monotonic() - self._start, self._used() - self._before

    def _used(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_frame(folder: Path, runs: int) -> list[Figure]:
    """From starting the program to the first whole frame."""
    taken = []
    for n in range(runs):
        start = time.monotonic()
        with TuiTerminal("empty", folder / f"first{n}.log", 120, 40) as terminal:
            watch = Stopwatch(terminal.process.pid)
            terminal.until(lambda text: PROMPT in text)
            taken.append((time.monotonic() - start, watch.stop()[1]))
    return _spread("first frame", taken, 600)


def open_long(folder: Path, runs: int) -> list[Figure]:
    """From a key to the newest of 5,000 messages on the screen."""
    taken = []
    for n in range(runs):
        with TuiTerminal("long", folder / f"open{n}.log", 120, 40) as terminal:
            terminal.until(lambda text: "a long talk" in text)
            terminal.press(b"\x02")
            terminal.listen(_SETTLE_S)
            watch = Stopwatch(terminal.process.pid)
            terminal.press(b"1")
            terminal.until(lambda text: "code = 2499" in text)
            taken.append(watch.stop())
    return _spread("open 5,000 messages", taken, 300)


def idle_keys(folder: Path, runs: int) -> list[Figure]:
    """From a key to its character, with 5,000 messages and nothing else going on."""
    return _spread("key, idle", _echoes(folder, "older", "code = 2499", runs * 10), 30)


def streaming_keys(folder: Path, runs: int) -> list[Figure]:
    """From a key to its character, while 400 characters a second stream in below 5,000 messages."""
    return _spread("key, streaming", _echoes(folder, "stream", "refund", runs * 10), 50)


def server_loss(folder: Path, runs: int) -> list[Figure]:
    """From the server's end to the banner that says so."""
    taken = []
    for n in range(max(runs // 2, 1)):
        mark = folder / f"loss{n}"
        os.environ["TUI_MARK"] = str(mark)
        with TuiTerminal("loss", folder / f"loss{n}.log", 120, 40) as terminal:
            terminal.until(lambda text: "server away" in text)
            taken.append((time.monotonic() - float(mark.read_text()), 0.0))
    return _spread("server loss", taken, 1500)


def stray_bytes(folder: Path, runs: int) -> list[Figure]:
    """What seven ways of printing put on the screen while it is painted."""
    log = folder / "noise.log"
    with TuiTerminal("noise", log, 120, 40) as terminal:
        terminal.until(lambda text: "1 waiting" in text)
        terminal.listen(3.0)
        strays = terminal.raw.count(b"STRAY")
    kept = log.read_text().count("STRAY")
    return [
        Figure("stray words on the screen", strays, "", 0),
        Figure("stray words kept in the log", kept, ""),
    ]


FIGURES: dict[str, Callable[[Path, int], list[Figure]]] = {
    "first": first_frame,
    "open": open_long,
    "idle": idle_keys,
    "streaming": streaming_keys,
    "loss": server_loss,
    "stray": stray_bytes,
}


def _echoes(folder: Path, scene: str, ready: str, keys: int) -> list[tuple[float, float]]:
    taken = []
    with TuiTerminal(scene, folder / f"{scene}.log", 120, 40) as terminal:
        terminal.until(lambda text: ready in text)
        terminal.listen(2 * _SETTLE_S)
        typed = ""
        for n in range(keys):
            typed = (typed + DIGITS[n % 10])[-60:]
            if n and n % 60 == 0:
                terminal.press(b"\x15")
                terminal.listen(0.3)
                typed = DIGITS[n % 10]
            watch = Stopwatch(terminal.process.pid)
            terminal.press(typed[-1].encode())
            terminal.until(lambda text, wanted=typed: _draft(text).endswith(wanted))  # type: ignore[misc]  # bound now
            taken.append(watch.stop())
            terminal.listen(0.11)
    return taken


def _draft(text: str) -> str:
    """The line of the composer."""
    return text.splitlines()[-2].rstrip()


def _spread(name: str, samples_s: Sequence[tuple[float, float]], goal_ms: float) -> list[Figure]:
    ordered = sorted(wall for wall, _ in samples_s)
    high = ordered[min(round(0.95 * len(ordered)), len(ordered) - 1)]
    used = statistics.mean(used for _, used in samples_s)
    return [
        Figure(f"{name}, median", statistics.median(ordered) * 1000, "ms"),
        Figure(f"{name}, 95th percentile", high * 1000, "ms", goal_ms),
        *([Figure(f"{name}, mean processor time", used * 1000, "ms")] if used else []),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.terminal", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", action="append", choices=[*FIGURES])
    given = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    _say(f"{os.cpu_count()} processors, load {load:.1f}, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(prefix="capuchin-bench-") as folder:
        for name, measure in FIGURES.items():
            if given.only is None or name in given.only:
                for figure in measure(Path(folder), given.runs):
                    goal = f"  goal {figure.at_most:g}" if figure.at_most is not None else ""
                    missed = "  MISSED" if figure.is_missed else ""
                    _say(f"{figure.name}: {figure.value:.0f} {figure.unit}{goal}{missed}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
