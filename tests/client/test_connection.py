"""A client connects quickly, sealed and quietly, or says what to type."""

from __future__ import annotations

from temporalio.client import Client

from capuchin_yaml.client import cluster


async def test_our_own_server_keeps_everything_and_has_the_search_attributes(
    temporal: Client,
) -> None:
    assert await cluster.retention_note(temporal) is None
    assert await cluster.ensure_search_attributes(temporal) == ()
