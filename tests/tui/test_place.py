"""A TUI begins where the one before it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.tui.place import Place
from capuchin_yaml.tui.widgets.composer import Composer
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    fake.add("other", title="newer")
    talk = fake.add(id="demo.billing-a91f00", title="refund please")
    fake.pin(talk)
    return talk


async def test_the_conversation_that_was_on_show_is_opened_again(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path
) -> None:
    async with running(fake, start=talk.id, home=tmp_path):
        kept = Place(tmp_path / "place.json")
    async with running(fake, home=tmp_path) as (app, pilot):
        await until(pilot, lambda: app.chat.talk is not None and app.chat.talk.id == talk.id)

    assert kept.conversation == talk.id


async def test_what_is_named_goes_before_what_was_on_show(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path
) -> None:
    Place(tmp_path / "place.json").keep(talk.id)
    other = next(t for t in fake.talks.values() if t is not talk)
    async with running(fake, start=other.id, home=tmp_path) as (app, pilot):
        await pilot.pause(0.3)

        assert app.chat.talk is not None
        assert app.chat.talk.id == other.id
    assert Place(tmp_path / "place.json").conversation == other.id


@pytest.mark.parametrize("status", ["closed", "failed"])
async def test_what_has_ended_or_is_gone_is_not_opened(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path, status: str
) -> None:
    talk.status = status
    Place(tmp_path / "place.json").keep(talk.id)
    async with running(fake, home=tmp_path) as (app, pilot):
        await until(pilot, lambda: "refund please" in text_of(app))

        assert app.chat.talk is None


async def test_who_writes_already_is_not_taken_elsewhere(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path
) -> None:
    Place(tmp_path / "place.json").keep(talk.id)
    fake.is_up = False
    async with running(fake, home=tmp_path) as (app, pilot):
        await pilot.press("h")
        fake.is_up = True
        await until(pilot, lambda: "refund please" in text_of(app))

        assert app.chat.talk is None
        assert app.chat.query_one(Composer).text == "h"


def test_what_is_no_place_is_none(tmp_path: Path) -> None:
    file = tmp_path / "place.json"
    for text in ("", "[]", "{", '{"conversation": null}'):
        file.write_text(text)
        assert Place(file).conversation == ""
