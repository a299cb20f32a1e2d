"""One long talk each with 1 KB texts: what history holds, and how the cost of a turn grows."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable

from temporalio.service import RPCError

from tests.bench.contenders import Run
from tests.bench.places import OurPlace
from tests.bench.plain_design import PlainTalk
from tests.bench.processes import CpuMeter
from tests.bench.report import Figure, ratio
from tests.bench.talks import HistoryMeter, OurTalk, Size

HISTORY_AT_MOST = 0.03
FLAT_AT_MOST = 1.1
EVENTS_AT_MOST = 24
TURNS = 220
HISTORY_TURNS = 100
TEXT_BYTES = 1024
MARKS = (10, 50, 100, 200)
"""Turns at which the time of one is looked at; each is the middle of eleven."""
_GIVEN_UP_S = 60


async def long_talk(run: Run) -> list[Figure]:
    """A long talk each with 1 KB texts, interleaved: history, flatness, and how cost grows."""
    our_place, stock = await run.ours(), await run.plain_on_stock()
    talk = await OurTalk.start(our_place.fleet)
    plain_talk = await PlainTalk.start(stock.client, stock.queue)
    our = Course(
        talk.turn,
        HistoryMeter(our_place.fleet.temporal, talk.conversation.id),
        CpuMeter(our_place.pids),
    )
    plain = Course(
        plain_talk.turn, HistoryMeter(stock.client, plain_talk.handle.id), CpuMeter(stock.pids)
    )
    kept_before = _stored_bytes(our_place)
    async with talk:
        for number in range(1, TURNS + 1):
            text = f"{number} ".ljust(TEXT_BYTES, "x")
            await our.go(text)
            await plain.go(text)
    kept_bytes = _stored_bytes(our_place) - kept_before
    return [
        *_history(our, plain),
        Figure(f"ours: kept beside history, {our.turns} turns", kept_bytes, "bytes"),
        *_flatness(our, plain),
        *_growth("ours", our),
        *_growth("plain, stock server", plain),
    ]


class Course:
    """The turns of one talk, and its history after each."""

    def __init__(
        self, turn: Callable[[str], Awaitable[float]], history: HistoryMeter, cpu: CpuMeter
    ) -> None:
        self._turn = turn
        self._history = history
        self._cpu = cpu
        self.times_s: list[float] = []
        self.cpu_s: list[float] = []
        """Processor time of server, worker and client."""
        self.sizes: list[Size] = []
        self.ended = ""
        """How the server ended it, when it did."""

    async def go(self, text: str) -> None:
        """Carry out one more turn, unless the server has ended the talk."""
        if self.ended:
            return
        if not self.sizes:
            self.sizes.append(await self._history.read())
        try:
            async with asyncio.timeout(_GIVEN_UP_S):
                self._cpu.begin()
                self.times_s.append(await self._turn(text))
                self.cpu_s.append(self._cpu.end())
        except (RPCError, TimeoutError) as error:
            if (await self._history.read()).is_open:
                raise
            self.ended = f"ended by the server in turn {len(self.sizes)}: {error}"
            return
        self.sizes.append(await self._history.read())

    @property
    def turns(self) -> int:
        """Turns that were answered."""
        return len(self.times_s)

    def between(self, first: int, last: int) -> Size:
        """What these turns, from 1, both included, added to the history."""
        return self.sizes[last] - self.sizes[first - 1]

    def around(self, turn: int) -> slice | None:
        """The eleven turns around this one; None when it never came so far."""
        return slice(turn - 6, turn + 5) if turn + 5 <= self.turns else None


def _history(our: Course, plain: Course) -> list[Figure]:
    our_bytes = our.between(1, HISTORY_TURNS).size_bytes
    measured = min(HISTORY_TURNS, plain.turns)
    plain_bytes, note = float(plain.between(1, measured).size_bytes), ""
    if measured < HISTORY_TURNS:
        # Every model call sends all that was said, so the sum grows with the square.
        plain_bytes *= (HISTORY_TURNS / measured) ** 2
        note = f"extrapolated from {measured} turns, {plain.ended}"
    figures = [
        ratio(
            f"history of {HISTORY_TURNS} turns with 1 KB texts",
            our_bytes,
            plain_bytes,
            HISTORY_AT_MOST,
        ),
        Figure(f"ours: history of {HISTORY_TURNS} turns", our_bytes, "bytes"),
        Figure(f"plain: history of {HISTORY_TURNS} turns", plain_bytes, "bytes", note=note),
    ]
    if plain.ended:
        figures.append(Figure("plain: turns until the server ended it", plain.turns, ""))
    return figures


def _flatness(our: Course, plain: Course) -> list[Figure]:
    early, late, whole = our.between(5, 15), our.between(TURNS - 10, TURNS), our.between(1, TURNS)
    return [
        Figure(
            "ours: history events a turn",
            our.between(5, 55).events / 51,
            "",
            EVENTS_AT_MOST,
        ),
        Figure("plain: history events a turn", plain.between(5, 55).events / 51, ""),
        Figure("ours: history bytes a turn, turns 5 to 15", early.size_bytes / 11, "bytes"),
        Figure(
            f"ours: history bytes a turn, turns {TURNS - 10} to {TURNS}",
            late.size_bytes / 11,
            "bytes",
            note=f"after {whole.runs} roll-overs",
        ),
        ratio(
            f"ours: bytes a turn around {TURNS - 5} against around 10",
            late.size_bytes,
            early.size_bytes,
            FLAT_AT_MOST,
        ),
        ratio(
            f"ours: bytes a turn of all {TURNS}, roll-overs counted, against around 10",
            whole.size_bytes / TURNS,
            early.size_bytes / 11,
            FLAT_AT_MOST,
        ),
    ]


def _growth(name: str, course: Course) -> list[Figure]:
    figures = []
    for mark in MARKS:
        around = course.around(mark)
        if around is not None:
            median_s = statistics.median(course.times_s[around])
            mean_cpu_s = statistics.fmean(course.cpu_s[around])
            figures += [
                Figure(f"{name}: a turn around turn {mark}", median_s * 1000, "ms"),
                Figure(f"{name}: its processor time", mean_cpu_s * 1000, "ms"),
            ]
    slowest = max(range(1, course.turns), key=lambda i: course.times_s[i])
    figures.append(
        Figure(
            f"{name}: the slowest turn after the first",
            course.times_s[slowest] * 1000,
            "ms",
            note=f"turn {slowest + 1}"
            + (", a roll-over" if course.between(slowest + 1, slowest + 1).runs else ""),
        )
    )
    return figures


def _stored_bytes(place: OurPlace) -> int:
    return sum(path.stat().st_size for path in place.store.folder.rglob("*") if path.is_file())
