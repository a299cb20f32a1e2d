"""What is typed before its field is there is not lost, and stays in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual import events
from textual.widgets import Input

from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.screens.editing import EditBox
from capuchin_yaml.tui.screens.inbox import InboxScreen
from capuchin_yaml.tui.screens.new_talk import NewTalk
from capuchin_yaml.tui.widgets.composer import Composer
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway
from tests.tui.test_inbox import open_first

PLAIN = AgentCard("billing")
ASKS = AgentCard("asks", variables={"company": VariableSpec("string", required=True)})


class SlowStart(FakeGateway):
    """A world where a conversation begins when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.may_start = asyncio.Event()

    async def start(self, *args: Any, **kwargs: Any) -> str:
        """Begin it late."""
        await self.may_start.wait()
        return await super().start(*args, **kwargs)


def type_at_once(app: CapuchinApp, *keys: str) -> None:
    """Keys as a terminal delivers them while the program is busy: all before the first acts."""
    for key in keys:
        name = {"/": "slash", " ": "space"}.get(key, key)
        app.post_message(events.Key(name, key if len(key) == 1 else None))


def draft(app: CapuchinApp) -> str:
    return app.chat.query_one(Composer).text


async def test_what_follows_the_key_that_opens_a_form_is_typed_into_the_form(
    fake: FakeGateway,
) -> None:
    talk = fake.add()
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    fake.call(talk, 1)
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        screen = await open_first(app, pilot)
        await until(pilot, lambda: screen.showing.schema is not None)
        type_at_once(app, "e", "backspace", "backspace", "1", "2", "tab", "d", "a")
        await until(pilot, lambda: isinstance(app.screen, EditBox))
        box = app.screen
        await until(pilot, lambda: len(box.query(Input)) == 3)
        await until(pilot, lambda: [i.value for i in box.query(Input)][1] == "A-1001da")

        assert [i.value for i in box.query(Input)] == ["4212", "A-1001da", ""]
    assert fake.decisions == []


async def test_what_follows_the_choice_of_an_agent_is_typed_into_its_form(
    fake: FakeGateway,
) -> None:
    fake.cards = (ASKS, PLAIN)
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: len(app.desk.fleet.agents) == 2)
        type_at_once(app, "ctrl+n", "enter", *"Acme", "ctrl+s")
        await until(pilot, lambda: fake.started)

    assert fake.started == [("asks", {"company": "Acme"}, {})]


async def test_what_is_typed_while_a_conversation_starts_is_its_first_draft() -> None:
    fake = SlowStart()
    fake.cards = (PLAIN, AgentCard("other"))
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: len(app.desk.fleet.agents) == 2)
        type_at_once(app, "ctrl+n", "enter", *"good day")
        await until(pilot, lambda: "  starting…" in text_of(app))
        await pilot.press("!")
        fake.may_start.set()
        await until(pilot, lambda: app.chat.talk is not None and draft(app) == "good day!")
        await pilot.press("enter")
        await until(pilot, lambda: fake.sent)

    assert [text for _, text in fake.sent] == ["good day!"]


async def test_a_start_that_takes_too_long_can_be_left_and_the_words_are_kept() -> None:
    fake = SlowStart()
    fake.cards = (PLAIN, AgentCard("other"))
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: len(app.desk.fleet.agents) == 2)
        type_at_once(app, "ctrl+n", "enter", *"hello")
        await until(pilot, lambda: "  starting…" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert draft(app) == "hello"
        await pilot.press("?")
        await until(pilot, lambda: draft(app) == "hello?")


async def test_a_start_that_is_refused_gives_the_keys_back_to_the_form(fake: FakeGateway) -> None:
    fake.cards = (ASKS,)
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        await pilot.press("ctrl+n", "enter")
        await until(pilot, lambda: isinstance(app.focused, Input))
        fake.is_up = False
        type_at_once(app, "A", "ctrl+s", "B")
        await until(pilot, lambda: app.screen.query_one(Input).value == "AB")

        assert isinstance(app.screen, NewTalk)


async def test_a_letter_after_the_slash_is_text_of_the_filter_and_no_command(
    fake: FakeGateway,
) -> None:
    talk = fake.add()
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    fake.call(talk, 1)
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, app.desk.fleet.waiting)
        await pilot.press("f2")
        type_at_once(app, "/", "m", "e", "/")
        await until(pilot, lambda: app.screen.query_one("#filter", Input).value == "me/")

        assert isinstance(app.screen, InboxScreen)
        assert not app.bench.marks


async def test_words_written_before_the_conversation_is_open_join_its_kept_draft(
    fake: FakeGateway, tmp_path: Path
) -> None:
    talk = fake.add()
    fake.pin(talk)
    file = tmp_path / "drafts.json"
    file.write_text(f'{{"{talk.id}": "kept", "": "typed"}}')
    async with running(fake, start=talk.id, drafts_file=file) as (app, _):
        assert draft(app) == "kept\ntyped"


async def test_the_word_that_it_starts_stays_while_it_does_and_goes_at_once() -> None:
    fake = SlowStart()
    fake.cards = (PLAIN,)
    now = 1000.0
    async with running(fake) as (app, pilot):
        app.event_clock = lambda: now  # type: ignore[method-assign]  # the test's own time
        await until(pilot, lambda: app.desk.fleet.agents)
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "starting a conversation with billing" in text_of(app))
        now += 60
        app.chat.draw()
        await until(pilot, lambda: "starting a conversation with billing" in text_of(app))
        fake.may_start.set()
        await until(pilot, lambda: fake.sent)
        await until(pilot, lambda: "starting a conversation" not in text_of(app))


async def test_a_command_that_is_typed_and_entered_at_once_is_no_message(fake: FakeGateway) -> None:
    talk = fake.add()
    fake.pin(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        type_at_once(app, *"/inbox", "enter")
        await until(pilot, lambda: isinstance(app.screen, InboxScreen))

    assert fake.sent == []
