"""What a person is told of a conversation that cannot go on."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from capuchin_yaml.client.diagnosis import Failing, Seen, _is_busy, blocked
from capuchin_yaml.client.link import Link


@pytest.mark.parametrize(
    ("failure", "way_out"),
    [
        ("[TMPRL1100] Nondeterminism error: no such timer", "the release that it was made with"),
        ("Failed encoding completion: [Errno 28] No space left on device", "room on its worker's"),
    ],
)
def test_what_helps_a_blocked_conversation_depends_on_what_blocks_it(
    failure: str, way_out: str, temporal: Client
) -> None:
    error = blocked(
        Link(temporal, "shop", "test@here"),
        "shop.billing-000000",
        Failing(attempt=3, failure=failure, since=""),
    )

    assert failure in str(error)
    assert way_out in str(error)


@pytest.mark.parametrize(
    ("ago_s", "silent_s", "busy"),
    [
        (0.2, 12.0, True),  # it asks for work all the time and has not come to this one
        (13.0, 12.0, False),  # it has not been seen since the work waits
        (8.0, 12.0, False),  # it was seen in the beginning only
        (0.2, 61.0, False),  # it asks, and never takes this
    ],
)
def test_a_worker_that_asks_for_work_is_busy_and_not_gone(
    ago_s: float, silent_s: float, busy: bool
) -> None:
    assert _is_busy((Seen("old", 70.0), Seen("worker", ago_s)), silent_s) is busy
