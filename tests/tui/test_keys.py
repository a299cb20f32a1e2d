"""Keys: one id each, a file that moves them, and a page that is made from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.tui.keys import bound_keys, read_keymap
from capuchin_yaml.tui.model.answers import ANSWERS
from capuchin_yaml.tui.screens.inbox import InboxScreen
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway
from tests.tui.keys_reference import REFERENCE, reference_text


def test_every_binding_has_an_id_of_its_own_and_says_what_it_does() -> None:
    bound = bound_keys()

    assert len({b.id for b in bound}) == len(bound)
    assert all(b.does for b in bound)


def test_no_binding_near_an_item_is_a_key_that_answers() -> None:
    answering = {a.key for kind in ANSWERS.values() for a in kind}

    taken = {b.id for b in bound_keys() if b.section == "An item" and answering & set(b.keys)}
    assert taken == set()


def test_the_page_of_keys_is_not_stale() -> None:
    written = REFERENCE.read_text(encoding="utf-8")

    assert written == reference_text(), "run: python -m tests.tui.keys_reference"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("app.inbx: f6", "no key has the id app.inbx; did you mean app.inbox?"),
        ("inbox.go: a", "inbox.go cannot be a, which answers items"),
        ("chat.new: ctrl+b", "ctrl+b is chat.talks already"),
        ("chat.new: ''", "chat.new needs keys"),
        ("- a list", "must map ids to keys"),
        ("a: [", "is no YAML"),
    ],
)
def test_what_cannot_be_followed_is_said(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(text)

    keymap = read_keymap(file)

    assert dict(keymap.keys) == {}
    assert problem in keymap.problems[0]


def test_two_actions_may_swap_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("chat.new: ctrl+b\nchat.talks: [ctrl+n, y]\n")

    keymap = read_keymap(file)

    assert keymap.problems == ()
    assert keymap.keys == {"chat.new": "ctrl+b", "chat.talks": "ctrl+n,y"}


def test_without_a_file_nothing_is_moved(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keys.yaml").keys == {}
    assert read_keymap(None).keys == {}


async def test_a_moved_key_acts_also_in_the_composer_and_help_shows_it(
    fake: FakeGateway, tmp_path: Path
) -> None:
    (tmp_path / "keys.yaml").write_text("app.inbox: f9\ncomposer.send: ctrl+s\n")
    talk = fake.add()
    fake.pin(talk)
    async with running(fake, start=talk.id, home=tmp_path) as (app, pilot):
        await pilot.press("h", "i", "ctrl+s")
        await until(pilot, lambda: fake.sent == [(talk.id, "hi")])
        await pilot.press("f1")
        await until(pilot, lambda: "keys that act here" in text_of(app))
        assert "f9" in text_of(app)
        await pilot.press("escape", "f9")

        await until(pilot, lambda: isinstance(app.screen, InboxScreen))


async def test_a_keymap_with_a_mistake_is_told_on_the_screen(
    fake: FakeGateway, tmp_path: Path
) -> None:
    (tmp_path / "keys.yaml").write_text("app.inbx: f9\n")
    async with running(fake, home=tmp_path) as (app, pilot):
        await until(pilot, lambda: "did you mean app.inbox?" in text_of(app))
