"""Where logs go: never to the answer, and to the terminal only when asked."""

from __future__ import annotations

import contextlib
import io
import logging
import logging.handlers
import os
import sys
import time
from pathlib import Path

from capuchin_yaml.client.guard import process_start
from capuchin_yaml.terminal_text import visible

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
MAX_LOG_BYTES = 5 * 1024 * 1024
KEPT_DAYS = 30
"""How long the log of a `capuchin worker` that has ended is kept."""


class _VisibleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """A log that only this user reads: it may hold what people wrote."""

    def _open(self) -> io.TextIOWrapper:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace")


def start_logs(*, verbose: bool, log_file: Path | None = None) -> None:
    """Send the logs of this process, the SDK's and Python's warnings to one place.

    That is stderr with `verbose`, else `log_file` where it can be written, else nowhere.
    A later call replaces the place.
    """
    logging.captureWarnings(True)
    # Why: a log line that cannot be written must not print a trace into a terminal.
    logging.raiseExceptions = False
    root = logging.getLogger()
    for old in list(root.handlers):
        if getattr(old, "_capuchin", False):
            root.removeHandler(old)
            old.close()
    handler = _handler(verbose, log_file)
    handler.setFormatter(_VisibleFormatter(_FORMAT))
    handler._capuchin = True  # type: ignore[attr-defined]  # our mark, read above
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _handler(verbose: bool, log_file: Path | None) -> logging.Handler:
    if verbose:
        return logging.StreamHandler(sys.stderr)
    if log_file is not None and os.access(log_file.parent, os.W_OK):
        try:
            return _PrivateFile(log_file, maxBytes=MAX_LOG_BYTES, backupCount=2, encoding="utf-8")
        except OSError:
            pass  # a read-only place: logs are the one thing that may be lost
    return logging.NullHandler()


def drop_old_worker_logs(folder: Path) -> None:
    """Remove logs of `capuchin worker` to which nobody wrote for KEPT_DAYS; each has its own."""
    oldest = time.time() - KEPT_DAYS * 86_400
    for log in folder.glob("worker-*.log*"):
        pid = log.name.removeprefix("worker-").split(".")[0]
        with contextlib.suppress(OSError):
            if pid.isdigit() and log.stat().st_mtime < oldest and process_start(int(pid)) is None:
                log.unlink()
