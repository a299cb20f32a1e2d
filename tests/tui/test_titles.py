"""The title of a conversation: asked for, or written behind the command."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from capuchin_yaml.tui.screens.boxes import LineBox
from capuchin_yaml.tui.widgets.composer import Composer
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00", title="refund please")
    fake.pin(talk)
    return talk


async def test_a_title_is_asked_for_with_the_one_it_has(fake: FakeGateway, talk: FakeTalk) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "refund please" in text_of(app))
        await pilot.press(*"/ren")
        await until(pilot, lambda: "/rename  give this" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LineBox))
        assert app.screen.query_one(Input).value == "refund please"
        await pilot.press("ctrl+u", *"A-1", "enter")
        await until(pilot, lambda: "renamed by anna: A-1" in text_of(app))
        await until(pilot, lambda: "refund please" not in text_of(app))

    assert talk.title == "A-1"
    assert fake.sent == []


async def test_a_title_behind_the_command_is_taken_and_no_message_is_sent(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        app.chat.query_one(Composer).text = "/rename the order of May"
        await pilot.press("enter")
        await until(pilot, lambda: "renamed by anna: the order of May" in text_of(app))

        assert app.chat.query_one(Composer).text == ""
    assert fake.sent == []


async def test_escape_and_a_server_that_is_away_change_no_title(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        app.talks.rename()
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press("x", "escape")
        await until(pilot, lambda: app.screen is app.chat)
        fake.is_up = False
        app.talks.rename("other")
        await until(pilot, lambda: "not renamed to" in text_of(app))

    assert talk.title == "refund please"
