"""A read-only view: it looks, and nothing it is asked for changes anything."""

from __future__ import annotations

import pytest

from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.tui.gateway import Gateway
from capuchin_yaml.tui.read_only import READS, read_only
from tests.tui.conftest import running, text_of, until
from tests.tui.fake_gateway import FakeGateway

WRITES = {
    "start",
    "send",
    "decide",
    "revoke",
    "claim",
    "reopen",
    "cancel_turn",
    "close_talk",
    "rename",
}


def test_every_member_of_a_gateway_is_known_to_look_or_to_change() -> None:
    members = {name for name in vars(Gateway) if not name.startswith("_")}

    assert members == READS | WRITES


@pytest.mark.parametrize("name", sorted(WRITES))
async def test_what_changes_something_is_refused_and_never_reaches_the_server(name: str) -> None:
    fake = FakeGateway()
    gateway = read_only(fake)

    with pytest.raises(RequestRefused, match="read-only"):
        await getattr(gateway, name)("demo.billing-000001")

    assert (fake.sent, fake.decisions, fake.closed, fake.started) == ([], [], [], [])


async def test_the_screen_says_so_and_a_decision_is_refused_aloud() -> None:
    fake = FakeGateway()
    talk = fake.add()
    fake.pin(talk)
    fake.open_item(talk)
    gateway = read_only(fake)

    async def connect() -> Gateway:
        return gateway

    async with running(fake, start=talk.id, connect=connect, is_read_only=True) as (app, pilot):
        await until(pilot, lambda: "1 waiting" in text_of(app))
        assert "read-only: nothing is sent and nothing decided here" in text_of(app)
        await pilot.press("f2", "enter")
        await until(pilot, lambda: app.guard.armed(app.event_clock()))
        await pilot.press("a")
        await until(pilot, lambda: "nothing was sent and nothing decided" in text_of(app))

    assert fake.decisions == []
