"""A terminal with the program in it, read as a person sees it: rows of glyphs, keys by name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import subprocess
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pyte

from tests.cli.program import PATIENCE_S, PROGRAM

COLUMNS, ROWS = 120, 36
KEYS: Mapping[str, str] = {
    "Enter": "\r",
    "Escape": "\x1b",
    "F2": "\x1bOQ",
    "C-n": "\x0e",
    "C-q": "\x11",
    "C-s": "\x13",
    "BSpace": "\x7f",
}
"""The keys that tests press, by tmux's names, as a terminal sends them."""


class Glass(Protocol):
    """What is behind the screen: a terminal of some kind."""

    def rows(self) -> list[str]:
        """What is shown now, row by row."""

    def write(self, text: str) -> None:
        """Type text."""

    def press(self, key: str) -> None:
        """Press a key by its name in `KEYS`."""

    def has_ended(self) -> bool:
        """Whether the program has left the terminal."""

    def close(self) -> None:
        """Take the terminal away, as closing its window does."""


class Screen:
    """One terminal; nothing waits by the clock, everything for what is shown."""

    def __init__(self, glass: Glass) -> None:
        self._glass = glass

    @property
    def text(self) -> str:
        """All that is shown now."""
        return "\n".join(self._glass.rows())

    def wait_for(self, *texts: str) -> None:
        """Wait until all of these are shown at once."""
        self._wait(lambda shown: all(text in shown for text in texts), f"{texts} to be shown")

    def wait_gone(self, text: str) -> None:
        """Wait until this is not shown any more."""
        self._wait(lambda shown: text not in shown, f"{text!r} to go")

    def wait_ended(self) -> None:
        """Wait until the program has left."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._glass.has_ended():
            assert time.monotonic() < deadline, f"it does not end:\n{self.text}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Type text, and wait until it is shown."""
        self._glass.write(text)
        self.wait_for(text)

    def press(self, key: str) -> None:
        """Press a key, by its name or by itself."""
        if key in KEYS:
            self._glass.press(key)
        else:
            self._glass.write(key)

    def close(self) -> None:
        """Close the terminal's window."""
        self._glass.close()

    def _wait(self, is_so: Callable[[str], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so(self.text):
            ended = " (the program has ended)" if self._glass.has_ended() else ""
            assert time.monotonic() < deadline, f"waited for {what}{ended}; shown:\n{self.text}"
            time.sleep(0.05)


class PtyGlass:
    """A pseudo-terminal, drawn by pyte."""

    def __init__(self, *args: str, cwd: Path, environ: Mapping[str, str]) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [*PROGRAM, *args],
            cwd=cwd,
            env={**environ, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def rows(self) -> list[str]:
        """What is shown now, row by row."""
        with self._lock:
            return [row.rstrip() for row in self._screen.display]

    def write(self, text: str) -> None:
        """Type text."""
        os.write(self._ours, text.encode())

    def press(self, key: str) -> None:
        """Press a key."""
        self.write(KEYS[key])

    def has_ended(self) -> bool:
        """Whether the program has left the terminal."""
        return self.process.poll() is not None

    def close(self) -> None:
        """Take the terminal away; the system sends SIGHUP to the program."""
        # Why: a terminal that a thread still reads is not closed for the program.
        self._closing.set()
        self._reader.join()
        os.close(self._ours)
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closing.is_set():
                if not select.select([self._ours], [], [], 0.05)[0]:
                    continue
                chunk = os.read(self._ours, 65536)
                with self._lock:
                    self._stream.feed(chunk)


class TmuxGlass:
    """A window of tmux."""

    def __init__(self, *args: str, cwd: Path, environ: Mapping[str, str]) -> None:
        self._folder = tempfile.mkdtemp(prefix="capuchin-tmux-")
        kept = {k: v for k, v in environ.items() if k != "TERM"}
        clean = ("env", "-i", "TERM=tmux-256color", *(f"{k}={v}" for k, v in kept.items()))
        command = shlex.join([*clean, *PROGRAM, *args])
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._tmux("-f", os.devnull, "new-session", "-d", "-c", str(cwd), *size, command)

    def rows(self) -> list[str]:
        """What is shown now, row by row."""
        return [row.rstrip() for row in self._tmux("capture-pane", "-p").splitlines()]

    def write(self, text: str) -> None:
        """Type text."""
        self._tmux("send-keys", "-l", text)

    def press(self, key: str) -> None:
        """Press a key."""
        self._tmux("send-keys", key)

    def has_ended(self) -> bool:
        """Whether the program has left the terminal; the last window takes tmux with it."""
        return not self._tmux("list-panes")

    def close(self) -> None:
        """Take the terminal away."""
        self._tmux("kill-server")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", f"{self._folder}/socket", *args],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout


GLASSES = [PtyGlass, *([TmuxGlass] if shutil.which("tmux") else [])]
"""A terminal that comes with the test dependencies, and tmux where it is installed."""


@contextlib.contextmanager
def on_screen(
    glass: type[PtyGlass] | type[TmuxGlass], *args: str, cwd: Path, environ: Mapping[str, str]
) -> Iterator[Screen]:
    """Run the program in a terminal; its window is closed at the end."""
    screen = Screen(glass(*args, cwd=cwd, environ=environ))
    try:
        yield screen
    finally:
        screen.close()
