"""A fresh project with a worker, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.engine.house import House, open_house


def pytest_configure(config: pytest.Config) -> None:
    """Name the tests that take their time."""
    config.addinivalue_line("markers", "slow: waits more than 20 s for a clock to run down")


@pytest.fixture
async def house(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    """A project of its own on the shared server, served by a worker in this process."""
    async with open_house(temporal, tmp_path) as opened:
        yield opened
