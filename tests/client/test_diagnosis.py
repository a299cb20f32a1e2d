"""What a person is told of a conversation that cannot go on."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from capuchin_yaml.client.diagnosis import Failing, blocked
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
