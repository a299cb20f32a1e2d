"""Runs the program on a pseudo-terminal, as a person would."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from tests.cli.program import PATIENCE_S, PROGRAM


class Terminal:
    """One program whose stdin, stdout and stderr are a terminal of its own."""

    def __init__(self, *args: str, cwd: Path, environ: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.seen = ""
        """Everything it has written so far, as the terminal got it."""
        self._from = 0
        self.process = subprocess.Popen(
            [*PROGRAM, *args],
            cwd=cwd,
            env=dict(environ),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # Why: only a controlling terminal turns Ctrl-C into a signal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        """Wait until it has written `text` after what was waited for before."""
        deadline = time.monotonic() + PATIENCE_S
        while (at := self.seen.find(text, self._from)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} did not come; seen:\n{self.seen}")
        self._from = at + len(text)

    def wait_for_any(self, *texts: str) -> str:
        """Wait until it has written one of `texts`, and return which."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [t for t in texts if t in self.seen[self._from :]]):
            assert self._read(deadline), f"none of {texts} came; seen:\n{self.seen}"
        self._from = self.seen.index(found[0], self._from) + len(found[0])
        return found[0]

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, line.encode() + b"\n")

    def press(self, key: bytes) -> None:
        """Press a key, such as Ctrl-D."""
        os.write(self._ours, key)

    def end(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        if not select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:
            return False
        self.seen += chunk.decode(errors="replace")
        return bool(chunk)
