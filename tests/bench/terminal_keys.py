"""How soon the screen answers: the first frame, opening, keys, pages, another window size."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.report import Figure
from tests.bench.terminal_probe import PROMPT, SETTLE_S, Used, Wanted, answers, draft, spread
from tests.tui.terminal import TuiTerminal

DIGITS = "0123456789"
CTRL_U, PAGE_UP, F3, CTRL_P = b"\x15", b"\x1b[5~", b"\x1bOR", b"\x10"
_CODES = re.compile(r"code = (\d+)")


def first_frame(folder: Path, runs: int) -> list[Figure]:
    """From starting `capuchin tui` to its first whole frame."""
    taken, used = [], []
    environ = {"PATH": os.environ["PATH"], "CAPUCHIN_KEY_FILE": str(folder / "key")}
    program = [sys.executable, "-m", "capuchin_yaml.cli.app", "tui"]
    for n in range(runs):
        start = time.monotonic()
        with TuiTerminal(
            "", folder / f"f{n}.log", 120, 40, command=program, cwd=folder, environ=environ
        ) as terminal:
            watch = Used(terminal.process.pid)
            terminal.until(lambda text: PROMPT in text)
            taken.append(time.monotonic() - start)
            used.append(watch.seconds)
    mean = sum(used) / len(used)
    return [
        *spread("first frame", taken, 600),
        Figure("first frame, processor time", mean * 1000, "ms"),
    ]


def open_long(folder: Path, runs: int) -> list[Figure]:
    """From a key to the newest of 5,000 messages on the screen."""
    taken, grown, used = [], 0.0, 0.0
    for n in range(runs):
        with TuiTerminal("long", folder / f"o{n}.log", 120, 40) as terminal:
            terminal.until(lambda text: "a long talk" in text)
            terminal.press(b"\x02")
            terminal.listen(SETTLE_S)
            watch = Used(terminal.process.pid)
            before = watch.memory_mb
            act = partial(terminal.press, b"1")
            taken += answers(terminal, [(act, lambda _, now: "code = 2499" in now)], 0.5)
            grown, used = max(grown, watch.memory_mb - before), used + watch.seconds
    return [
        *spread("open 5,000 messages", taken, 300),
        Figure("open 5,000 messages, processor time", used / runs * 1000, "ms"),
        Figure("open 5,000 messages, memory", grown, "MB", 10),
    ]


def idle_keys(folder: Path, runs: int) -> list[Figure]:
    """From a key to its character, with 5,000 messages and nothing else going on."""
    with TuiTerminal("older", folder / "idle.log", 120, 40) as terminal:
        terminal.until(lambda text: "code = 2499" in text)
        return spread("key, idle", _echoes(terminal, runs * 20), 30)


def streaming_keys(folder: Path, runs: int) -> list[Figure]:
    """From a key to its character, while 400 characters a second stream in below 5,000 messages."""
    with TuiTerminal("stream", folder / "stream.log", 120, 40) as terminal:
        terminal.until(lambda text: "t00001" in text)
        return spread("key, streaming", _echoes(terminal, runs * 20), 50, 100)


def pages(folder: Path, runs: int) -> list[Figure]:
    """From PgUp to the page above."""
    with TuiTerminal("older", folder / "pages.log", 120, 40) as terminal:
        terminal.until(lambda text: "code = 2499" in text)
        terminal.listen(SETTLE_S)
        act = partial(terminal.press, PAGE_UP)
        taken = answers(terminal, [(act, _other_codes)] * (runs * 4), 0.15)
    return spread("page up, 5,000 messages", taken, 50)


def resizes(folder: Path, runs: int) -> list[Figure]:
    """From another window size to the whole screen drawn for it, there and back."""
    taken: list[float] = []
    with TuiTerminal("older", folder / "resize.log", 120, 40) as terminal:
        terminal.until(lambda text: "code = 2499" in text)
        terminal.listen(SETTLE_S)
        for n in range(runs * 2):
            columns, rows = ((90, 30), (120, 40))[n % 2]
            act = partial(terminal.resize, columns, rows)
            taken += answers(terminal, [(act, _fills(columns, rows))], 0.5)
    return spread("resize, 5,000 messages", taken, 200)


def log_pages(folder: Path, runs: int) -> list[Figure]:
    """From PgUp to the rows above in the log of 100,000 events."""
    with TuiTerminal("events", folder / "events.log", 120, 40) as terminal:
        terminal.until(lambda text: "code = 33332" in text, 120)
        terminal.press(F3)
        terminal.until(lambda text: "following" in text, 120)
        terminal.listen(SETTLE_S)
        act = partial(terminal.press, PAGE_UP)
        taken = answers(terminal, [(act, lambda before, now: before != now)] * (runs * 4), 0.15)
        memory = Used(terminal.process.pid).memory_mb
    return [
        *spread("page up, log of 100,000 events", taken, 50),
        Figure("log of 100,000 events, memory with the world behind it", memory, "MB"),
    ]


def palette(folder: Path, runs: int) -> list[Figure]:
    """From a letter in the palette to the list it leaves, of 5,000 conversations."""
    taken: list[float] = []
    with TuiTerminal("many", folder / "many.log", 120, 40) as terminal:
        terminal.until(lambda text: "code = 2499" in text and "triage" in text)
        for _ in range(runs):
            terminal.press(CTRL_P)
            terminal.until(lambda text: "type to filter" in text)
            terminal.listen(0.5)
            acts = [(partial(terminal.press, c.encode()), _only("0049"[: n + 1]))
                    for n, c in enumerate("0049")]  # fmt: skip
            taken += answers(terminal, acts, 0.2)
            terminal.press(b"\x1b")
            terminal.listen(0.5)
    return spread("palette letter, 5,000 conversations", taken, 50)


def _echoes(terminal: TuiTerminal, keys: int) -> list[float]:
    terminal.listen(SETTLE_S)
    taken: list[float] = []
    while len(taken) < keys:
        typed = ""
        acts: list[tuple[Callable[[], None], Wanted]] = []
        for n in range(min(40, keys - len(taken))):
            typed += DIGITS[n % 10]
            acts.append((partial(terminal.press, typed[-1].encode()), _has_draft(typed)))
        taken += answers(terminal, acts, 0.137)
        terminal.press(CTRL_U)
        terminal.listen(0.3)
    return taken


def _has_draft(typed: str) -> Wanted:
    return lambda _, now: typed in draft(now)


def _other_codes(before: str, now: str) -> bool:
    return bool(codes := _CODES.findall(now)) and codes != _CODES.findall(before)


def _fills(columns: int, rows: int) -> Wanted:
    def wanted(_: str, now: str) -> bool:
        lines = now.splitlines()
        return (
            len(lines) == rows
            and "F1 help" in lines[-1]
            and len(lines[-1]) == columns - 1
            and any("code = 2499" in line for line in lines)
        )

    return wanted


def _only(typed: str) -> Wanted:
    def wanted(_: str, now: str) -> bool:
        box = [line for line in now.splitlines() if "triage #" in line and "│" in line[:40]]
        return typed in now and bool(box) and all(typed in line for line in box)

    return wanted
