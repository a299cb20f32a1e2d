"""Turns with a pause between them, as a person makes them: what one costs, and where."""

from __future__ import annotations

import asyncio
import re
import statistics
import urllib.request
from collections.abc import Awaitable, Callable

from tests.bench.contenders import Run
from tests.bench.plain_design import PlainTalk
from tests.bench.processes import CpuMeter
from tests.bench.report import Figure, ratio, spread
from tests.bench.talks import OurTalk

STOCK_AT_MOST = 0.40
TUNED_AT_MOST = 0.45
WARM_UP_TURNS = 5
COUNTED_TURNS = 20
PAUSE_S = 0.15
"""Between two turns, so that each begins on a machine that is done with the one before."""

Turn = Callable[[str], Awaitable[float]]


async def turn(run: Run) -> list[Figure]:
    """Paced turns, interleaved: ours, plain on the stock server, plain on our tuned server."""
    our_place = await run.ours()
    stock, tuned = await run.plain_on_stock(), await run.plain_on_tuned()
    talk = await OurTalk.start(our_place.fleet)
    stock_talk = await PlainTalk.start(stock.client, stock.queue)
    tuned_talk = await PlainTalk.start(tuned.client, tuned.queue)
    contenders: dict[str, tuple[Turn, CpuMeter]] = {
        "ours": (talk.turn, CpuMeter(our_place.pids)),
        "plain, stock server": (stock_talk.turn, CpuMeter(stock.pids)),
        "plain, tuned server": (tuned_talk.turn, CpuMeter(tuned.pids)),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    async with talk:
        for number in range(-WARM_UP_TURNS, run.turns):
            for name, (go, meter) in contenders.items():
                await asyncio.sleep(PAUSE_S)
                if number < 0:
                    await go(f"warm up {number}")
                    continue
                meter.begin()
                times[name].append(await go(f"message {number}"))
                meter.end()
    medians = {name: statistics.median(samples) for name, samples in times.items()}
    figures = [
        ratio(
            "a turn: ours against plain on the stock server",
            medians["ours"],
            medians["plain, stock server"],
            STOCK_AT_MOST,
        ),
        ratio(
            "a turn: both on our tuned server",
            medians["ours"],
            medians["plain, tuned server"],
            TUNED_AT_MOST,
        ),
    ]
    for name, (_, meter) in contenders.items():
        figures += spread(f"{name}: a turn", times[name])
        figures += [
            Figure(f"{name}: a turn, processor time of {role}", spent_s * 1000 / run.turns, "ms")
            for role, spent_s in meter.spent_s.items()
        ]
    return figures


async def requests(run: Run) -> list[Figure]:
    """Requests that a turn makes to our server, and writes to its database, by its own count."""
    our_place, tuned = await run.ours(), await run.plain_on_tuned()
    talk = await OurTalk.start(our_place.fleet)
    plain_talk = await PlainTalk.start(tuned.client, tuned.queue)
    figures = []
    async with talk:
        for name, go in {"ours": talk.turn, "plain": plain_talk.turn}.items():
            await go("warm up")
            await asyncio.sleep(1)
            before = await asyncio.to_thread(_counted, our_place.metrics_port)
            for number in range(COUNTED_TURNS):
                await go(f"message {number}")
            await asyncio.sleep(1)
            after = await asyncio.to_thread(_counted, our_place.metrics_port)
            figures += [
                Figure(f"{name}: {kind} a turn", (after[kind] - before[kind]) / COUNTED_TURNS, "")
                for kind in after
            ]
    return figures


def _counted(metrics_port: int) -> dict[str, float]:
    url = f"http://127.0.0.1:{metrics_port}/metrics"
    text = urllib.request.urlopen(url).read().decode()
    found = {"requests of client and worker": 0.0, "queries": 0.0, "writes": 0.0}
    for line in text.splitlines():
        match = re.match(r"(\w+){([^}]*)} ([\d.e+]+)", line)
        if match is None:
            continue
        name, labels, value = match.groups()
        # The server polls itself for its own chores; an agent's work is what is left.
        if name == "service_requests" and 'service_name="frontend"' in labels:
            if 'namespace="default"' not in labels:
                continue
            found["requests of client and worker"] += float(value)
            if 'operation="QueryWorkflow"' in labels:
                found["queries"] += float(value)
        elif name == "persistence_requests" and 'operation="UpdateWorkflowExecution"' in labels:
            found["writes"] += float(value)
    return found
