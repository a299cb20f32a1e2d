"""The chat: what a person writes, sees and loses nothing of."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from textual import events

from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.gateway import AgentCard, Gateway
from capuchin_yaml.tui.notices import NoticeBoard, Option
from capuchin_yaml.tui.screens.new_talk import NewTalk
from capuchin_yaml.tui.widgets.composer import Composer
from capuchin_yaml.tui.widgets.transcript import Transcript
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


def composer(app: CapuchinApp) -> Composer:
    return app.chat.query_one(Composer)


def transcript(app: CapuchinApp) -> Transcript:
    return app.chat.query_one(Transcript)


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    return talk


async def test_a_message_goes_out_with_enter_and_is_shown_when_the_log_has_it(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).text = "refund A-1001"
        await pilot.press("enter")
        await until(pilot, lambda: "┃ refund A-1001" in text_of(app))

        assert fake.sent == [(talk.id, "refund A-1001")]
        assert composer(app).text == ""
        assert app.desk.outbox.pending == []


async def test_blank_input_is_no_message_and_ctrl_j_breaks_the_line(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).text = "  \n "
        await pilot.press("enter")
        composer(app).text = "one"
        composer(app).move_cursor(composer(app).document.end)
        await pilot.press("ctrl+j", "t")

        assert composer(app).text == "one\nt"
        assert fake.sent == []


async def test_keys_that_come_at_once_act_in_their_order(fake: FakeGateway, talk: FakeTalk) -> None:
    keys = ["o", "n", "x", "backspace", "e", "ctrl+j", "t", "w", "o", "enter", "l", "a", "t", "e"]
    async with running(fake, start=talk.id) as (app, pilot):
        for name in keys:
            app.post_message(events.Key(name, name if len(name) == 1 else None))
        await until(pilot, lambda: composer(app).text == "late")

    assert fake.sent == [(talk.id, "one\ntwo")]


@pytest.mark.parametrize(
    "glyph",
    ["你", "e\u0301", "⚠\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "🇩🇪", "👍🏽"],
)
async def test_the_cursor_moves_and_deletes_by_whole_glyphs(
    fake: FakeGateway, talk: FakeTalk, glyph: str
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).insert(f"a{glyph}b")
        await pilot.press("left", "left")
        assert composer(app).cursor_location == (0, 1)
        await pilot.press("right", "backspace")
        assert composer(app).text == "ab"
        composer(app).insert(glyph)
        await pilot.press("left", "delete")

        assert composer(app).text == "ab"


async def test_while_a_turn_runs_messages_queue_in_sight(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.turn(talk, "first")
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).text = "second"
        await pilot.press("enter")
        await until(pilot, lambda: "queued  second" in text_of(app))
        fake.end(talk)
        fake.turn(talk, "second", app.desk.talk(talk.id).queued[0].id)
        await until(pilot, lambda: "queued" not in text_of(app))

        assert "┃ second" in text_of(app)


async def test_a_message_over_the_limit_stays_with_a_notice(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    text = "x" * 500_000
    async with running(fake, start=talk.id) as (app, pilot):
        start = time.monotonic()
        composer(app).post_message(events.Paste(text))
        await until(pilot, lambda: "⟦paste 1" in composer(app).text)
        await pilot.press("enter")
        await until(pilot, lambda: "at most 256 KB" in text_of(app))

        assert time.monotonic() - start < 2
        assert composer(app).message == text
        assert fake.sent == []


async def test_a_large_paste_is_one_message(fake: FakeGateway, talk: FakeTalk) -> None:
    lines = [f"line {n}" for n in range(20_000)]
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).insert("see: ")
        composer(app).post_message(events.Paste("\r\n".join(lines)))
        await until(pilot, lambda: "20,000 lines" in composer(app).text)
        await pilot.press("enter")
        await until(pilot, lambda: fake.sent)

    assert fake.sent == [(talk.id, "see: " + "\n".join(lines))]


async def test_control_characters_of_a_paste_are_written_out(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).post_message(events.Paste("a\x1b[31mb\rc\td"))
        await until(pilot, lambda: composer(app).text)

        assert composer(app).text == "a\\x1b[31mb\nc\td"


async def test_a_draft_belongs_to_its_conversation(fake: FakeGateway, talk: FakeTalk) -> None:
    other = fake.add()
    fake.pin(other)
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).text = "half a thought"
        app.chat.open(other.id)
        await pilot.pause()
        assert composer(app).text == ""
        app.chat.open(talk.id)
        await pilot.pause()

        assert composer(app).text == "half a thought"


async def test_drafts_outlive_the_program(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path
) -> None:
    kept = tmp_path / "drafts.json"
    async with running(fake, start=talk.id, drafts_file=kept) as (app, pilot):
        composer(app).text = "half a thought"
        await pilot.pause()

    async with running(fake, start=talk.id, drafts_file=kept) as (app, _):
        assert composer(app).text == "half a thought"
    assert kept.stat().st_mode & 0o077 == 0


async def test_what_is_written_while_the_server_is_away_is_held_and_goes_out_once(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        fake.go_down()
        await until(pilot, lambda: "server away" in text_of(app))
        composer(app).text = "are you there"
        await pilot.press("enter")
        await until(pilot, lambda: "held: the server is away" in text_of(app))
        assert fake.sent == []
        fake.come_back()
        await until(pilot, lambda: fake.sent)
        await until(pilot, lambda: "server away" not in text_of(app))

        assert fake.sent == [(talk.id, "are you there")]


async def test_without_a_worker_messages_wait_and_can_be_taken_back(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.workers = 0
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "no worker is running: messages wait" in text_of(app))
        composer(app).text = "hello"
        await pilot.press("enter")
        await until(pilot, lambda: "held: no worker is running" in text_of(app))
        await pilot.press("alt+up")

        assert composer(app).text == "hello"
        assert fake.sent == []


async def test_a_refused_message_says_why_and_can_be_taken_back(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.refuse_sends = "the conversation [/closed] a minute ago"
    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).text = "hello"
        await pilot.press("enter")
        await until(pilot, lambda: "not sent: the conversation [/closed]" in text_of(app))
        await pilot.press("alt+up")

        assert composer(app).text == "hello"


async def test_the_app_paints_first_and_connects_after(fake: FakeGateway) -> None:
    gate = asyncio.Event()

    async def late() -> Gateway:
        await gate.wait()
        return fake

    async with running(fake, connect=late) as (app, pilot):
        await until(pilot, lambda: "starting…" in text_of(app))
        composer(app).text = "typed early"
        gate.set()
        await until(pilot, lambda: app.desk.fleet.link.is_up)

        assert composer(app).text == "typed early"


async def test_a_reply_streams_in_and_ends_as_the_whole_one(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.turn(talk, "hi")
    async with running(fake, start=talk.id) as (app, pilot):
        fake.stream(talk, "Looking **it")
        await until(pilot, lambda: "Looking **it ▍" in text_of(app))
        fake.stream(talk, "Looking **it up** and")
        await until(pilot, lambda: "Looking it up and ▍" in text_of(app))
        fake.say(talk, "Looking **it up** and down.")
        await until(pilot, lambda: "Looking it up and down." in text_of(app))

        assert "▍" not in text_of(app)


async def test_it_follows_the_end_only_while_it_is_there(fake: FakeGateway, talk: FakeTalk) -> None:
    for n in range(60):
        fake.turn(talk, f"message {n}")
        fake.end(talk)
    async with running(fake, start=talk.id, size=(90, 24)) as (app, pilot):
        await until(pilot, lambda: "message 59" in text_of(app))
        await pilot.press("pageup")
        await until(pilot, lambda: "message 59" not in text_of(app))
        place = text_of(app).splitlines()[2:8]
        fake.turn(talk, "newest")
        await until(pilot, lambda: "1 new · ctrl+End to follow" in text_of(app))
        assert text_of(app).splitlines()[2:8] == place
        await pilot.press("ctrl+end")
        await until(pilot, lambda: "┃ newest" in text_of(app))

        assert "to follow" not in text_of(app)


async def test_a_tool_card_shows_its_state_and_unfolds(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.turn(talk, "look")
    call = fake.call(talk, 1, "billing.lookup_order", '{"order_id":"A-1001"}', "allow", "find")
    fake.run(talk, call, "paid 42.00\nlate: yes")
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "✔ ok 0.3 s" in text_of(app))
        assert "billing.lookup_order as find" in text_of(app)
        assert "late: yes" not in text_of(app)
        transcript(app).focus()
        await pilot.press("x")
        await until(pilot, lambda: "late: yes" in text_of(app))
        assert '"order_id": "A-1001"' in text_of(app)
        await pilot.press("x")

        await until(pilot, lambda: "late: yes" not in text_of(app))


async def test_ctrl_c_twice_cancels_the_turn_and_once_does_not(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.turn(talk, "work")
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "thinking" in text_of(app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "ctrl+c again cancels the turn" in text_of(app))
        assert fake.cancelled == []
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "turn cancelled" in text_of(app))

    assert fake.cancelled == [talk.id]


async def test_a_rehearsal_is_marked_on_the_screen(fake: FakeGateway) -> None:
    talk = fake.add()
    fake.pin(talk, "rehearsal")
    fake.turn(talk, "hi")
    fake.say(talk, "hello")
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "REHEARSAL: no real model" in text_of(app))

        assert "agent  12:00  rehearsal" in text_of(app)


async def test_the_list_shows_states_and_opens_with_enter(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    other = fake.add("triage", title="Sort the mail")
    fake.pin(other)
    fake.open_item(other)
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "triage needs you" in text_of(app))
        await pilot.press("ctrl+b", "home", "enter")
        await until(pilot, lambda: app.chat.talk is not None and app.chat.talk.id == other.id)

        assert app.focused is composer(app)


async def test_a_new_conversation_asks_for_what_its_agent_needs(fake: FakeGateway) -> None:
    fake.cards = (
        AgentCard("billing"),
        AgentCard(
            "sales", variables={"company": VariableSpec(required=True)}, injected=("tenant",)
        ),
    )
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        composer(app).text = "written before"
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NewTalk))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "company (string, required)" in text_of(app))
        await pilot.press("A", "tab", "7", "ctrl+s")
        await until(pilot, lambda: app.chat.talk is not None)

        assert fake.started == [("sales", {"company": "A"}, {"tenant": "7"})]
        assert composer(app).text == "written before"


async def test_with_one_agent_the_first_message_starts_the_conversation(fake: FakeGateway) -> None:
    fake.cards = (AgentCard("billing"),)
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        composer(app).text = "refund A-1001"
        await pilot.press("enter")
        await until(pilot, lambda: "┃ refund A-1001" in text_of(app))

        assert [a for a, _, _ in fake.started] == ["billing"]
        assert [t for _, t in fake.sent] == ["refund A-1001"]
        assert composer(app).text == ""


async def test_the_words_written_before_an_agent_was_picked_are_its_first_message(
    fake: FakeGateway,
) -> None:
    fake.cards = (AgentCard("billing"), AgentCard("sales"))
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        composer(app).text = "refund A-1001"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewTalk))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "┃ refund A-1001" in text_of(app))

        assert [a for a, _, _ in fake.started] == ["sales"]
        assert [t for _, t in fake.sent] == ["refund A-1001"]
        assert composer(app).text == ""
        assert "pick an agent" not in text_of(app)
        assert "no conversation is open" not in text_of(app)


async def test_words_sent_before_any_agent_is_known_go_out_when_one_is(fake: FakeGateway) -> None:
    fake.cards = (AgentCard("billing"),)
    fake.agents_told.clear()
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: "● worker" in text_of(app))
        composer(app).text = "refund A-1001"
        await pilot.press("enter")
        await until(pilot, lambda: "goes out as soon as one is" in text_of(app))
        assert app.screen is app.chat
        assert composer(app).text == "refund A-1001"

        fake.agents_told.set()
        await until(pilot, lambda: "┃ refund A-1001" in text_of(app))

        assert [t for _, t in fake.sent] == ["refund A-1001"]
        assert "goes out as soon as one is" not in text_of(app)


async def test_words_sent_too_early_stay_where_they_are_when_they_were_changed(
    fake: FakeGateway,
) -> None:
    fake.cards = (AgentCard("billing"),)
    fake.agents_told.clear()
    async with running(fake) as (app, pilot):
        composer(app).text = "refund A-1001"
        await pilot.press("enter")
        await until(pilot, lambda: "goes out as soon as one is" in text_of(app))
        composer(app).text = "refund A-1002"

        fake.agents_told.set()
        await until(pilot, lambda: app.desk.fleet.agents)
        await until(pilot, lambda: "goes out as soon as one is" not in text_of(app))

        assert composer(app).text == "refund A-1002"
        assert fake.started == []


async def test_the_picker_lists_agents_that_become_known_while_it_is_open(
    fake: FakeGateway,
) -> None:
    fake.agents_told.clear()
    async with running(fake) as (app, pilot):
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "no agent is known yet" in text_of(app))
        fake.cards = (AgentCard("billing"), AgentCard("sales"))
        fake.agents_told.set()
        await until(pilot, lambda: "sales" in text_of(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: fake.started)

        assert [a for a, _, _ in fake.started] == ["sales"]


async def test_words_stay_when_no_agent_is_picked(fake: FakeGateway) -> None:
    fake.cards = (AgentCard("billing"), AgentCard("sales"))
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        composer(app).text = "refund A-1001"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewTalk))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)

        assert composer(app).text == "refund A-1001"
        assert fake.started == []


async def test_notices_of_the_program_are_shown_and_take_no_focus(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    board = NoticeBoard()
    async with running(fake, start=talk.id, board=board) as (app, pilot):
        await asyncio.to_thread(board.push, "agents/billing.yaml: [/reloaded]", "ok")
        await until(pilot, lambda: "agents/billing.yaml: [/reloaded]" in text_of(app))

        assert app.focused is composer(app)


async def test_a_question_of_the_program_waits_in_the_inbox(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    board = NoticeBoard()
    async with running(fake, start=talk.id, board=board) as (app, pilot):
        answer = board.ask(
            "billing asks less than before",
            "issue_refund no longer waits for a person.",
            (Option("y", "use", "use it"), Option("k", "keep", "keep the old one")),
        )
        await until(pilot, lambda: "1 waiting (F2)" in text_of(app))
        assert app.focused is composer(app)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        await pilot.press("y")
        await until(pilot, answer.done)

    assert answer.result() == "use"


async def test_five_thousand_messages_open_at_once(fake: FakeGateway, talk: FakeTalk) -> None:
    for n in range(2500):
        fake.turn(talk, f"message {n}")
        fake.say(talk, f"**reply** {n}\n\n- one\n- two\n\n```\ncode\n```\n")
        fake.end(talk)
    async with running(fake) as (app, pilot):
        app.chat.open(talk.id)
        await until(pilot, lambda: app.desk.talk(talk.id).is_current)
        pane = transcript(app)
        await until(pilot, lambda: "reply 2499" in text_of(app))
        assert len(pane.talk.entries) < 400
        while pane.talk.first_offset:
            await app.desk.older(talk.id, 4000)
            await pilot.pause(0.15)
        await until(pilot, lambda: "reply 2499" in text_of(app))
        assert len(pane.talk.entries) > 5000
        assert pane.following
        assert len(pane._drawn) < 60


async def test_everything_can_be_selected_and_copied(
    fake: FakeGateway, talk: FakeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.turn(talk, "hi")
    fake.say(talk, "first line 你好 end\n\nsecond line")
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: "second line" in text_of(app))
        lines = text_of(app).splitlines()
        y1 = next(i for i, t in enumerate(lines) if "first line" in t)
        x1 = lines[y1].index("first")
        y2 = next(i for i, t in enumerate(lines) if "second line" in t)
        await pilot.mouse_down(offset=(x1, y1))
        await pilot.hover(offset=(x1 + 5, y2))
        await pilot.mouse_up(offset=(x1 + 5, y2))
        await until(pilot, lambda: app.screen.get_selected_text())

        assert app.screen.get_selected_text() == "first line 你好 end\n\nsecond"


async def test_a_fault_nobody_foresaw_is_told_and_the_screen_goes_on(
    fake: FakeGateway, talk: FakeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> tuple[()]:
        raise ZeroDivisionError("a [/fault]")

    async with running(fake, start=talk.id) as (app, pilot):
        composer(app).text = "a draft"
        monkeypatch.setattr(fake, "list", broken)
        await until(pilot, lambda: "it goes on: ZeroDivisionError: a [/fault]" in text_of(app))

        assert composer(app).text == "a draft"
        assert app.is_running


async def test_leaving_decides_and_cancels_nothing(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.turn(talk, "work")
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("ctrl+q")
        await until(pilot, lambda: app.return_code is not None or not app.is_running)

    assert (fake.decisions, fake.cancelled, fake.closed) == ([], [], [])
