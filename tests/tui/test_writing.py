"""Help with writing: slash commands, files, history, the editor; and finding in what was said."""

from __future__ import annotations

import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from capuchin_yaml.events import TurnStarted
from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.gateway import Partial
from capuchin_yaml.tui.history import History
from capuchin_yaml.tui.model import suggest
from capuchin_yaml.tui.model.search import Choosable, found
from capuchin_yaml.tui.model.talk import Talk
from capuchin_yaml.tui.screens.chooser import Chooser
from capuchin_yaml.tui.screens.inbox import InboxScreen
from capuchin_yaml.tui.widgets.composer import Composer
from capuchin_yaml.tui.widgets.transcript import Transcript
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


def composer(app: CapuchinApp) -> Composer:
    return app.chat.query_one(Composer)


def without_bar(app: CapuchinApp) -> list[str]:
    """The screen without the column of the scroll bar."""
    return [line[:84].rstrip() for line in text_of(app).splitlines()]


def _started(offset: int, text: str) -> TurnStarted:
    return TurnStarted(
        offset=offset,
        time="2026-11-01T12:11:00+00:00",
        turn=1,
        message_id="m",
        text=text,
        by="anna",
    )


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    return talk


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/in", ("/", "in", 0)),
        ("see @a/b", ("@", "a/b", 4)),
        ("@", ("@", "", 0)),
        ("mail@example", None),
        ("/in box", None),
        ("plain", None),
    ],
)
def test_a_word_asks_for_suggestions_only_after_its_sign(
    line: str, expected: tuple[str, str, int] | None
) -> None:
    word = suggest.word_at(line, len(line), True)

    assert (word and (word.kind, word.text, word.start)) == expected


def test_every_word_of_a_query_must_be_there_and_a_beginning_comes_first() -> None:
    entries = [Choosable("1", "close conversation"), Choosable("2", "conversations", "close by")]

    assert [e.key for e in found("con clo", entries)] == ["2", "1"]
    assert found("nothing", entries) == []


async def test_a_slash_command_is_offered_completed_and_run(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("/", "i")
        await until(pilot, lambda: "/inbox  what waits for a person" in text_of(app))
        await pilot.press("enter")

        await until(pilot, lambda: isinstance(app.screen, InboxScreen))
        assert composer(app).text == ""
        assert fake.sent == []


async def test_what_is_no_command_is_a_message_and_esc_closes_the_suggestions(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (_, pilot):
        await pilot.press(*"/etc", "enter")
        await until(pilot, lambda: fake.sent == [(talk.id, "/etc")])
        fake.end(talk)
        await pilot.press(*"/inbox", "escape", "enter")

        await until(pilot, lambda: (talk.id, "/inbox") in fake.sent)


async def test_a_file_after_an_at_goes_along_with_its_text(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "order.txt").write_text("A-1001 ```late```")
    monkeypatch.chdir(tmp_path)
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press(*"see @n")
        await until(pilot, lambda: "@notes/" in text_of(app))
        await pilot.press("tab")
        await until(pilot, lambda: "@notes/order.txt" in text_of(app))
        await pilot.press("tab")
        await until(pilot, lambda: "⟦paste 1· notes/order.txt, 5 lines" in composer(app).text)
        await pilot.press("enter")
        await until(pilot, lambda: fake.sent)

    assert fake.sent[0][1].startswith("see notes/order.txt:\n````\nA-1001 ```late```\n````")


@pytest.mark.parametrize("what", ["missing", "binary", "large"])
def test_a_file_that_cannot_go_along_says_why(tmp_path: Path, what: str) -> None:
    if what == "binary":
        (tmp_path / "f").write_bytes(b"\xff\xfe\x00")
    elif what == "large":
        (tmp_path / "f").write_text("x" * (suggest.MAX_FILE_BYTES + 1))

    with pytest.raises(ValueError, match=r"cannot be read|no UTF-8|at most"):
        suggest.file_text("f", tmp_path)


async def test_arrows_at_the_edges_bring_messages_sent_before_and_the_draft_back(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path
) -> None:
    async with running(fake, start=talk.id, home=tmp_path) as (app, pilot):
        for text in ("first", "second"):
            composer(app).put(text)
            await pilot.press("enter")
        composer(app).put("a draft")
        await pilot.press("up")
        await until(pilot, lambda: composer(app).text == "second")
        await pilot.press("up")
        await until(pilot, lambda: composer(app).text == "first")
        await pilot.press("down", "down")

        await until(pilot, lambda: composer(app).text == "a draft")
    kept = tmp_path / "history.jsonl"
    assert History(kept).texts == ["first", "second"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_ctrl_r_searches_what_was_sent_before(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path
) -> None:
    history = History(tmp_path / "history.jsonl")
    for text in ("refund A-1001", "where is A-2", "refund B-7"):
        history.add(text)
    async with running(fake, start=talk.id, home=tmp_path) as (app, pilot):
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
        await pilot.press(*"refund a", "enter")
        await until(pilot, lambda: composer(app).text == "refund A-1001")

        assert fake.sent == []


async def test_the_editor_gets_the_draft_and_gives_it_back(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " and more\\033[31m\\n" >> "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setitem(os.environ, "VISUAL", str(editor))
    async with running(fake, start=talk.id) as (app, pilot):
        monkeypatch.setattr(app, "suspend", nullcontext)
        composer(app).put("a draft")
        await pilot.press("ctrl+g")

        await until(pilot, lambda: composer(app).text == "a draft and more\\x1b[31m")


async def test_without_an_editor_it_says_what_to_set(
    fake: FakeGateway, talk: FakeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("ctrl+g")

        await until(pilot, lambda: "set VISUAL or EDITOR" in text_of(app))


async def test_finding_goes_to_older_places_and_reads_older_pages_for_it(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.turn(talk, "the Needle of the start")
    fake.end(talk)
    for n in range(400):
        fake.turn(talk, f"message {n}")
        fake.end(talk)
    fake.turn(talk, "a newer needle")
    fake.end(talk)
    async with running(fake, start=talk.id, size=(90, 24)) as (app, pilot):
        await until(pilot, lambda: app.desk.talk(talk.id).is_current)
        await pilot.press("ctrl+f", *"needle", "enter")
        await until(pilot, lambda: "a newer needle" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "the Needle of the start" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "nothing above holds 'needle'" in text_of(app))
        await pilot.press("down")
        await until(pilot, lambda: "a newer needle" in text_of(app))
        await pilot.press("escape")

        await until(pilot, lambda: app.focused is composer(app))
        assert fake.pages


async def test_older_pages_are_read_while_one_scrolls_back_and_the_place_stays(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    for n in range(700):
        fake.turn(talk, f"message {n}")
        fake.end(talk)
    async with running(fake, start=talk.id, size=(90, 24)) as (app, pilot):
        await until(pilot, lambda: "message 699" in text_of(app))
        pane = app.chat.query_one(Transcript)
        known = len(pane.talk.entries)
        assert known < 250
        pane.focus()
        await pilot.press("home")
        await until(pilot, lambda: len(pane.talk.entries) > known)
        assert "message 500" in text_of(app)
        await pilot.pause()
        assert "message 500" in text_of(app)
        for _ in range(6):
            await pilot.press("home")
            await pilot.pause(0.1)

        await until(pilot, lambda: "definition 3f2a91bc" in text_of(app))
        assert [e.offset for e in app.desk.talk(talk.id).log] == list(range(len(talk.log)))


async def test_what_is_painted_before_the_pane_is_told_is_what_it_showed(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    """A talk changes first; a key may have the pane painted before the next frame."""
    for n in range(400):
        fake.turn(talk, f"message {n}")
        fake.end(talk)
    async with running(fake, start=talk.id, size=(90, 24)) as (app, pilot):
        await until(pilot, lambda: "message 399" in text_of(app))
        pane = app.chat.query_one(Transcript)
        pane.focus()
        await pilot.press("pageup")
        await until(pilot, lambda: not pane.following)
        before = without_bar(app)
        assert isinstance(pane.talk, Talk)
        since = pane.talk.first_offset
        reply = [*pane.talk.grow(Partial(1, 0, "so"))]
        pane.take(reply)
        changes = [*pane.talk.grow(Partial(1, 2, " far"))]
        changes += pane.talk.apply(_started(len(talk.log), "the newest"))
        changes += pane.talk.prepend(talk.log[since - 60 : since])
        changes += pane.talk.grow(Partial(2, 0, "again"))
        pane.refresh()
        assert without_bar(app) == before
        pane.take(changes)
        assert without_bar(app) == before
        pane.action_top()
        assert "message 200" not in text_of(app)
        pane.action_follow()
        assert "the newest" in text_of(app)
        assert "again" in text_of(app)


async def test_the_next_conversation_is_one_key_away(fake: FakeGateway, talk: FakeTalk) -> None:
    other = fake.add("triage")
    fake.pin(other)
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: len(app.desk.fleet.rows) == 2)
        order = [r.id for r in app.desk.fleet.ordered()]
        await pilot.press("ctrl+b", "1")
        await until(pilot, lambda: app.chat.talk is not None and app.chat.talk.id == order[0])
        await pilot.press("ctrl+pagedown")

        await until(pilot, lambda: app.chat.talk is not None and app.chat.talk.id == order[1])
