"""Lines of stdin for async code, read so that the program can end at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import Any

from capuchin_yaml.cli.output import is_terminal
from capuchin_yaml.errors import RequestRefused


class Lines:
    """Reads stdin line by line in a thread of its own, which never keeps the program alive."""

    def __init__(self, *, editing: bool = False) -> None:
        self._lines: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self._wanted = threading.Semaphore(0)
        self._loop = asyncio.get_running_loop()
        self._editing = editing and is_terminal(sys.stdin) and is_terminal(sys.stdout)
        self._prompt = ""
        self._is_reading = False
        self._thread: threading.Thread | None = None
        self._terminal = _terminal_settings() if self._editing else None

    @property
    def shows_prompt(self) -> bool:
        """Whether the line editor writes the prompt itself."""
        return self._editing

    async def next_line(self, prompt: str = "") -> str | None:
        """The next line without its end; None when stdin has ended.

        Raises:
            RequestRefused: stdin is not UTF-8.
        """
        self._prompt = prompt
        if self._thread is None:
            # Why a daemon: nothing can wake a thread that waits for a terminal or a pipe.
            self._thread = threading.Thread(target=self._read, daemon=True, name="stdin")
            self._thread.start()
        if not self._is_reading:
            self._is_reading = True
            self._wanted.release()
        line = await self._lines.get()
        self._is_reading = False
        if isinstance(line, Exception):
            raise line
        return line

    def forget(self) -> None:
        """Drop what was typed before now: it cannot answer a question that is only coming."""
        while not self._lines.empty():
            self._lines.get_nowait()
            self._is_reading = False
        if is_terminal(sys.stdin):
            with contextlib.suppress(ImportError, OSError, ValueError):
                import termios

                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def close(self) -> None:
        """Give the terminal back as it was."""
        if self._terminal is not None:
            import termios

            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._terminal)

    def _read(self) -> None:
        if self._editing:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # gives input() history and editing
        while True:
            self._wanted.acquire()
            line = self._one_line()
            with contextlib.suppress(RuntimeError):  # the loop may have ended meanwhile
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            if line is None:
                return

    def _one_line(self) -> str | Exception | None:
        try:
            if self._editing:
                return input(self._prompt)
            line = sys.stdin.readline() if sys.stdin is not None else ""
        except EOFError:
            return None
        except UnicodeDecodeError:
            return RequestRefused("stdin is not UTF-8; nothing of it was sent")
        except (OSError, ValueError):
            return None
        return line.rstrip("\r\n") if line else None


def _terminal_settings() -> list[Any] | None:
    try:
        import termios

        return termios.tcgetattr(sys.stdin.fileno())
    except (ImportError, OSError, ValueError):
        return None
