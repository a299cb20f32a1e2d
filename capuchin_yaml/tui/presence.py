"""Which other terminals of this machine have the same project's TUI open.

Each one holds a locked file in the state folder; the lock goes with its process, however that
ends, so a file that can be locked is left over. Other machines are not seen.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_FOLDER = "tui"
_MAX_BYTES = 4096
_MOST = 20


@dataclass(frozen=True, slots=True)
class Other:
    """Another TUI on the same project."""

    terminal: str
    user: str
    since: str
    """UTC, ISO 8601."""


class Presence:
    """This TUI's own file, and a look at the others'; without a state folder nothing is told."""

    def __init__(self, home: Path | None) -> None:
        self._folder = home / _FOLDER if home is not None else None
        self._own: tuple[Path, int] | None = None

    def enter(self, user: str, terminal: str) -> None:
        """Say that one is here; what cannot be written is not said."""
        if self._folder is None or self._own is not None:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file = self._folder / f"{os.getpid()}.json"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(file, flags, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            told = {"user": user, "terminal": terminal, "since": datetime.now(UTC).isoformat()}
            os.write(fd, json.dumps(told).encode())
            self._own = (file, fd)

    def others(self) -> tuple[Other, ...]:
        """The other TUIs that are open now, the oldest first."""
        if self._folder is None:
            return ()
        found = []
        with contextlib.suppress(OSError):
            for file in sorted(self._folder.glob("*.json"))[:_MOST]:
                if self._own is None or file != self._own[0]:
                    found.append(_read(file))
        return tuple(sorted((o for o in found if o is not None), key=lambda o: o.since))

    def leave(self) -> None:
        """Say that one is gone."""
        if self._own is not None:
            file, fd = self._own
            self._own = None
            with contextlib.suppress(OSError):
                file.unlink()
            os.close(fd)


def terminal_name() -> str:
    """The name of this process's terminal, such as `pts/3`; empty without one."""
    try:
        return os.ttyname(0).removeprefix("/dev/")
    except OSError:
        return ""


def _read(file: Path) -> Other | None:
    """Who holds a file; a file that nobody holds is taken away."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            told = json.loads(os.read(fd, _MAX_BYTES))
            return Other(str(told["terminal"]), str(told["user"]), str(told["since"]))
        file.unlink(missing_ok=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(fd)
    return None
