"""The TUI in a pseudo-terminal, with what a person would see on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0


class TuiTerminal:
    """One run of `tests.tui.demo`, or of `command`; `screen` holds what its terminal shows."""

    def __init__(
        self,
        scene: str,
        log_file: Path,
        columns: int = 100,
        rows: int = 30,
        *,
        command: Sequence[str] = (),
        cwd: Path = ROOT,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._size(columns, rows)
        self.raw = b""
        """Every byte that reached the terminal."""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        keep = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TMUX")}
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "tests.tui.demo", scene],
            cwd=cwd,
            env=(keep if environ is None else dict(environ))
            | {"TERM": "xterm-256color", "TUI_LOG": str(log_file), "TZ": "UTC"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # Why: only a controlling terminal sends the signal of another window size.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)

    def __enter__(self) -> TuiTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.vanish()

    def vanish(self) -> None:
        """Close the window; a second time changes nothing."""
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1

    @property
    def text(self) -> str:
        """What a person sees."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, is_true: Callable[[str], bool], limit_s: float = PATIENCE_S) -> None:
        """Read what it writes until the screen is as wanted."""
        end = time.monotonic() + limit_s
        while not is_true(self.text):
            if time.monotonic() > end or not self._read(0.2):
                assert is_true(self.text), f"the screen is:\n{self.text}"
                return

    def listen(self, seconds: float) -> None:
        """Read what it writes for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._read(0.05):
            pass

    def record(self, seconds: float) -> list[tuple[float, bytes]]:
        """What it writes for a while, each piece with the time it came; nothing is drawn yet.

        So the emulator takes no processor time while something is measured.
        """
        pieces: list[tuple[float, bytes]] = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._ours], [], [], left)[0]:
                pieces.append((time.monotonic(), os.read(self._ours, 1 << 16)))
        return pieces

    def draw(self, chunk: bytes) -> None:
        """Draw a piece of what it wrote."""
        self.raw += chunk
        # Why: the emulator draws unknown private sequences, such as the kitty keyboard's, as text.
        self._stream.feed(known(chunk))

    def press(self, keys: bytes) -> None:
        """Send bytes as a keyboard does."""
        os.write(self._ours, keys)

    def paste(self, text: str) -> None:
        """Paste with brackets, in pieces as a terminal sends them, reading all the while."""
        data = b"\x1b[200~" + text.encode() + b"\x1b[201~"
        os.set_blocking(self._ours, False)
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self._ours, data[:4096]) :]
            self._read(0)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self.screen.resize(rows, columns)
        self._size(columns, rows)

    def end(self) -> int:
        """Read to the end and return the exit code."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self._read(0.2):
            pass
        return self.process.wait(PATIENCE_S)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, wait_s: float) -> bool:
        """Take what is there; False when the program has ended."""
        if not select.select([self._ours], [], [], wait_s)[0]:
            return self.process.poll() is None
        try:
            chunk = os.read(self._ours, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.draw(chunk)
        return bool(chunk)


def known(chunk: bytes) -> bytes:
    """What the emulator understands of a piece."""
    return re.sub(rb"\x1b\[[<>=][0-9;]*u|\x1b\[\?[0-9;]*\$p", b"", chunk)
