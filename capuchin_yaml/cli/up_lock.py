"""One `up` a project: a lock that dies with its holder, and the record that says who holds it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from capuchin_yaml.client.guard import process_start
from capuchin_yaml.errors import RequestRefused, UnsafeState

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home


@dataclass(frozen=True, slots=True)
class UpRecord:
    """The `up` that runs, and its workers."""

    pid: int
    start: str
    workers: tuple[tuple[int, str], ...] = ()
    """Number and start of each worker process."""
    grace_s: float = 0.0
    """Time it gives running calls when it is stopped."""

    @property
    def is_running(self) -> bool:
        """Whether this very `up` still runs."""
        return process_start(self.pid) == self.start


class UpLock:
    """Held by the `up` that serves a project, until it releases it or dies."""

    def __init__(self, home: Home, fd: int) -> None:
        self._home = home
        self._fd = fd

    @classmethod
    def take(cls, home: Home) -> Self:
        """Become the one `up` of this project.

        Raises:
            RequestRefused: another one runs; says which, and what to type instead.
            UnsafeState: the state folder cannot be written.
        """
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(home.path / "worker.lock", flags, 0o600)
        except OSError as error:
            raise UnsafeState(
                f"cannot write the state folder {home.path} ({error.strerror}); make it usable, or "
                "name another folder in CAPUCHIN_HOME"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            found = read_up(home)
            who = f" (process {found.pid})" if found is not None else ""
            raise RequestRefused(
                f"`capuchin up` runs already for this project{who}; talk with it from here: "
                "capuchin tui; or stop it: capuchin down"
            ) from None
        return cls(home, fd)

    def record(self, worker_pids: list[int], *, grace_s: float) -> None:
        """Say who serves the project now."""
        starts = [(pid, process_start(pid)) for pid in worker_pids]
        document = {
            "v": 1,
            "pid": os.getpid(),
            "start": process_start(os.getpid()),
            "workers": [{"pid": pid, "start": start} for pid, start in starts if start],
            "grace_s": grace_s,
        }
        self._home.write(self._home.worker_file, json.dumps(document) + "\n")

    def release(self) -> None:
        """Let the next `up` in."""
        with contextlib.suppress(OSError):
            self._home.worker_file.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the lock alone."""
        os.close(self._fd)


def read_up(home: Home) -> UpRecord | None:
    """The `up` that the state folder tells of, running or not; None when it tells of none."""
    text = home.read(home.worker_file) if home.exists else None
    if text is None:
        return None
    try:
        value = json.loads(text)
        workers = tuple((int(w["pid"]), str(w["start"])) for w in value.get("workers", ()))
        return UpRecord(
            int(value["pid"]), str(value["start"]), workers, float(value.get("grace_s", 0.0))
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
