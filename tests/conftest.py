"""What every room's tests share: a clean environment, one real server, one sealed client.

Heavy imports stay inside the fixtures, so that a run that needs no server starts at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from temporalio.client import Client

    from capuchin_yaml.client.home import Home
    from capuchin_yaml.client.server import Server

# A developer's own settings must not choose the server, key, model or name that tests see.
for _name in list(os.environ):
    if _name.startswith(("TEMPORAL_", "CAPUCHIN_", "ANTHROPIC_", "OPENAI_")):
        del os.environ[_name]
os.environ["TEMPORAL_CONFIG_FILE"] = os.devnull
# Nor must a developer's own operator config, whose floor reaches every verdict.
os.environ["XDG_CONFIG_HOME"] = os.devnull
# Why: a run that is terminated ends its servers as one that is interrupted does.
signal.signal(signal.SIGTERM, signal.default_int_handler)
# Why: a run in the background of a script would have every program ignore an interruption, and
signal.signal(signal.SIGINT, signal.default_int_handler)
# a run under `nohup` a closed terminal.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def dev_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The state folder of the session's project, made and checked."""
    from capuchin_yaml.client.home import Home

    return Home.find(tmp_path_factory.mktemp("project")).open(create=True)


@pytest.fixture(scope="session")
def key(dev_home: Home) -> bytes:
    """The project key that `temporal` seals with."""
    return dev_home.make_key()


@pytest.fixture(scope="session")
async def dev_server(dev_home: Home, key: bytes) -> AsyncIterator[Server]:
    """Our own dev server, tuned as `up` starts it; it ends with the session, however that ends."""
    from capuchin_yaml.client.server import find_or_start

    async with await find_or_start(dev_home) as server:
        yield server


@pytest.fixture(scope="session")
async def temporal(dev_server: Server, key: bytes) -> Client:
    """A sealed client of `dev_server`, without external storage."""
    from capuchin_yaml.client.connection import connect_temporal

    return await connect_temporal(dev_server.target, key=key)
