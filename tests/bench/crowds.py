"""Many conversations at once: turns a second, a flood of messages, memory, a full inbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TypeVar

from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.events import ToolStarted, TurnEnded
from tests.bench.contenders import Run
from tests.bench.plain_design import PlainTalk
from tests.bench.processes import peak_mb
from tests.bench.report import Figure, ratio
from tests.bench.talks import OurTalk

T = TypeVar("T")

CROWD_TURNS = 3
CROWD_AT_MOST = 0.5
"""Seconds a turn, ours against plain: twice as many turns a second."""
FLOOD = 60
FLOOD_AT_MOST_S = 1.0
IDLE_FOR_EACH = 10
"""Idle conversations for each of a crowd: 1,000 for 100."""
IDLE_AT_MOST_MB = 300
PAGE_AT_MOST_S = 0.25
RESUME_AT_MOST_S = 0.5
_STARTS_AT_ONCE = 20
_ROUNDS = 9


async def crowd(run: Run) -> list[Figure]:
    """Turns a second of 100 conversations at once, ours and plain one after the other."""
    our_place, count = await run.ours(), run.talks
    stock, tuned = await run.plain_on_stock(), await run.plain_on_tuned()
    figures: list[Figure] = []
    spent: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        talks = await _started(lambda: OurTalk.start(our_place.fleet), count)
        for talk in talks:
            await stack.enter_async_context(talk)
        spent["ours"] = await _rounds([t.turn for t in talks])
    for name, place in {"plain, stock server": stock, "plain, our server": tuned}.items():
        plain = await _started(partial(PlainTalk.start, place.client, place.queue), count)
        spent[name] = await _rounds([t.turn for t in plain])
        await asyncio.gather(*(t.handle.terminate() for t in plain))
    figures.append(
        ratio(
            f"a turn of {count} talks at once: ours against plain on the stock server",
            spent["ours"],
            spent["plain, stock server"],
            CROWD_AT_MOST,
        )
    )
    figures.append(ratio("the same, both on our server", spent["ours"], spent["plain, our server"]))
    figures += [
        Figure(f"{name}: turns a second", count * CROWD_TURNS / s, "") for name, s in spent.items()
    ]
    return figures


async def flood(run: Run) -> list[Figure]:
    """60 messages at once to one conversation: answered in order, within 1 s of acceptance."""
    place = await run.ours()
    talk = await place.fleet.start("bench", "hello", by="bench")
    await talk.settle()
    ended: dict[int, float] = {}

    async def watch() -> None:
        async for event in talk.watch():
            if isinstance(event, TurnEnded):
                ended[event.turn] = time.perf_counter()
                if len(ended) > FLOOD:
                    return

    watching = asyncio.create_task(watch())
    began = time.perf_counter()
    answers = await asyncio.gather(*(talk.send(f"say {i}", by="bench") for i in range(FLOOD)))
    accepted = time.perf_counter()
    async with asyncio.timeout(120):
        await watching
    turns = sorted(a.turn for a in answers if a.turn is not None)
    assert turns == list(range(2, FLOOD + 2))
    order = sorted(ended, key=lambda turn: ended[turn])
    assert order == sorted(order)
    last = max(ended.values())
    return [
        Figure(f"{FLOOD} messages at once: accepted in", accepted - began, "s", FLOOD_AT_MOST_S),
        Figure("the last one answered after", last - began, "s"),
        Figure("seconds an answered message", (last - began) / FLOOD, "s"),
    ]


async def idle(run: Run) -> list[Figure]:
    """Memory of a worker that has answered 1,000 conversations and holds them all."""
    place, count = await run.ours(), run.talks * IDLE_FOR_EACH
    before = peak_mb(place.worker_pid)
    talks = await _started(lambda: place.fleet.start("bench", "hello", by="bench"), count)
    for group in _groups(talks, _STARTS_AT_ONCE):
        await asyncio.gather(*(t.settle() for t in group))
    after = peak_mb(place.worker_pid)
    assert before is not None
    assert after is not None
    return [
        Figure(f"worker with {count:,} idle conversations, peak", after, "MB", IDLE_AT_MOST_MB),
        Figure("each of them", (after - before) * 1024 / count, "KB"),
    ]


async def inbox(run: Run) -> list[Figure]:
    """Conversations waiting for approval: the inbox's first page, and a decision's tool."""
    fleet, waiting = (await run.ours()).fleet, run.waiting
    began = time.perf_counter()
    talks = await _started(lambda: fleet.start("asking", "write x", by="bench"), waiting)
    started_s = time.perf_counter() - began
    await _until_all_wait(fleet, waiting)
    pages = [await _timed(lambda: fleet.inbox(limit=20)) for _ in range(_ROUNDS)]
    resumed = [await _decision_to_tool(talk) for talk in talks[:: max(waiting // _ROUNDS, 1)]]
    return [
        Figure(f"inbox, first page of {waiting:,}", _middle(pages), "s", PAGE_AT_MOST_S),
        Figure("a decision until its tool starts", _middle(resumed), "s", RESUME_AT_MOST_S),
        Figure("the slowest of them", max(resumed), "s"),
        Figure("starting one", started_s / waiting * 1000, "ms"),
    ]


async def _decision_to_tool(talk: Conversation) -> float:
    [item] = (await talk.state()).items
    began = time.perf_counter()
    await talk.decide(item.id, digest=item.digest, choice="approve", by="bench")
    async with aclosing(talk.watch()) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                break
    return time.perf_counter() - began


async def _until_all_wait(fleet: Capuchin, count: int) -> None:
    """Visibility lags behind."""
    async with asyncio.timeout(600):
        query = f"CapuchinProject = '{fleet.project}' AND CapuchinStatus = 'waiting'"
        while (await fleet.temporal.count_workflows(query)).count < count:  # noqa: ASYNC110 visibility
            await asyncio.sleep(0.5)


async def _started(start: Callable[[], Awaitable[T]], count: int) -> list[T]:
    made: list[T] = []
    for group in _groups(range(count), _STARTS_AT_ONCE):
        made += await asyncio.gather(*(start() for _ in group))
    return made


async def _rounds(turns: list[Callable[[str], Awaitable[float]]]) -> float:
    for group in _groups(turns, _STARTS_AT_ONCE // 2):
        await asyncio.gather(*(turn("warm up") for turn in group))
    began = time.perf_counter()

    async def one(turn: Callable[[str], Awaitable[float]]) -> None:
        for number in range(CROWD_TURNS):
            await turn(f"message {number}")

    await asyncio.gather(*(one(turn) for turn in turns))
    return time.perf_counter() - began


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def _groups(values: Iterable[T], size: int) -> list[list[T]]:
    whole = list(values)
    return [whole[i : i + size] for i in range(0, len(whole), size)]


def _middle(samples: list[float]) -> float:
    return sorted(samples)[len(samples) // 2]
