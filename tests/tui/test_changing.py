"""Changing a call before it runs, and allowing calls beforehand: seen whole, sent on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.screens.boxes import NameBox
from capuchin_yaml.tui.screens.editing import EditBox
from capuchin_yaml.tui.screens.grants import GrantsScreen
from capuchin_yaml.tui.screens.inbox import InboxScreen
from capuchin_yaml.tui.screens.remembering import RememberBox
from capuchin_yaml.tui.widgets.draft import Draft
from capuchin_yaml.tui.widgets.transcript import Transcript
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk
from tests.tui.test_inbox import open_first


@pytest.fixture
def talk(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    fake.call(talk, 1)
    return talk


async def open_form(app: CapuchinApp, pilot: Pilot[int]) -> EditBox:
    """Open the form of the item on show."""
    screen = app.screen
    assert isinstance(screen, InboxScreen)
    await until(pilot, lambda: screen.showing.schema is not None)
    await pilot.press("e")
    await until(pilot, lambda: isinstance(app.screen, EditBox) and isinstance(app.focused, Input))
    box = app.screen
    assert isinstance(box, EditBox)
    return box


async def write(app: CapuchinApp, pilot: Pilot[int], box: EditBox, amount: str) -> None:
    """Put an amount into the form and hand it on."""
    box.query(Input).first().value = amount
    await pilot.press("ctrl+s")
    await until(pilot, lambda: isinstance(app.screen, InboxScreen))


async def read(app: CapuchinApp, pilot: Pilot[int]) -> None:
    """Read what is on show to its end."""
    for _ in range(40):
        await pilot.pause()
        if not app.guard.unseen:
            break
        await pilot.press("pagedown")
    await until(pilot, lambda: app.guard.armed(app.event_clock()))


async def test_a_changed_call_is_shown_with_its_difference_and_runs_as_it_was_shown(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await write(app, pilot, await open_form(app, pilot), "2100")
        await until(pilot, lambda: "+ amount_cents  2100" in text_of(app))
        text = text_of(app)
        assert "- amount_cents  4200" in text
        assert '"amount_cents": 2100,' in text
        assert "with your changes" in text
        assert fake.decisions == []
        await read(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: "✔ approved with changes by anna" in text_of(app))

    assert fake.decisions == [(item.id, 1, "edit", "", "")]
    assert fake.edits == [(item.id, '{"amount_cents":2100,"order_id":"A-1001"}')]


async def test_the_keys_are_dead_until_the_changed_call_was_painted_and_seen(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id, size=(60, 16)) as (app, pilot):
        await open_first(app, pilot)
        await write(app, pilot, await open_form(app, pilot), "2100")
        await pilot.press("a")
        await until(pilot, lambda: "not taken" in text_of(app))
        await pilot.pause(0.3)

    assert fake.decisions == []


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        ("many", "amount_cents: 'many' is not a whole number"),
        ("0", "amount_cents"),
        ("", "amount_cents"),
    ],
)
async def test_arguments_that_the_tool_would_refuse_stay_in_the_form(
    fake: FakeGateway, talk: FakeTalk, amount: str, told: str
) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        box = await open_form(app, pilot)
        box.query(Input).first().value = amount
        await pilot.press("ctrl+s")
        await until(pilot, lambda: told in text_of(app))

        assert app.screen is box


async def test_the_form_turns_into_json_and_back_with_what_was_written(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        box = await open_form(app, pilot)
        box.query(Input).first().value = "17"
        await pilot.press("ctrl+t")
        await until(pilot, lambda: '"amount_cents": 17' in text_of(app))
        box.query_one(Draft).text = '{"amount_cents": 18, "amount_cents": 19}'
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "is there twice" in text_of(app))
        box.query_one(Draft).text = '{"order_id": "B-2", "amount_cents": 18}'
        await pilot.press("ctrl+t")
        await until(pilot, lambda: len(box.query(Input)) == 3)
        await write(app, pilot, box, "18")
        await read(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: fake.edits)

    assert fake.edits == [(item.id, '{"amount_cents":18,"order_id":"B-2"}')]


async def test_another_revision_drops_the_change_and_keeps_what_was_written(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await write(app, pilot, await open_form(app, pilot), "2100")
        fake.open_item(talk, revision=2, arguments='{"amount_cents":9900,"order_id":"A-1001"}')
        await until(pilot, lambda: '"amount_cents": 9900' in text_of(app))
        assert "with your changes" not in text_of(app)
        box = await open_form(app, pilot)

        assert box.query(Input).first().value == "2100"


async def test_x_drops_the_change(fake: FakeGateway, talk: FakeTalk) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await write(app, pilot, await open_form(app, pilot), "2100")
        await until(pilot, lambda: "with your changes" in text_of(app))
        await pilot.press("x")
        await until(pilot, lambda: "with your changes" not in text_of(app))
        await read(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: fake.decisions)

    assert fake.decisions == [(item.id, 1, "approve", "", "")]


async def test_a_destructive_tool_has_its_name_typed_for_a_changed_call_too(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.open_item(talk, effect="destructive")
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await write(app, pilot, await open_form(app, pilot), "2100")
        await read(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, NameBox))
        await pilot.press("enter")
        assert fake.decisions == []


async def test_the_editor_of_the_person_changes_the_arguments(
    fake: FakeGateway, talk: FakeTalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        box = await open_form(app, pilot)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.delenv("EDITOR", raising=False)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "set VISUAL or EDITOR" in str(app.notice_row))

        assert app.screen is box


async def test_the_form_view_says_what_each_argument_is(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await open_first(app, pilot)
        await pilot.press("v")
        await until(pilot, lambda: '{"amount_cents":4200,"order_id":"A-1001"}' in text_of(app))
        await pilot.press("v")
        await until(pilot, lambda: "integer, required: How much, in cents." in text_of(app))

        assert 'order_id  "A-1001"' in text_of(app)
        assert "reason  (not given)" in text_of(app)


async def remember(app: CapuchinApp, pilot: Pilot[int]) -> RememberBox:
    """Open the box that asks what to remember."""
    await open_first(app, pilot)
    await pilot.press("r")
    await until(pilot, lambda: isinstance(app.screen, RememberBox))
    box = app.screen
    assert isinstance(box, RememberBox)
    return box


async def test_remembering_takes_a_scope_and_an_end_and_shows_the_rule(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        box = await remember(app, pilot)
        await pilot.press("enter", "enter", "ctrl+s")
        await until(pilot, lambda: "choose what it is for" in text_of(app))
        box.query_one("#scope", Input).value = "tool"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "a grant must end" in text_of(app))
        box.query_one("#times", Input).value = "3"
        await until(pilot, lambda: "up to 3 more times" in text_of(app))
        text = " ".join(text_of(app).replace("│", " ").split())
        assert "every call of billing.issue_refund runs without asking" in text
        assert '"amount_cents":420000' in text
        assert fake.decisions == []
        await pilot.press("ctrl+s")
        await until(pilot, lambda: fake.given)

    assert fake.decisions == [(item.id, 1, "approve", "", "")]
    assert fake.given == [{"scope": "tool", "times": 3, "until": None}]


async def test_escape_in_the_box_decides_nothing(fake: FakeGateway, talk: FakeTalk) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        box = await remember(app, pilot)
        box.query_one("#scope", Input).value = "call"
        box.query_one("#times", Input).value = "3"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, InboxScreen))
        await pilot.pause(0.2)

    assert fake.decisions == []


async def test_a_rule_for_all_conversations_is_shown_and_copied(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await remember(app, pilot)
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "- tool: billing.issue_refund" in text_of(app))

        assert "then: allow" in app.clipboard
        assert "args.amount_cents == 4200" in app.clipboard


async def test_grants_are_listed_and_taken_back(fake: FakeGateway, talk: FakeTalk) -> None:
    grant = fake.allow(talk)
    fake.end(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f2", "b")
        await until(pilot, lambda: "allowed beforehand 1" in text_of(app))
        assert isinstance(app.screen, GrantsScreen)
        assert "up to 3 more times" in " ".join(text_of(app).split())
        await pilot.press("x")
        await until(pilot, lambda: "allowed beforehand 0" in text_of(app))

    assert fake.revoked == [grant.id]


async def test_opening_an_item_claims_it_and_the_claim_of_another_is_shown(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    until_then = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    async with running(fake, start=talk.id) as (app, pilot):
        screen = await open_first(app, pilot)
        assert fake.claims == [item.id]
        talk.items[item.id] = replace(item, claimed_by="bert", claimed_until=until_then)
        screen.showing._read_at = float("-inf")
        await until(pilot, lambda: "bert looks at it" in text_of(app))

        assert app.guard.armed(app.event_clock())


async def test_the_claim_of_a_program_that_was_killed_is_not_shown(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    code = (
        "import time; from capuchin_yaml.client.claimant import this_process;"
        "print(this_process(), flush=True); time.sleep(600)"
    )
    until_then = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    item = fake.open_item(talk)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:  # noqa: ASYNC220  # it only prints
        assert other.stdout is not None
        claimed = replace(
            item,
            claimed_by="bert",
            claimed_until=until_then,
            claimed_process=other.stdout.readline().strip(),
        )
        async with running(fake, start=talk.id) as (app, pilot):
            screen = await open_first(app, pilot)
            talk.items[item.id] = claimed
            screen.showing._read_at = float("-inf")
            await until(pilot, lambda: "bert looks at it" in text_of(app))
            other.kill()
            await until(pilot, lambda: "bert looks at it" not in text_of(app))


async def test_a_decision_with_changes_is_told_with_its_difference(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    changed = json.dumps({"amount_cents": 5, "order_id": "A-1001"}, separators=(",", ":"))
    fake.settle(item, "edit", "bert", arguments=changed)
    async with running(fake, start=talk.id) as (app, pilot):
        await pilot.press("f2", "t")
        await until(pilot, lambda: "approved with changes by bert" in text_of(app))
        text = text_of(app)

    assert "- amount_cents  4200" in text
    assert "+ amount_cents  5" in text


async def test_a_changed_call_stays_one_card_that_tells_what_was_asked_and_what_ran(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    ran = '{"amount_cents":2100,"order_id":"A-1001"}'
    async with running(fake, start=talk.id) as (app, pilot):
        fake.settle(item, "edit", "anna", "", arguments=ran)
        # The engine judges what a person wrote, and tells the call a second time.
        told = {"call_id": item.call_id, "tool": item.tool, "alias": "refund", "arguments": ran}
        fake.emit(talk, "tool_requested", **told, verdict="ask", reason="it asks")
        fake.emit(talk, "tool_started", **told)
        await until(pilot, lambda: "● running" in text_of(app))
        text = text_of(app)
        assert text.count("▸ billing.issue_refund") == 1
        assert 'changed by anna; asked: {"amount_cents":4200' in text
        await pilot.press("escape")
        app.chat.query_one(Transcript).focus()
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: "changed by anna (- asked, + runs)" in text_of(app))
        text = text_of(app)

    assert "- amount_cents  4200" in text
    assert "+ amount_cents  2100" in text


async def test_a_change_that_cannot_run_is_asked_again_as_the_model_wrote_it(
    fake: FakeGateway, talk: FakeTalk
) -> None:
    item = fake.open_item(talk)
    async with running(fake, start=talk.id) as (app, pilot):
        fake.settle(item, "edit", "anna", "", arguments='{"amount_cents":2100}')
        fake.open_item(talk)
        await until(pilot, lambda: "▲ waits for a person" in text_of(app))
        text = text_of(app)

    assert '{"amount_cents":4200' in text
    assert "changed by" not in text
