"""Which external storage a project uses; every worker and client of it must use the same."""

from __future__ import annotations

import os
from pathlib import Path

from capuchin_yaml.client.home import Home
from capuchin_yaml.client.target import Target
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.errors import UnsafeState

STORE_VARIABLE = "CAPUCHIN_STORE"


def project_store(home: Home, target: Target) -> FolderStore | None:
    """The folder for values over 64 KB, or None to keep them in history.

    On our own server it is the state folder's; on a cluster there is none unless CAPUCHIN_STORE
    names a folder that all machines share, because a value in one machine's folder could not be
    read by the others. Without a store nothing is lost: no value that enters history is over the
    server's limits.

    Raises:
        UnsafeState: CAPUCHIN_STORE names no folder.
    """
    named = os.environ.get(STORE_VARIABLE, "")
    if named:
        folder = Path(named)
        if not folder.is_dir():
            raise UnsafeState(
                f"{STORE_VARIABLE} is {named!r}, which is not a folder; make it first"
            )
        return FolderStore(folder)
    return FolderStore(home.store_dir) if target.origin == "own" else None
