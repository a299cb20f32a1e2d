"""Events, costs, agents and the palette: what they show, and that nothing is decided there."""

from __future__ import annotations

import time

import pytest

from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.screens.chooser import Chooser
from capuchin_yaml.tui.screens.new_talk import NewTalk
from capuchin_yaml.tui.widgets.composer import Composer
from capuchin_yaml.tui.widgets.reader import Reader
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    call = fake.call(talk, 1, "billing.lookup_order", '{"order_id":"A-1001"}', "allow", "look")
    fake.run(talk, call, "paid 4200", "ok")
    broken = fake.call(talk, 2, "billing.audit", "{}", "allow", "audit")
    fake.run(talk, broken, "disk full", "error")
    fake.say(talk, "Done.")
    fake.spend(talk, 12_000)
    fake.end(talk)
    return talk


async def test_events_are_grouped_into_steps_and_the_marked_one_is_shown_whole(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f3")
        await until(pilot, lambda: "events · steps · following" in text_of(app))
        text = text_of(app)
        assert "✔ tool  billing.lookup_order · ok" in text
        assert "✖ tool  billing.audit · error" in text
        assert "scripted:demo · 13,200 tokens" in text
        await pilot.press("up", "enter")
        await until(pilot, lambda: '"text": "disk full"' in app.screen.query_one(Reader).text)
        await pilot.press("escape", "escape")

        await until(pilot, lambda: app.screen is app.chat)


async def test_the_raw_log_errors_only_and_the_filter_show_a_part(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f3", "v")
        await until(pilot, lambda: '0  {"kind": "definition_pinned"' in text_of(app))
        await pilot.press("!")
        await until(pilot, lambda: "errors only" in text_of(app))
        assert "paid 4200" not in text_of(app)
        assert "disk full" in text_of(app)
        await pilot.press("v", "!", "slash", *"lookup")
        await until(pilot, lambda: "filter 'lookup'" in text_of(app))
        assert "billing.audit" not in text_of(app)
        await pilot.press("escape")

        await until(pilot, lambda: "billing.audit · error" in text_of(app))


async def test_events_follow_the_end_until_the_reader_goes_elsewhere(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f3")
        fake.turn(talk, "newest words")
        await until(pilot, lambda: '"text": "newest words"' in app.screen.query_one(Reader).text)
        await pilot.press("home")
        await until(pilot, lambda: "following" not in text_of(app))
        fake.say(talk, "later")
        await pilot.pause(0.3)
        assert '"kind": "definition_pinned"' in app.screen.query_one(Reader).text
        await pilot.press("f")

        await until(pilot, lambda: '"text": "later"' in app.screen.query_one(Reader).text)


async def test_older_events_are_read_when_they_are_asked_for(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    for n in range(300):
        fake.turn(talk, f"message {n}")
        fake.end(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: app.desk.talk(talk.id).is_current)
        first = app.desk.talk(talk.id).first_offset
        await pilot.press("f3")
        await until(pilot, lambda: f"{first} older events: o reads them" in text_of(app))
        await pilot.press("o")
        await until(pilot, lambda: not app.desk.talk(talk.id).first_offset)

        await until(pilot, lambda: "older events" not in text_of(app))
        assert fake.pages == [(0, first)]


async def test_costs_add_up_tokens_by_conversation_agent_and_model(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    for agent, model in (("billing", "scripted:demo"), ("sales", "other:model")):
        other = fake.add(agent, title=f"a {agent} talk")
        fake.pin(other, model)
        fake.spend(other, 1_000)
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f4")
        await until(pilot, lambda: "15,400" in text_of(app))
        assert "a sales talk" in text_of(app)
        assert "money is not shown" in text_of(app)
        await pilot.press("tab")
        await until(pilot, lambda: "billing  2 conversations" in text_of(app))
        await pilot.press("tab")

        await until(pilot, lambda: "other:model  1 conversation" in text_of(app))


async def test_agents_show_policy_faults_with_their_line_and_the_worker(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.cards = (
        AgentCard("billing", "1.2.0", policy="denylist: asks before billing.issue_refund"),
        AgentCard("sales", problem="agents/sales.yaml:4:3: model has no key 'max_ouput'"),
        AgentCard("new", variables={"company": VariableSpec(required=True)}),
    )
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        await pilot.press("f5")
        await until(pilot, lambda: "worker: 1 listens" in text_of(app))
        assert "agents/sales.yaml:4:3: model has no key 'max_ouput'" in text_of(app)
        await pilot.press("down")
        await until(pilot, lambda: "denylist: asks before billing.issue_refund" in text_of(app))
        fake.workers = 0
        await until(pilot, lambda: "worker: none: messages wait" in text_of(app))
        await pilot.press("down", "n")

        await until(pilot, lambda: isinstance(app.screen, NewTalk))
        await until(pilot, lambda: "company (string, required)" in text_of(app))


async def test_the_palette_holds_every_action_conversation_and_agent(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.cards = (AgentCard("sales", description="questions about [/products]"),)
    other = fake.add("triage", title="Sort the mail")
    fake.pin(other)
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, lambda: app.desk.fleet.agents)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
        await pilot.press(*"[/prod")
        await until(pilot, lambda: app.screen.query_one("#choices").keys == ("a:sales",))  # type: ignore[attr-defined]  # a list
        for _ in range(6):
            await pilot.press("backspace")
        await pilot.press(*"mail", "enter")
        await until(pilot, lambda: app.chat.talk is not None and app.chat.talk.id == other.id)
        await pilot.press("ctrl+p", *"costs", "enter")

        await until(pilot, lambda: "by conversation" in text_of(app))


async def test_the_palette_answers_within_a_moment_over_five_thousand_conversations(
    fake: FakeGateway,
) -> None:
    for n in range(5000):
        fake.add("billing", title=f"a title {n:06}", id=f"demo.x-{n:05}y")
    async with running(fake) as (app, pilot):
        await until(pilot, lambda: len(app.desk.fleet.rows) == 5000)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Chooser))
        screen = app.screen
        assert isinstance(screen, Chooser)
        start = time.perf_counter()
        screen._filter("title 004321")
        took = time.perf_counter() - start

        assert len(screen.keys_shown) == 1
        assert took < 0.25


async def test_f_keys_change_screens_from_anywhere_and_leave_the_draft(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("h", "i")
        for name in ("f3", "f4", "f5", "f2", "f4"):
            await pilot.press(name)
        await until(pilot, lambda: "by conversation" in text_of(app))
        assert len(app.screen_stack) == 3
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)

        assert app.chat.query_one(Composer).text == "hi"


async def test_a_screen_that_is_left_before_it_was_there_is_no_fault(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        for opened in (
            app.action_inbox,
            app.action_decided,
            app.action_events,
            app.action_costs,
            app.action_agents,
        ):
            opened()
            app.to_chat()
        await pilot.pause(0.2)

        assert app.screen is app.chat
        assert app.stopped_by == ""
