"""Storms of keys, pastes, clicks and stalls at the whole app, around the arrival of approvals."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from textual import events
from textual.keys import _character_to_key

from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.screens.inbox import InboxScreen
from tests.tui.conftest import running, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk

STORMS = 24
_GAP_S = 0.25
_TYPED = "aaadddyyrfhos approve this please\n"
_KEYS = ["enter", "space", "tab", "escape", "f2", "down", "up", "pagedown", "end", "ctrl+s", "left"]


def key(name: str) -> events.Key:
    """A key as the terminal's thread makes it, stamped with the time of now."""
    if len(name) == 1:
        special = {"\n": "enter", " ": "space"}
        return events.Key(special.get(name) or _character_to_key(name), name)
    return events.Key(name, None)


def press(app: CapuchinApp, name: str) -> None:
    """Hand a key to the app without waiting for what it does."""
    app.post_message(key(name))


def press_in_a_row(app: CapuchinApp, name: str, last: float) -> float:
    """Press a key that comes at most `_GAP_S` after another one, however slow this machine is."""
    if time.monotonic() - last > _GAP_S:
        press(app, "f9")
    press(app, name)
    return time.monotonic()


async def blow(seeds: Iterable[int]) -> AsyncGenerator[int, None]:
    """Blow a storm for each seed; after each, the decisions that were made by accident so far."""
    fake = FakeGateway()
    talk = fake.add()
    fake.pin(talk)
    fake.turn(talk, "refund A-1001")

    async with running(fake, start=talk.id) as (app, pilot):
        for seed in seeds:
            chance = random.Random(seed)
            await _storm(app, fake, talk, chance)
            yield len(fake.decisions)
            await pilot.pause()
            for item in list(talk.items.values()):
                fake.settle(item, "deny")
            while len(app.screen_stack) > 2:
                app.pop_screen()
            await pilot.pause()


async def test_no_storm_around_the_arrival_of_an_approval_decides_anything() -> None:
    async with aclosing(blow(range(STORMS))) as storms:
        async for decided in storms:
            assert decided == 0


async def _storm(
    app: CapuchinApp, fake: FakeGateway, talk: FakeTalk, chance: random.Random
) -> None:
    """Keys that come in a row: so none of them was meant for what had just appeared."""
    last = 0.0
    arrivals = {chance.randrange(30) for _ in range(2)}
    for n in range(30):
        if n in arrivals:
            fake.open_item(
                talk, chance.randint(1, 3), revision=n + 1, effect=chance.choice(["read", "write"])
            )
        match chance.random():
            case x if x < 0.55:
                last = press_in_a_row(app, chance.choice(_TYPED), last)
            case x if x < 0.8:
                last = press_in_a_row(app, chance.choice(_KEYS), last)
            case x if x < 0.87:
                app.post_message(events.Paste("a\nd\napprove\n"))
            case x if x < 0.93:
                app.post_message(events.AppBlur())
                app.post_message(events.AppFocus())
            case _:
                x, y = chance.randrange(120), chance.randrange(40)
                for kind in (events.MouseDown, events.MouseUp):
                    app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
        if chance.random() < 0.1:
            # The program stalls; what is typed meanwhile is handled after the screen changed.
            time.sleep(0.05)  # noqa: ASYNC251  # the stall is meant
        await asyncio.sleep(chance.choice([0, 0, 0.002, 0.01, 0.05]))


async def test_a_held_down_approve_key_decides_nothing() -> None:
    fake = FakeGateway()
    talk = fake.add()
    fake.pin(talk)
    item = fake.open_item(talk)

    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        last = time.monotonic()
        press(app, "f9")
        for _ in range(20):
            last = press_in_a_row(app, "a", last)
            await pilot.pause(0.03)
        await pilot.pause(0.3)

        assert fake.decisions == []
        press(app, "a")
        await until(pilot, lambda: fake.decisions)

    assert fake.decisions == [(item.id, 1, "approve", "", "")]


async def test_a_paste_without_brackets_decides_nothing() -> None:
    fake = FakeGateway()
    talk = fake.add()
    fake.pin(talk)
    fake.open_item(talk)

    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        for char in "approve it":
            press(app, char)
        await pilot.pause(0.4)

    assert fake.decisions == []


async def test_a_key_typed_while_the_program_stalled_decides_nothing() -> None:
    fake = FakeGateway()
    talk = fake.add()
    fake.pin(talk)
    fake.open_item(talk)

    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        early = key("a")
        fake.open_item(talk, revision=2, arguments='{"amount_cents":990000}')
        screen = app.screen
        assert isinstance(screen, InboxScreen)
        await until(pilot, lambda: screen.item is not None and screen.item.revision == 2)
        await until(pilot, lambda: not app.guard.unseen)
        app.post_message(early)
        await pilot.pause(0.3)

    assert fake.decisions == []
