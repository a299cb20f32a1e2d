"""A talk of 2,000 turns, and one that goes on after everything was killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import statistics
import time
from pathlib import Path

from capuchin_yaml.cli.up_lock import read_up
from capuchin_yaml.client.connection import connect
from capuchin_yaml.client.dev_server import read_record
from capuchin_yaml.errors import CapuchinError
from tests.bench.contenders import Run
from tests.bench.places import end, lay_out, reach, start_up
from tests.bench.processes import CpuMeter
from tests.bench.report import Figure, ratio
from tests.bench.talks import HistoryMeter, OurTalk

TURNS_FOR_EACH = 40
"""Turns for each paced turn of the run: 2,000 for 50."""
FLAT_AT_MOST = 1.3
AROUND = 50
"""Turns at the beginning and at the end whose cost is compared."""
WARM_UP = 10
RESUME_AT_MOST_S = 4.0
_PATIENCE_S = 60.0


async def endless(run: Run) -> list[Figure]:
    """2,000 turns with 1 KB texts in one talk: what the last ones cost against the first ones."""
    place, turns = await run.ours(), run.turns * TURNS_FOR_EACH
    talk = await OurTalk.start(place.fleet)
    meter = HistoryMeter(place.fleet.temporal, talk.conversation.id)
    cpu = CpuMeter(place.pids)
    times_s, spent_s = [], []
    async with talk:
        for number in range(1, turns + 1):
            cpu.begin()
            times_s.append(await talk.turn(f"{number} ".ljust(1024, "x")))
            spent_s.append(cpu.end())
            if number % AROUND == 0:
                await meter.read()
    size = await meter.read()
    first, last = slice(WARM_UP, WARM_UP + AROUND), slice(turns - AROUND, turns)
    return [
        ratio(
            f"processor time of a turn around {turns:,} against around {WARM_UP + AROUND // 2}",
            statistics.median(spent_s[last]),
            statistics.median(spent_s[first]),
            FLAT_AT_MOST,
        ),
        ratio(
            "time of a turn, the same",
            statistics.median(times_s[last]),
            statistics.median(times_s[first]),
        ),
        Figure(f"a turn around {turns:,}, median", statistics.median(times_s[last]) * 1000, "ms"),
        Figure("the slowest turn after the first", max(times_s[1:]) * 1000, "ms"),
        Figure("roll-overs", size.runs - 1, ""),
    ]


async def resume(run: Run) -> list[Figure]:
    """All killed with an approval pending: from `up` until the approved tool has acted."""
    folder = run.folder / "resumed"
    home = lay_out(folder)
    up = await start_up(folder)
    times = []
    try:
        for line in ("one", "two", "three"):
            fleet = await reach(home, up, folder / "up.log")
            talk = await fleet.start("asking", f"write {line}", by="bench")
            [item] = (await talk.settle()).items
            await fleet.close()
            record, running = read_record(home), read_up(home)
            assert record is not None
            assert running is not None
            for pid in (up.pid, record.pid, *(worker[0] for worker in running.workers)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await up.wait()
            began = time.perf_counter()
            up = await start_up(folder)
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    with contextlib.suppress(CapuchinError):
                        fleet = await connect(home, program="bench")
                        talk = fleet.conversation(talk.id)
                        await talk.decide(item.id, digest=item.digest, choice="approve", by="bench")
                        break
                    await asyncio.sleep(0.05)
                ledger = home.data_dir / "lab" / "effects"
                while not _holds(ledger, line):  # noqa: ASYNC110 another process
                    await asyncio.sleep(0.01)
            times.append(time.perf_counter() - began)
            await fleet.close()
    finally:
        await end(up)
    return [
        Figure(
            "killed with an approval pending: from `up` to the tool's effect, median",
            statistics.median(times),
            "s",
            RESUME_AT_MOST_S,
        ),
        Figure("the slowest of three", max(times), "s"),
    ]


def _holds(ledger: Path, line: str) -> bool:
    return ledger.exists() and f" {line}\n" in ledger.read_text()
