"""What this machine has already entered: a one-attempt call is entered once, whoever asks.

Why: a sealed request stays valid for its run, so somebody who reads history and completes a
workflow task in our place could have the very same request delivered again. Temporal itself
promises at least once, too. Workers on other machines have journals of their own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path


class Journal:
    """A durable set of entered calls."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "entered.db"
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def enter(self, key: str) -> bool:
        """Record that a call is entered; False when it was before. Durable once it returns.

        Raises:
            OSError, sqlite3.Error: nothing was recorded, so nothing may be entered.
        """
        with self._lock:
            db = self._open()
            try:
                with db:
                    db.execute("INSERT INTO entered (call) VALUES (?)", (key,))
            except sqlite3.IntegrityError:
                return False
            return True

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            db = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
            db.execute("PRAGMA synchronous=FULL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS entered"
                " (call TEXT PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID"
            )
            self._db = db
        return self._db
