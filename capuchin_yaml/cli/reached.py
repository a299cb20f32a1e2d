"""From the current folder to a connected client: state folder, server, key."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from capuchin_yaml.cli.logs import start_logs
from capuchin_yaml.cli.verb import is_verbose

if TYPE_CHECKING:
    from capuchin_yaml.client.fleet import Capuchin
    from capuchin_yaml.client.home import Home


def found_home() -> Home:
    """The state folder that this terminal means, checked; it may not exist yet.

    Raises:
        UnsafeState: it is not ours alone.
    """
    from capuchin_yaml.client.home import Home

    home = Home.find().open()
    start_logs_in(home, "cli.log")
    return home


def home_of(paths: Sequence[Path]) -> Home:
    """The state folder of agents at `paths`: beside them when they lie together, else here."""
    from capuchin_yaml.client.home import Home

    folders = {os.path.realpath(path if path.is_dir() else path.parent) for path in paths}
    return Home.find(Path(folders.pop()) if len(folders) == 1 else None)


def start_logs_in(home: Home, name: str) -> None:
    """Keep this process's logs in the state folder, where there is one, or show them with `-v`."""
    log_file = home.log_dir / name if home.log_dir.is_dir() else None
    start_logs(verbose=is_verbose(), log_file=log_file)


@asynccontextmanager
async def reached() -> AsyncIterator[tuple[Home, Capuchin]]:
    """The state folder and a client of its project's conversations, let go at the end.

    Raises:
        ServerUnavailable: nothing is started here, or it does not answer.
        UnsafeState: the state folder or its key is not ours alone.
    """
    home = found_home()
    async with await reach(home, program="cli") as fleet:
        yield home, fleet


async def reach(home: Home, *, program: str) -> Capuchin:
    """Connect to the conversations of the project that `home` belongs to.

    Raises:
        ServerUnavailable: nothing is started here, or it does not answer.
        UnsafeState: the state folder or its key is not ours alone.
    """
    from capuchin_yaml.client.server import find_server

    target = await find_server(home)
    key = home.key()
    # Why only now: the SDK takes half a second to load, and where nothing runs it is not needed.
    from capuchin_yaml.client.connection import connect_temporal
    from capuchin_yaml.client.fleet import Capuchin
    from capuchin_yaml.client.home import project_name
    from capuchin_yaml.client.project_store import project_store

    temporal = await connect_temporal(target, key=key, store=project_store(home, target))
    return Capuchin(temporal, project=project_name(home), program=program)
