"""What the screen costs: processor time, bytes to the terminal, memory; and losing the server."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.bench.report import Figure
from tests.bench.terminal_probe import SETTLE_S, Used, at, spread
from tests.tui import worlds
from tests.tui.terminal import TuiTerminal

_NUMBER = re.compile(r"t(\d{5})")


def idle(folder: Path, runs: int) -> list[Figure]:
    """Half a minute in which nothing happens, 5,000 messages open."""
    with TuiTerminal("older", folder / "still.log", 120, 40) as terminal:
        terminal.until(lambda text: "code = 2499" in text)
        terminal.listen(SETTLE_S)
        watch = Used(terminal.process.pid)
        sent = sum(len(chunk) for _, chunk in terminal.record(30.0))
        return [
            Figure("idle, of one processor", watch.share, "%", 1),
            Figure("idle, bytes a second", sent / 30, "bytes", 1000),
        ]


def streaming(folder: Path, runs: int) -> list[Figure]:
    """Twenty seconds of 100 tokens a second, following."""
    mark = folder / "streamed"
    with (
        _environ(TUI_MARK=str(mark)),
        TuiTerminal("stream", folder / "s.log", 120, 40) as terminal,
    ):
        terminal.until(lambda text: "t00010" in text)
        watch = Used(terminal.process.pid)
        pieces = terminal.record(20.0)
        share = watch.share
    sent = sum(len(chunk) for _, chunk in pieces)
    behind = _behind(terminal, pieces, mark)
    return [
        Figure("one stream, of one processor", share, "%", 35),
        Figure("one stream, bytes a second at 120 x 40", sent / 20, "bytes"),
        *spread("one stream, written to seen", behind, 250),
    ]


def far(folder: Path, runs: int) -> list[Figure]:
    """Twenty seconds of the same over SSH, in a window of 80 x 24."""
    with (
        _environ(SSH_CONNECTION="192.0.2.1 5 192.0.2.2 22"),
        TuiTerminal("stream", folder / "far.log", 80, 24) as terminal,
    ):
        terminal.until(lambda text: "t00010" in text)
        sent = sum(len(chunk) for _, chunk in terminal.record(20.0))
    return [Figure("one stream over SSH, bytes a second at 80 x 24", sent / 20, "bytes", 45_000)]


def ten_streams(folder: Path, runs: int) -> list[Figure]:
    """Twenty seconds of ten busy conversations in a list of 500, one of them on show."""
    mark = folder / "ten"
    with _environ(TUI_MARK=str(mark)), TuiTerminal("ten", folder / "t.log", 120, 40) as terminal:
        terminal.until(lambda text: "t00010" in text)
        terminal.listen(SETTLE_S)
        watch = Used(terminal.process.pid)
        skip = len(Path(f"{mark}.lag").read_text().splitlines())
        terminal.record(20.0)
        share = watch.share
        late = [float(line) for line in Path(f"{mark}.lag").read_text().splitlines()[skip:-1]]
    return [
        Figure("ten busy conversations, of one processor", share, "%", 40),
        *spread("ten busy conversations, the loop late", late, 30),
    ]


def soak(folder: Path, runs: int) -> list[Figure]:
    """50,000 events of one conversation, as many as a long day brings, in one go."""
    mark = folder / "soaked"
    points: list[tuple[int, float]] = []
    with _environ(TUI_MARK=str(mark)), TuiTerminal("soak", folder / "k.log", 120, 40) as terminal:
        watch = Used(terminal.process.pid)
        end = time.monotonic() + 600
        while time.monotonic() < end and (not points or points[-1][0] < worlds.SOAK_EVENTS):
            terminal.record(1.0)
            if mark.exists() and (done := mark.read_text()):
                points.append((int(done), watch.memory_mb))
    half = next(memory for done, memory in points if done >= worlds.SOAK_EVENTS // 2)
    return [
        Figure("memory after 50,000 events, the world included", points[-1][1], "MB", 200),
        Figure("growth over the last 25,000 events", points[-1][1] - half, "MB"),
    ]


def server_loss(folder: Path, runs: int) -> list[Figure]:
    """From the server's end to the banner that says so."""
    taken = []
    for n in range(max(runs // 2, 1)):
        mark = folder / f"loss{n}"
        with (
            _environ(TUI_MARK=str(mark)),
            TuiTerminal("loss", folder / f"loss{n}.log", 120, 40) as terminal,
        ):
            terminal.until(lambda text: "server away" in text)
            taken.append(time.monotonic() - float(mark.read_text()))
    return spread("server loss", taken, 1500)


def stray_bytes(folder: Path, runs: int) -> list[Figure]:
    """What seven ways of printing put on the screen while it is painted."""
    log = folder / "noise.log"
    with TuiTerminal("noise", log, 120, 40) as terminal:
        terminal.until(lambda text: "1 waiting" in text)
        terminal.listen(3.0)
        strays = terminal.raw.count(b"STRAY")
    return [
        Figure("stray words on the screen", strays, "", 0),
        Figure("stray words kept in the log", log.read_text().count("STRAY"), ""),
    ]


def _behind(terminal: TuiTerminal, pieces: list[tuple[float, bytes]], mark: Path) -> list[float]:
    """For each piece of the reply, the time from when it was there to when it was seen."""
    written = {int(n): float(t) for n, t in map(str.split, mark.read_text().splitlines())}
    seen: dict[int, float] = {int(n): 0.0 for n in _NUMBER.findall(terminal.text)}
    for came, chunk in pieces:
        terminal.draw(chunk)
        for n in map(int, _NUMBER.findall(terminal.text)):
            seen.setdefault(n, came)
    late = [came - written[n] for n, came in seen.items() if came]
    assert at(late, 0.5) > 0
    return late


@contextmanager
def _environ(**names: str) -> Iterator[Mapping[str, str]]:
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield os.environ
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
