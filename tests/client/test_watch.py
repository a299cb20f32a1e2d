"""Watching: every event once and in order, whatever goes away in between."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from temporalio.client import Client

from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.target import Target
from capuchin_yaml.client.watch import Reconnected, Reconnecting
from capuchin_yaml.errors import (
    ConversationBlocked,
    ConversationNotFound,
    ServerUnavailable,
    WorkerUnavailable,
)
from capuchin_yaml.events import ConversationClosed, Event, ItemOpened, TurnEnded, TurnStarted
from capuchin_yaml.spec import ApprovalSpec
from tests.client.holding import Holder
from tests.client.test_conversation import broken_worker, call, serve_plain, serve_writer
from tests.engine.house import House, lab, open_house


class Watcher:
    """Collects what a watch yields and lets a test wait for it."""

    def __init__(self, talk: Conversation, since: int = 0) -> None:
        self.seen: list[Event | Reconnecting | Reconnected] = []
        self.at: list[float] = []
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._collect(talk, since))

    @property
    def events(self) -> list[Event]:
        return [e for e in self.seen if isinstance(e, Event)]

    @property
    def markers(self) -> list[Reconnecting | Reconnected]:
        return [e for e in self.seen if not isinstance(e, Event)]

    async def until(
        self,
        fits: Callable[[Event | Reconnecting | Reconnected], bool],
        within_s: float = 20.0,
    ) -> float:
        """Return when something that fits was seen, by the monotonic clock."""
        async with asyncio.timeout(within_s):
            while True:
                for at, seen in zip(self.at, self.seen, strict=True):
                    if fits(seen):
                        return at
                self._news.clear()
                await self._news.wait()

    async def turn(self, number: int) -> float:
        """Return when this turn has ended."""
        return await self.until(lambda e: isinstance(e, TurnEnded) and e.turn == number)

    async def _collect(self, talk: Conversation, since: int) -> None:
        async with aclosing(talk.watch(since)) as watch:
            async for event in watch:
                self.seen.append(event)
                self.at.append(time.monotonic())
                self._news.set()


@pytest.fixture
async def watch() -> AsyncIterator[Callable[..., Watcher]]:
    """Start watchers that end with the test."""
    watchers: list[Watcher] = []

    def start(talk: Conversation, since: int = 0) -> Watcher:
        watchers.append(Watcher(talk, since))
        return watchers[-1]

    yield start
    for watcher in watchers:
        watcher.task.cancel()
    await asyncio.gather(*(w.task for w in watchers), return_exceptions=True)


def offsets(events: list[Event]) -> list[int]:
    return [e.offset for e in events]


async def test_a_watch_ends_with_its_conversation(
    fleet: Capuchin, house: House, watch: Callable[..., Watcher]
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "one", by="ann")
    watcher = watch(talk)
    await watcher.turn(1)
    await talk.send("two", by="ann")
    await watcher.turn(2)

    await talk.close(by="ann")
    await asyncio.wait_for(watcher.task, 10)

    assert offsets(watcher.events) == list(range(len(watcher.events)))
    assert isinstance(watcher.events[-1], ConversationClosed)
    assert watcher.markers == []
    assert watcher.events == await talk.events()


async def test_a_watch_begins_where_it_is_told(
    fleet: Capuchin, house: House, watch: Callable[..., Watcher]
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "one", by="ann")
    state = await talk.settle()

    watcher = watch(talk, state.events)
    await talk.send("two", by="ann")
    await watcher.turn(2)

    assert watcher.events[0].offset == state.events
    assert isinstance(watcher.events[0], TurnStarted)


async def test_a_closed_conversation_is_told_whole_and_the_watch_ends(
    fleet: Capuchin, house: House, watch: Callable[..., Watcher]
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "one", by="ann")
    await talk.settle()
    await talk.close(by="ann")
    await talk.settle()

    watcher = watch(talk)
    await asyncio.wait_for(watcher.task, 10)

    assert isinstance(watcher.events[-1], ConversationClosed)


async def test_a_watch_follows_the_conversation_into_new_runs(
    temporal: Client, tmp_path: Path, watch: Callable[..., Watcher]
) -> None:
    async with open_house(temporal, tmp_path, roll_over_events=60) as house:
        serve_plain(house)
        talk = await Capuchin(temporal, project=house.project).start("plain", "1", by="ann")
        watcher = watch(talk)

        for turn in range(2, 16):
            await talk.send(str(turn), by="ann")
            await watcher.turn(turn)

        state = await talk.settle()
        assert state.run > 2
        assert offsets(watcher.events) == list(range(state.events))
        late = watch(talk)
        await late.turn(15)
        assert late.events == watcher.events


async def test_steps_are_seen_while_a_tool_runs(
    fleet: Capuchin, house: House, watch: Callable[..., Watcher]
) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [call("wait", name="seen-running")]}},
        default={"say": "done"},
    )
    house.agent("slow", model, "lab.wait")
    talk = await fleet.start("slow", "go", by="ann")
    watcher = watch(talk)

    await watcher.until(lambda e: isinstance(e, Event) and e.kind == "tool_started", within_s=5)
    lab.gate("seen-running").set()

    await watcher.turn(1)


async def test_an_item_is_seen_when_it_opens_and_by_every_watcher(
    fleet: Capuchin, house: House, watch: Callable[..., Watcher]
) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", None, by="ann")
    watchers = [watch(talk), watch(talk)]

    await talk.send("go", by="ann")
    for watcher in watchers:
        await watcher.until(lambda e: isinstance(e, ItemOpened))
    [item] = (await talk.settle()).items
    await talk.decide(item.id, digest=item.digest, choice="deny", by="bob", reason="not today")
    for watcher in watchers:
        await watcher.turn(1)

    assert watchers[0].events == watchers[1].events


async def test_nobody_is_watched_who_never_was(fleet: Capuchin) -> None:
    with pytest.raises(ConversationNotFound):
        async for _ in fleet.conversation("plain-000000").watch():
            pass


async def test_a_worker_that_is_away_is_told_and_so_is_its_return(
    fleet: Capuchin, house: House, watch: Callable[..., Watcher]
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "one", by="ann")
    watcher = watch(talk)
    await watcher.turn(1)
    await house.stop_worker()

    async def insist() -> None:
        # Why again and again: a message that nobody takes leaves nothing behind to wait for.
        while True:
            with pytest.raises(WorkerUnavailable):
                await talk.send("two", by="ann", message_id="m-two")

    insisting = asyncio.create_task(insist())
    await watcher.until(lambda e: isinstance(e, Reconnecting), within_s=40)
    insisting.cancel()
    await asyncio.gather(insisting, return_exceptions=True)
    await house.start_worker()
    await talk.send("two", by="ann", message_id="m-two")
    await watcher.turn(2)
    await watcher.until(lambda e: isinstance(e, Reconnected), within_s=5)

    first = watcher.markers[0]
    assert isinstance(first, Reconnecting)
    assert isinstance(first.error, WorkerUnavailable)
    assert first.attempt == 1
    assert offsets(watcher.events) == list(range(len(watcher.events)))


async def test_code_that_fails_is_told_at_once(
    temporal: Client, watch: Callable[..., Watcher]
) -> None:
    fleet = Capuchin(temporal, project="broken-while-watched")
    async with broken_worker(temporal, "broken-while-watched"):
        talk = await fleet.start("plain", None, by="ann")
        watcher = watch(talk)

        await watcher.until(lambda e: isinstance(e, Reconnecting), within_s=5)

        [marker] = watcher.markers[:1]
        assert isinstance(marker, Reconnecting)
        assert isinstance(marker.error, ConversationBlocked)
        await temporal.get_workflow_handle(talk.id).terminate()


async def test_a_killed_server_is_told_at_once_and_nothing_is_missed_when_it_is_back(
    project: Home,
    hold: Callable[[], Awaitable[Holder]],
    tmp_path: Path,
    watch: Callable[..., Watcher],
) -> None:
    first = await hold()
    target = Target(address=f"127.0.0.1:{first.port}")
    client = await connect_temporal(target, key=project.key())
    async with open_house(client, tmp_path) as house:
        serve_plain(house)
        talk = await Capuchin(client, project=house.project).start("plain", "one", by="ann")
        watcher = watch(talk)
        await watcher.turn(1)

        killed_at = time.monotonic()
        os.kill(first.pid, signal.SIGKILL)
        await first.kill()
        told_at = await watcher.until(lambda e: isinstance(e, Reconnecting))
        sending = asyncio.create_task(talk.send("two", by="ann"))
        second = await hold()
        back_at = time.monotonic()
        assert second.port == first.port
        mended_at = await watcher.until(lambda e: isinstance(e, Reconnected))
        answer = await sending
        await watcher.turn(2)

        marker = watcher.markers[0]
        assert isinstance(marker, Reconnecting)
        assert isinstance(marker.error, ServerUnavailable)
        assert told_at - killed_at < 1.5
        assert mended_at - back_at < 3
        assert answer.turn == 2
        assert offsets(watcher.events) == list(range(len(watcher.events)))
        assert isinstance(watcher.markers[-1], Reconnected)


async def test_settling_waits_for_a_server_that_is_away_a_moment(
    project: Home, hold: Callable[[], Awaitable[Holder]], tmp_path: Path
) -> None:
    first = await hold()
    client = await connect_temporal(Target(address=f"127.0.0.1:{first.port}"), key=project.key())
    async with open_house(client, tmp_path) as house:
        model = house.script(
            {"when": {"user": "go"}, "reply": {"calls": [call("wait", name="over-outage")]}},
            default={"say": "done"},
        )
        house.agent("slow", model, "lab.wait", approval=ApprovalSpec(policy="auto"))
        talk = await Capuchin(client, project=house.project).start("slow", "go", by="ann")
        await asyncio.to_thread(lab.entered("over-outage").wait)
        settling = asyncio.create_task(talk.settle())

        os.kill(first.pid, signal.SIGKILL)
        await first.kill()
        await hold()
        lab.gate("over-outage").set()

        assert (await asyncio.wait_for(settling, 60)).status == "idle"
