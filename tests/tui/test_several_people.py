"""Items that take several people, or certain ones, and the bell that the operator wants."""

from __future__ import annotations

import pytest

from capuchin_yaml.events import Event
from capuchin_yaml.items import who_has, who_may
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway
from tests.tui.test_talk import ID, PINNED, applied, event, item, turn


def shared(**more: object) -> dict[str, object]:
    return {
        **item(),
        "approvers": ["finance"],
        "may_decide": ["ann", "bob"],
        "quorum": 2,
        "votes": [],
        "exclude": [],
        **more,
    }


def voted(offset: int, by: str, *dropped: str, proven: bool = False) -> Event:
    return event(
        offset,
        "item_voted",
        item_id=f"{ID}:a1",
        by=by,
        votes=1,
        quorum=2,
        proven=proven,
        client="cli@desk",
        dropped=list(dropped),
    )


def test_an_approval_of_several_is_kept_with_the_item() -> None:
    talk = applied([PINNED, turn(), event(2, "item_opened", item=shared()), voted(3, "ann")])
    found = talk.items[f"{ID}:a1"]

    assert found.needed == 1
    assert who_has(found) == "1 of 2 approved: ann (not proven); 1 more needed"
    assert who_may(found) == "finance: ann, bob"


def test_who_no_longer_counts_is_taken_off() -> None:
    opened = event(2, "item_opened", item=shared())
    events = [PINNED, turn(), opened, voted(3, "ann"), voted(4, "bob", "ann", proven=True)]
    talk = applied(events)

    assert who_has(talk.items[f"{ID}:a1"]) == "1 of 2 approved: bob; 1 more needed"


def test_an_escalated_item_names_both_groups_and_its_new_time() -> None:
    due = "2026-12-01T12:00:00+00:00"
    opened = event(2, "item_opened", item=shared(then="escalate", escalate_to="managers"))
    escalated = event(3, "item_escalated", item_id=f"{ID}:a1", to="managers", due=due)
    found = applied([PINNED, turn(), opened, escalated]).items[f"{ID}:a1"]

    assert found.approvers == ("finance", "managers")
    assert (found.then, found.due, found.escalated) == ("deny", due, "managers")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"approvers": [], "quorum": 1}, ""),
        ({"approvers": []}, "anyone"),
        ({"exclude": ["ann"]}, "finance: ann, bob; not ann, who asked for it"),
        (
            {"may_decide": []},
            "finance: nobody the operator's config of the worker knows",
        ),
    ],
)
def test_who_may_decide_is_said_where_it_is_not_just_anyone(
    more: dict[str, object], words: str
) -> None:
    found = applied([PINNED, turn(), event(2, "item_opened", item=shared(**more))])

    assert who_may(found.items[f"{ID}:a1"]) == words


async def test_the_bell_rings_for_what_waits_where_the_operator_wants_it(
    fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.rings = True
    talk = fake.add()
    fake.pin(talk)
    async with running(fake) as (app, pilot):
        rung: list[bool] = []
        monkeypatch.setattr(app, "bell", lambda: rung.append(True))
        fake.open_item(talk)
        await until(pilot, lambda: rung)

        assert app.app_focus
        assert text_of(app)
