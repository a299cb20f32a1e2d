"""Keeps what foreign code prints off the terminal: it goes to logging instead."""

from __future__ import annotations

import contextlib
import io
import logging
import threading
from collections.abc import Iterator


class _LogLines(io.RawIOBase):
    """Writes each whole line to a logger; stays usable after the capture, for who kept it."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self._log = log
        self._rest = b""
        self._busy = threading.local()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(data)  # type: ignore[call-overload]  # any buffer, as in io.RawIOBase
        # Why: a package may have made a logging handler that writes here; a record of ours
        # that comes back through it would go round for ever.
        if getattr(self._busy, "here", False):
            return len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._busy.here = True
        try:
            for line in lines:
                self._say(line)
        finally:
            self._busy.here = False
        return len(chunk)

    def end_line(self) -> None:
        """Log what was written without a newline at its end."""
        if self._rest:
            self.write(b"\n")

    def _say(self, line: bytes) -> None:
        if line.strip():
            self._log.info("%s", line.decode("utf-8", "backslashreplace").rstrip())


@contextlib.contextmanager
def output_to_log(log: logging.Logger) -> Iterator[None]:
    """Send what Python code prints on stdout and stderr to `log` while the block runs.

    It is process-wide: other threads' prints are captured too. Writes below Python (a C
    library, a child process) are not. A set-up of the root logger is undone at the end.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    raw = _LogLines(log)
    stream = io.TextIOWrapper(  # type: ignore[type-var]  # raw is enough with write_through
        raw,
        encoding="utf-8",
        errors="backslashreplace",
        write_through=True,
    )
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield
    finally:
        raw.end_line()
        # Why: `logging.warning` in a package would set up logging before the program does.
        root.handlers[:] = handlers
        root.setLevel(level)
