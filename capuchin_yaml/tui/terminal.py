"""The terminal belongs to the TUI alone: what anything else prints goes to a log file."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600
_is_sole = False
"""Whether descriptor 2 leads to the log now."""


def keep(text: str) -> None:
    """Write to the log what was printed while a TUI has the terminal; nothing at other times."""
    if _is_sole:
        data = text.encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(2, data) :]


def can_run() -> str | None:
    """Why no TUI can be drawn here, with what to do instead; None when it can."""
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output")):
        if stream is None or not stream.isatty():
            return f"the {name} is no terminal; use `capuchin chat` or `capuchin send` instead"
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        shown = repr(term) if term else "not set"
        return f"TERM is {shown}, so no screen can be drawn; use `capuchin chat` instead"
    return None


class _Screen(io.TextIOWrapper):
    """The terminal as Textual writes to it; when it is gone, this program is told as by a hang-up.

    Why: Textual's writing thread would end by the error, and its loop then wait for it for ever.
    """

    def __init__(self, terminal: io.FileIO) -> None:
        super().__init__(io.BufferedWriter(terminal), encoding="utf-8", errors="backslashreplace")
        self._is_gone = False

    def write(self, text: str) -> int:
        """Write, or drop what no terminal can show any more."""
        if not self._is_gone:
            try:
                return super().write(text)
            except OSError:
                self._hang_up()
        return len(text)

    def flush(self) -> None:
        """Flush, unless the terminal is gone."""
        if not self._is_gone:
            try:
                super().flush()
            except OSError:
                self._hang_up()

    def _hang_up(self) -> None:
        self._is_gone = True
        os.kill(os.getpid(), signal.SIGHUP)


@contextmanager
def sole_terminal(log_file: Path | None) -> Iterator[None]:
    """Give Textual a descriptor of its own, and turn descriptors 1 and 2 to `log_file`.

    So native code, child processes, warnings and `print` of any thread cannot paint on the
    screen. Without a file their output is dropped.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    target = str(log_file) if log_file is not None else os.devnull
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    log_fd = os.open(target, flags, _PRIVATE)
    kept_out, kept_err = os.dup(1), os.dup(2)
    screen = _Screen(io.FileIO(os.dup(kept_out), "w"))
    before = (sys.__stdout__, sys.__stderr__)
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    os.close(log_fd)
    # Why: Textual draws on sys.__stderr__ and asks sys.__stdout__ for the window's size.
    sys.__stdout__, sys.__stderr__ = screen, screen  # type: ignore[misc]  # they are Final
    global _is_sole
    _is_sole = True
    try:
        yield
    finally:
        _is_sole = False
        sys.stdout.flush()
        sys.stderr.flush()
        sys.__stdout__, sys.__stderr__ = before  # type: ignore[misc]  # they are Final
        os.dup2(kept_out, 1)
        os.dup2(kept_err, 2)
        os.close(kept_out)
        os.close(kept_err)
        with contextlib.suppress(OSError):
            screen.close()
