"""Many items at once: order, filter, marks, not now, bulk answers, and what was decided before."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.bench import PUT_OFF_S, Bench, identical
from capuchin_yaml.tui.screens.boxes import NameBox, TextBox
from capuchin_yaml.tui.screens.inbox import InboxScreen
from capuchin_yaml.tui.widgets.picklist import PickList
from capuchin_yaml.tui.widgets.reader import Reader
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway, FakeTalk


def waiting(item: str, agent: str = "billing", at: str = "1", digest: str = "d") -> InboxRow:
    return InboxRow(
        id=item,
        kind="approval",
        conversation=f"demo.{agent}-1",
        agent=agent,
        title="",
        requested_at=at,
        due=None,
        then="wait",
        tool=f"{agent}.do",
        digest=digest,
        revision=1,
    )


ROWS = [waiting("x", "zeta", "2"), waiting("y", "alpha", "3"), waiting("z", "mid", "1")]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("deadline", "xyz"), ("longest wait", "zxy"), ("newest", "yxz"), ("agent", "yzx")],
)
def test_rows_come_in_the_order_that_was_chosen(order: str, expected: str) -> None:
    bench = Bench()
    while bench.order != order:
        bench.next_order()

    assert "".join(r.id for r in bench.arranged(ROWS, 0)) == expected


def test_what_was_put_off_stands_last_for_a_while_and_a_new_revision_does_not() -> None:
    bench = Bench()
    assert bench.put_off(ROWS[0], 0.0)

    assert [r.id for r in bench.arranged(ROWS, 1.0)] == ["y", "z", "x"]
    assert [r.id for r in bench.arranged(ROWS, PUT_OFF_S + 1)] == ["x", "y", "z"]
    assert not bench.put_off(ROWS[0], 2.0)


def test_a_filter_needs_every_word_and_marks_end_with_their_items() -> None:
    bench = Bench(needle="ALPHA do")
    bench.toggle("x")
    bench.toggle("y")
    bench.keep(ROWS[1:])

    assert [r.id for r in bench.arranged(ROWS, 0)] == ["y"]
    assert bench.marks == {"y"}


def test_only_approvals_with_the_very_same_digest_are_identical() -> None:
    rows = [waiting("a"), waiting("b"), waiting("c", digest="other")]

    assert [r.id for r in identical("d", rows)] == ["a", "b"]
    assert identical("", rows) == []


@pytest.fixture
def talks(fake: FakeGateway) -> list[FakeTalk]:
    found = []
    for n in range(3):
        talk = fake.add("billing", id=f"demo.billing-{n:06}")
        fake.pin(talk)
        fake.turn(talk, f"refund {n}")
        found.append(talk)
    return found


async def open_inbox(app: CapuchinApp, pilot: Pilot[int], count: int) -> InboxScreen:
    await until(pilot, lambda: len(app.desk.fleet.waiting()) == count)
    await pilot.press("f2")
    screen = app.screen
    assert isinstance(screen, InboxScreen)
    await until(pilot, lambda: screen.item is not None)
    return screen


async def armed(app: CapuchinApp, pilot: Pilot[int]) -> None:
    for _ in range(40):
        await pilot.pause()
        if not app.guard.unseen:
            break
        await pilot.press("pagedown")
    await until(pilot, lambda: app.guard.armed(app.event_clock()))


async def test_marked_approvals_are_denied_with_one_reason(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    items = [fake.open_item(t, n, arguments=f'{{"n":{n}}}') for n, t in enumerate(talks)]
    async with running(fake, start=talks[0].id) as (app, pilot):
        await open_inbox(app, pilot, 3)
        await pilot.press("home", "m", "down", "m")
        await until(pilot, lambda: "2 marked, D denies them" in text_of(app))
        await pilot.pause(0.4)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.focused, TextArea))
        assert "deny 2 calls" in text_of(app)
        await pilot.press(*"late", "ctrl+s")
        await until(pilot, lambda: "2 of 2 calls denied" in text_of(app))

    marked = {d[0] for d in fake.decisions}
    assert len(marked) == 2
    assert marked < {i.id for i in items}
    assert {(d[2], d[3]) for d in fake.decisions} == {("deny", "late")}


async def test_a_bulk_deny_needs_a_quiet_moment_and_escape_decides_nothing(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    fake.open_item(talks[0])
    async with running(fake, start=talks[0].id) as (app, pilot):
        await open_inbox(app, pilot, 1)
        await pilot.press("m")
        await until(pilot, lambda: app.bench.marks)
        app.guard.input(app.event_clock())
        await pilot.press("D")
        await until(pilot, lambda: "not taken: keys came just before" in text_of(app))
        await pilot.pause(0.4)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, TextBox))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, InboxScreen))

    assert fake.decisions == []


async def test_identical_calls_are_approved_together_after_one_was_read(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    same = [fake.open_item(t, 1) for t in talks[:2]]
    other = fake.open_item(talks[2], 1, arguments='{"amount_cents":990000}')
    async with running(fake, start=talks[0].id) as (app, pilot):
        screen = await open_inbox(app, pilot, 3)
        await until(pilot, lambda: screen.item is not None and screen.item.id == same[0].id)
        await pilot.press("enter")
        await armed(app, pilot)
        await until(pilot, lambda: "A approve all 2" in text_of(app))
        await pilot.press("A")
        await until(pilot, lambda: "2 of 2 calls approved" in text_of(app))

    assert {(d[0], d[2]) for d in fake.decisions} == {(i.id, "approve") for i in same}
    assert other.id not in {d[0] for d in fake.decisions}


async def test_identical_destructive_calls_have_their_tool_typed(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    for talk in talks[:2]:
        fake.open_item(talk, 1, effect="destructive")
    async with running(fake, start=talks[0].id) as (app, pilot):
        await open_inbox(app, pilot, 2)
        await pilot.press("enter")
        await armed(app, pilot)
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, NameBox))
        await pilot.press("y", "enter", "escape")

    assert fake.decisions == []


async def test_not_now_and_the_filter_arrange_the_list_and_hide_nothing_for_good(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    first = fake.open_item(talks[0], 1, tool="billing.alpha")
    second = fake.open_item(talks[1], 1, tool="billing.beta")
    async with running(fake, start=talks[0].id) as (app, pilot):
        await open_inbox(app, pilot, 2)
        await pilot.press("home", "z")
        items = app.screen.query_one("#items", PickList)
        await until(pilot, lambda: items.keys == (second.id, first.id))
        assert "not now · " in text_of(app)
        assert "2 waiting" in text_of(app)
        await pilot.press("slash", *"beta", "enter")
        await until(pilot, lambda: items.keys == (second.id,) or "filter 'beta'" in text_of(app))
        await pilot.press("escape")

        await until(pilot, lambda: len(items.keys) == 2)


async def test_decided_tells_who_when_and_why_also_of_other_conversations(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    item = fake.open_item(talks[1], 1)
    fake.settle(item, "deny", "bert", "too [late]")
    async with running(fake, start=talks[0].id) as (app, pilot):
        await pilot.press("f2")
        await until(pilot, lambda: "nothing waits for you" in text_of(app))
        await pilot.press("t")
        await until(pilot, lambda: "✖ denied by bert: too [late]" in text_of(app))
        detail = app.screen.query_one(Reader)
        await until(pilot, lambda: "bert (the name is asserted, not signed)" in detail.text)
        assert '"amount_cents": 4200' in detail.text
        await pilot.press("slash", *"nobody")
        await until(pilot, lambda: "nothing holds that text" in text_of(app))
        await pilot.press("escape", "t")

        await until(pilot, lambda: isinstance(app.screen, InboxScreen))
        assert "last decision 12:00" in text_of(app)


async def test_what_a_conversation_did_since_it_was_left_is_seen_in_list_and_inbox(
    fake: FakeGateway, talks: list[FakeTalk]
) -> None:
    """Case: a conversation that was on show before hides an approval that came later."""
    first, second = talks[0], talks[1]
    async with running(fake, start=first.id) as (app, pilot):
        await until(pilot, lambda: app.desk.talk(first.id).is_current)
        app.chat.open(second.id)
        item = fake.open_item(first)
        await until(pilot, lambda: [r.id for r in app.desk.fleet.waiting()] == [item.id])
        row = app.desk.fleet.rows[first.id]

        assert app.desk.fleet.status(row) == "waiting"
