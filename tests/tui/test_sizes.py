"""Every size down to 40x12, text that looks like markup, and states of the link."""

from __future__ import annotations

import pytest

from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.notices import NoticeBoard
from capuchin_yaml.tui.screens.boxes import TooSmall
from capuchin_yaml.tui.screens.inbox import InboxScreen
from capuchin_yaml.tui.widgets.composer import Composer
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk

SIZES = [(120, 40), (80, 24), (40, 12)]
HOSTILE = [
    "[/",
    "[/x] arr[0] [bold",
    "[b +] [link=x]y[/link] \\[ $primary [$error]z",
    "a\x1b[31mred \u202edi zero\u200bwidth",
]


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    fake.call(talk, 1)
    fake.open_item(talk, 1)
    return talk


@pytest.mark.parametrize("size", SIZES)
async def test_one_can_read_write_and_approve_at_every_size(
    fake: FakeGateway, talk: FakeTalk, size: tuple[int, int]
) -> None:
    async with running(fake, start=talk.id, size=size) as (app, pilot):
        app.chat.query_one(Composer).text = "and hurry"
        await pilot.press("enter")
        await until(pilot, lambda: "queued  and hurry" in text_of(app))
        assert "waits for" in text_of(app)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: "billing.issue_refund" in text_of(app))
        for _ in range(12):
            await pilot.press("pagedown")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        assert "a approve" in text_of(app)
        await pilot.press("a")
        await until(pilot, lambda: fake.decisions)

    assert [d[2] for d in fake.decisions] == ["approve"]


async def test_below_the_least_size_it_says_which_is_needed_and_nothing_is_answered(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id, size=(60, 30)) as (app, pilot):
        await pilot.press("f2", "enter", "pagedown")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        await pilot.resize_terminal(30, 8)
        await until(pilot, lambda: isinstance(app.screen, TooSmall))
        assert text_of(app).splitlines()[0] == "needs 40x12; agents go on"
        await pilot.press("a")
        await pilot.pause(0.2)
        await pilot.resize_terminal(60, 30)
        await until(pilot, lambda: isinstance(app.screen, InboxScreen))

    assert fake.decisions == []


@pytest.mark.parametrize("size", SIZES)
async def test_no_line_is_wider_than_the_screen_with_wide_text(
    fake: FakeGateway, size: tuple[int, int]
) -> None:
    wide = "你好世界" * 30 + "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 20
    talk = fake.add("billing", title=wide)
    fake.pin(talk)
    fake.turn(talk, wide)
    fake.say(talk, f"# {wide}\n\n- {wide}\n\n| {wide} | b |\n|---|---|\n| c | {wide} |")
    fake.open_item(talk, title=wide, arguments='{"a":"' + wide + '"}')
    async with running(fake, start=talk.id, size=size) as (app, pilot):
        await pilot.pause()
        strips = app.screen._compositor.render_strips(app.size)
        assert {s.cell_length for s in strips} == {size[0]}
        await pilot.press("f2", "enter")
        await pilot.pause(0.2)
        strips = app.screen._compositor.render_strips(app.size)

        assert {s.cell_length for s in strips} == {size[0]}


@pytest.mark.parametrize("text", HOSTILE)
async def test_foreign_text_is_shown_as_it_is_everywhere(fake: FakeGateway, text: str) -> None:
    board = NoticeBoard()
    fake.user = text
    fake.cards = (
        AgentCard(text, text, text, text, text, {text: VariableSpec(required=True)}, (text,), text),
    )
    talk = fake.add(text, id="demo.billing-a91f00", title=text)
    fake.pin(talk, text)
    fake.turn(talk, text)
    fake.say(talk, text)
    call = fake.call(talk, 1, text, f'{{"a":"{text}"}}', "ask", text)
    fake.run(talk, call, text, "error")
    fake.call(talk, 2, text, text, "invalid", text)
    fake.open_item(talk, 3, tool=text, alias=text, title=text, arguments=text, then=text)
    async with running(fake, start=talk.id, board=board) as (app, pilot):
        fake.stream(talk, text[:1])
        fake.stream(talk, text)
        app.chat.query_one(Composer).insert("[/x] arr[0] [bold")
        await until(pilot, lambda: "[/x] arr[0] [bold" in text_of(app))
        board.push(text, "bad")
        board.ask(text, text, ())
        await pilot.pause(0.2)
        shown = text_of(app)
        await pilot.press("f2", "down", "enter")
        await pilot.pause(0.3)
        shown += text_of(app)
        await pilot.press("escape", "ctrl+n")
        await pilot.pause(0.2)
        await pilot.press("enter")
        await pilot.pause(0.2)
        shown += text_of(app)
        fake.end(talk, "model_rejected", text)
        await fake.close_talk(talk.id, text)
        await pilot.pause(0.2)
        shown += text_of(app)

    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\u200b" not in shown
    if text.isascii() and text.isprintable():
        assert shown.count(text) > 6


async def test_a_failed_and_a_closed_conversation_say_so(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.end(talk, "model_unavailable", "529 overloaded")
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "the model is not available: 529 overloaded" in text_of(app))
        app.talks.close()
        await until(pilot, lambda: "close billing" in text_of(app))
        await pilot.press("enter")
        assert fake.closed == []
        await pilot.press(*"billing", "enter")
        await until(pilot, lambda: "conversation closed by anna" in text_of(app))
        app.chat.query_one(Composer).text = "still there?"
        await pilot.press("enter")
        await until(pilot, lambda: "this conversation is closed" in text_of(app))

        assert app.chat.query_one(Composer).text == "still there?"
        app.talks.reopen()
        await until(pilot, lambda: "opened again by anna" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: (talk.id, "still there?") in fake.sent)


async def test_a_lost_server_is_shown_soon_and_the_screen_stays_readable(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        fake.go_down()
        await until(pilot, lambda: "server away" in text_of(app), 1.5)

        text = text_of(app)
        assert "trying again, attempt" in text
        assert "refund A-1001 please" in text


async def test_help_lists_the_keys_from_the_bindings(fake: FakeGateway, talk: FakeTalk) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: "keys that act here" in text_of(app))

        text = text_of(app)
        for key in ("ctrl+n", "f2", "ctrl+q", "enter", "ctrl+j"):
            assert key in text
