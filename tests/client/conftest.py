"""Projects of their own for tests that start, kill and mend servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from capuchin_yaml.client.home import Home
from capuchin_yaml.client.server import stop
from tests.client.holding import Holder

if TYPE_CHECKING:
    from temporalio.client import Client

    from capuchin_yaml.client.fleet import Capuchin
    from tests.engine.house import House

Holding = Callable[[], Awaitable[Holder]]


@pytest.fixture
async def project(tmp_path: Path) -> AsyncIterator[Home]:
    """An untouched project; its server is ended at the end, whatever a test left behind."""
    folder = tmp_path / "shop"
    folder.mkdir()
    home = Home.find(folder)
    yield home
    if home.server_file.exists():
        await stop(home)


@pytest.fixture
async def hold(project: Home) -> AsyncIterator[Holding]:
    """Start a process that holds the project's server."""
    holders: list[Holder] = []

    async def start() -> Holder:
        holders.append(await Holder.of(project))
        return holders[-1]

    yield start
    for holder in holders:
        await holder.clear()


@pytest.fixture
async def house(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    """A project of its own on the shared server, served by a worker in this process."""
    from tests.engine.house import open_house

    async with open_house(temporal, tmp_path) as opened:
        yield opened


@pytest.fixture
def fleet(temporal: Client, house: House) -> Capuchin:
    """The conversations of `house`'s project."""
    from capuchin_yaml.client.fleet import Capuchin

    return Capuchin(temporal, project=house.project, program="test")
