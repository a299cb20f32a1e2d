"""The inbox: everything that waits, seen whole and answered on purpose."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.screens.boxes import NameBox, TextBox
from capuchin_yaml.tui.screens.inbox import InboxScreen
from capuchin_yaml.tui.widgets.composer import Composer
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    return talk


async def open_first(app: CapuchinApp, pilot: Pilot[int]) -> InboxScreen:
    """Open the inbox and its first item, and read it to the end."""
    await until(pilot, app.desk.fleet.waiting)
    await pilot.press("f2", "enter")
    screen = app.screen
    assert isinstance(screen, InboxScreen)
    await until(pilot, lambda: screen.item is not None or screen.question is not None)
    for _ in range(40):
        await pilot.pause()
        if not app.guard.unseen:
            break
        await pilot.press("pagedown")
    await until(pilot, lambda: app.guard.armed(app.event_clock()))
    return screen


def is_in_box(app: CapuchinApp) -> bool:
    """Whether a box is open and takes text."""
    return isinstance(app.screen, TextBox) and isinstance(app.focused, TextArea)


async def test_an_approval_that_arrives_takes_no_focus_and_leaves_the_draft(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        composer = app.chat.query_one(Composer)
        await pilot.press("h", "i")
        fake.open_item(talk)
        await until(pilot, lambda: "▲ 1 waiting (F2)" in text_of(app))
        await pilot.press("a")

        assert app.focused is composer
        assert composer.text == "hia"
        assert "waits for a person" in text_of(app)
        assert fake.decisions == []


async def test_f2_opens_the_item_of_the_conversation_on_the_screen(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    """Case: the inbox shows another conversation's approval than the one a person came from."""
    first = fake.open_item(talk)
    other = fake.add(id="demo.billing-b00000")
    fake.pin(other)
    fake.turn(other, "another one")
    second = fake.open_item(other)
    for conversation, item in ((other, second), (talk, first)):
        async with running(fake, start=conversation.id) as (app, pilot):
            await until(pilot, lambda: len(app.desk.fleet.waiting()) == 2)
            await pilot.press("f2")
            assert isinstance(app.screen, InboxScreen)
            await until(pilot, partial(getattr, app.screen, "item"))

            assert app.screen.item is not None
            assert app.screen.item.id == item.id


async def test_the_detail_shows_all_that_a_decision_is_bound_to(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.call(talk, 1)
    item = fake.open_item(talk, 1)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        text = text_of(app)

    for part in (
        "tool       billing.issue_refund",
        "alias      refund",
        "package    capuchin-billing 0.1.0",
        "effect     write",
        "why        denylist: asks before billing.issue_refund",
        "billing 1.2.0 · definition 3f2a91bc3f2a",
        "demo.billing-a91f00",
        '"amount_cents": 4200,',
        '"currency": "USD"',
        '"tenant": "7"',
        f"digest {item.digest[:12]} · revision 1",
        "left, then it is denied",
        "anna  refund A-1001 please",
    ):
        assert part in text
    assert text.index("tool       billing.issue_refund") < text.index("alias      refund")


async def test_approve_sends_exactly_this_revision_and_shows_the_logs_word(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    fake.answers_decisions = False
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: fake.decisions)
        await pilot.pause(0.2)
        assert "✔ approved" not in text_of(app)
        fake.settle(item, "approve", "anna")
        await until(pilot, lambda: "✔ approved by anna (your name)" in text_of(app))

    assert fake.decisions == [(item.id, 1, "approve", "", "")]


async def test_deny_opens_a_box_where_escape_decides_nothing(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await pilot.press("d")
        await until(pilot, lambda: is_in_box(app))
        await pilot.press("a", "escape")
        await until(pilot, lambda: isinstance(app.screen, InboxScreen))
        assert fake.decisions == []
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        await pilot.press("d")
        await until(pilot, lambda: is_in_box(app))
        await pilot.press("n", "o", "enter", "w", "ctrl+s")
        await until(pilot, lambda: "✖ denied by anna (your name): no w" in text_of(app))

    assert fake.decisions == [(item.id, 1, "deny", "no\nw", "")]


async def test_a_destructive_tool_has_its_name_typed(fake: FakeGateway, talk: FakeTalk) -> None:
    item = fake.open_item(talk, effect="destructive", tool="disk.wipe", alias="w")
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, NameBox))
        await pilot.press("enter", "y", "enter")
        await pilot.pause()
        assert fake.decisions == []
        assert "that is not its name" in text_of(app)
        await pilot.press("backspace", *["full_stop" if c == "." else c for c in "disk.wipe"])
        await pilot.press("enter")
        await until(pilot, lambda: fake.decisions)

    assert fake.decisions == [(item.id, 1, "approve", "", "")]


async def test_keys_do_nothing_before_the_end_was_read(fake: FakeGateway, talk: FakeTalk) -> None:
    long = '{"text":"' + "word " * 2000 + '"}'
    fake.open_item(talk, arguments=long)
    async with running(fake, start=talk.id) as (app, pilot):
        await until(pilot, app.desk.fleet.waiting)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: "more lines to read" in text_of(app))
        await pilot.pause(0.4)
        await pilot.press("a")
        await until(pilot, lambda: "not taken: scroll to the end first" in text_of(app))
        await pilot.press("end")
        await pilot.pause(0.4)
        await pilot.press("a")
        await pilot.pause(0.2)

        assert app.guard.unseen > 0
        assert fake.decisions == []


async def test_the_exact_text_is_one_key_away(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.open_item(talk, arguments='{"a":1.0,"b":"x  y"}')
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        assert '"a": 1.0,' in text_of(app)
        await pilot.press("v")
        await until(pilot, lambda: '{"a":1.0,"b":"x  y"}' in text_of(app))

        assert "every byte as it is sent" in text_of(app)


async def test_a_new_revision_must_be_read_again(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        screen = await open_first(app, pilot)
        second = fake.open_item(talk, revision=2, arguments='{"amount_cents":990000}')
        await until(pilot, lambda: screen.item is not None and screen.item.revision == 2)
        assert '"amount_cents": 990000' in text_of(app)
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        await pilot.press("a")
        await until(pilot, lambda: fake.decisions)

    assert fake.decisions == [(second.id, 2, "approve", "", "")]


async def test_decided_elsewhere_is_a_normal_outcome_and_no_key_falls_to_the_next_item(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    first = fake.open_item(talk, 1)
    fake.open_item(talk, 2, arguments='{"order_id":"A-2"}')
    async with running(fake, start=talk.id) as (app, pilot):
        screen = await open_first(app, pilot)
        fake.settle(first, "deny", "bert", "too [late]")
        await until(pilot, lambda: "✖ denied by bert: too [late]" in text_of(app))
        await pilot.pause(0.4)
        await pilot.press("a")
        await pilot.pause(0.2)

        assert screen.item is not None
        assert screen.item.id == first.id
        assert fake.decisions == []


async def test_a_decision_that_came_second_is_told_who_and_how(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await pilot.press("a")
        talk.items.clear()
        fake.emit(talk, "item_decided", item_id=item.id, item_kind="approval", choice="deny",
                  by="bert", reason="no")  # fmt: skip
        await until(pilot, lambda: "denied by bert: no" in text_of(app))


async def test_without_the_server_nothing_is_answered(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        fake.go_down()
        await until(pilot, lambda: "server away" in text_of(app))
        await pilot.press("a")
        await until(pilot, lambda: "not taken: the server is away" in text_of(app))

    assert fake.decisions == []


async def test_an_item_of_a_conversation_not_on_show_is_read_from_it(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    other = fake.add("triage")
    fake.pin(other)
    long = '{"text":"' + "x" * 500 + 'END"}'
    fake.open_item(other, arguments=long)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)

        assert 'END"' in text_of(app)


async def test_an_unknown_outcome_takes_a_result_or_is_run_again_or_failed(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk, kind="outcome", title="issue_refund may have happened")
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        for label in (
            "h it happened (enter",
            "r it did not (run it again)",
            "f treat it as",
        ):
            await until(pilot, lambda label=label: label in text_of(app))  # type: ignore[misc]  # bound now
        await pilot.press("h")
        await until(pilot, lambda: is_in_box(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "write what the tool would have answered" in text_of(app))
        await pilot.press("o", "k", "ctrl+s")
        await until(pilot, lambda: fake.decisions)

    assert fake.decisions == [(item.id, 1, "happened", "", "ok")]


async def test_a_limit_goes_on_or_stops(fake: FakeGateway, talk: FakeTalk) -> None:
    item = fake.open_item(talk, kind="limit", tool="", arguments="", title="8 model calls are used")
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        assert "o go on  s stop the turn" in text_of(app)
        await pilot.press("o")
        await until(pilot, lambda: fake.decisions)

    assert fake.decisions == [(item.id, 1, "go_on", "", "")]


@pytest.mark.parametrize("kind", ["question", "survey\x1b[31m"])
@pytest.mark.parametrize("size", [(120, 40), (40, 12)])
async def test_a_kind_of_a_later_release_is_drawn_and_says_what_to_type(
    fake: FakeGateway, talk: FakeTalk, kind: Any, size: tuple[int, int]
) -> None:
    item = fake.open_item(talk, kind=kind, tool="", title="Which order?", arguments="")
    async with running(fake, start=talk.id, size=size) as (app, pilot):
        await until(pilot, app.desk.fleet.waiting)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: "this release has no" in " ".join(text_of(app).split()))
        for key in ("a", "d", "e", "r", "m", "D", "z", "v", "g"):
            await pilot.press(key)
        await until(pilot, lambda: app.screen is app.chat)
        fake.settle(item, "withdrawn", "")
        await until(pilot, lambda: not app.desk.fleet.waiting())
        assert "\x1b" not in text_of(app)

    assert fake.decisions == []


async def test_escape_leaves_and_g_goes_to_the_conversation(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    other = fake.add("triage")
    fake.pin(other)
    fake.open_item(other)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        await pilot.press("f2", "g")
        await until(pilot, lambda: app.chat.talk is not None and app.chat.talk.id == other.id)

    assert fake.decisions == []


async def test_the_inbox_says_when_nothing_waits(fake: FakeGateway, talk: FakeTalk) -> None:
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f2")

        await until(pilot, lambda: "nothing waits for you" in text_of(app))


async def test_the_rule_that_asks_is_shown_as_written_with_its_file_and_line(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    rule = "rule 2 (agents/billing.yaml:14): when: args.amount_cents > 50 · then: ask"
    fake.open_item(talk, rule=rule)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        text = text_of(app)

    assert "rule       rule 2 (agents/billing.yaml:14): when: args.amount_cents > 50" in text
