"""The one owner of stdout, stderr, colours and exit codes.

stdout is the answer, stderr is everything about it. Verbs hand over plain text and `Ink`;
every part is made visible here, so no text of a model, tool, person or file reaches a terminal raw.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from capuchin_yaml.errors import (
    CapuchinError,
    ServerUnavailable,
    WorkerUnavailable,
)
from capuchin_yaml.terminal_text import visible

if TYPE_CHECKING:
    from capuchin_yaml.spec import JsonValue


class ExitCode(IntEnum):
    """How a verb ended; scripts rely on these."""

    DONE = 0
    REFUSED = 1
    """The file, the request or the run was refused, or it failed."""
    USAGE = 2
    NO_SERVER = 3
    """No server, or no worker."""
    PERSON_NEEDED = 4
    """An item waits for a person."""
    INTERRUPTED = 130


Colour: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
_SGR_SEQUENCE = re.compile(r"(\x1b\[[0-9;]*m)")
_SGR: Mapping[Colour, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


@dataclass(frozen=True, slots=True)
class Ink:
    """Text in a colour, where the stream shows colours."""

    text: str
    colour: Colour


Part: TypeAlias = str | Ink


class AnswerLost(Exception):
    """stdout cannot take the answer, and not because its reader left."""


class Output:
    """Two streams, told apart: `answer` for stdout, `tell` for stderr."""

    def __init__(
        self,
        stdout: TextIO | None,
        stderr: TextIO | None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._out_colours = shows_colours(stdout, environ)
        self._err_colours = shows_colours(stderr, environ)
        self.reader_gone = False
        """Whether the reader of stdout closed it; a verb that streams ends then."""

    @classmethod
    def of_process(cls) -> Output:
        """The output of this process, safe against closed streams and narrow encodings."""
        _fill_standard_fds()
        if sys.stdin is not None and hasattr(sys.stdin, "reconfigure"):
            # Why: a message is UTF-8 in every locale, and a byte that is not must be seen.
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")
        for stream in (sys.stdout, sys.stderr):
            # Why: under LC_ALL=C a character that the encoding lacks must not end the verb.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        return cls(sys.stdout, sys.stderr)

    def notices_reader_gone(self) -> bool:
        """Look, without writing, whether the reader of stdout is still there."""
        poll = select.poll()
        poll.register(1, 0)
        gone = select.POLLERR | select.POLLHUP
        if any(happened & gone for _, happened in poll.poll(0)):
            self.reader_gone = True
            _discard(1)
        return self.reader_gone

    @property
    def answers_on_terminal(self) -> bool:
        """Whether a person reads stdout."""
        return is_terminal(self._stdout)

    @property
    def talks_with_person(self) -> bool:
        """Whether a question on stderr is read and can be answered on stdin."""
        return is_terminal(self._stderr) and is_terminal(sys.stdin) and _is_in_foreground()

    def answer(self, *parts: Part, end: str = "\n") -> None:
        """Write one piece of the answer.

        Raises:
            AnswerLost: the disk is full, or stdout is closed.
        """
        self._write(_ink(parts, self._out_colours) + end)

    @property
    def paints_answer(self) -> bool:
        """Whether stdout shows colours."""
        return self._out_colours

    def answer_rendered(self, text: str) -> None:
        """Write text whose foreign parts its renderer has made visible; only its colours pass.

        Raises:
            AnswerLost: the disk is full, or stdout is closed.
        """
        self._write(_only_colours(text))

    def tell_rendered(self, text: str) -> None:
        """As `answer_rendered`, on stderr; never fails."""
        self._tell(_only_colours(text))

    def answer_json(self, document: JsonValue, *, one_line: bool = False) -> None:
        """Write one JSON document; hidden marks in it are escaped, so it is exact and safe."""
        text = json_text(document, one_line=one_line)
        if not _can_write(self._stdout, text):
            # Why: what the stream puts in the place of such a character is no JSON.
            text = json_text(document, one_line=one_line, only_ascii=True)
        self._write(text + "\n")

    def tell(self, *parts: Part) -> None:
        """Say something about the answer; never fails."""
        self._tell(_ink(parts, self._err_colours) + "\n")

    def ask(self, *parts: Part) -> None:
        """Show a prompt on stderr and leave the cursor behind it."""
        self._tell(_ink(parts, self._err_colours))

    def ring(self) -> None:
        """Ring the terminal's bell, where a person is."""
        if is_terminal(self._stderr):
            self._tell("\a")

    def warn(self, text: str) -> None:
        """Say something that a person should know before going on."""
        self.tell(Ink("warning: ", "yellow"), text)

    def fail(self, text: str) -> None:
        """Say why the verb ends without doing what was asked."""
        self.tell(Ink("error: ", "red"), text)

    def flush(self) -> None:
        """Bring out what others wrote to the same streams; never fails."""
        for stream, fd in ((self._stdout, 1), (self._stderr, 2)):
            if stream is not None:
                try:
                    stream.flush()
                except (OSError, ValueError):
                    _discard(fd)

    def _write(self, text: str) -> None:
        if self.reader_gone:
            return
        if self._stdout is None:
            raise AnswerLost("stdout is closed")
        try:
            self._stdout.write(text)
            self._stdout.flush()
        except BrokenPipeError:
            self.reader_gone = True
            _discard(1)
        except OSError as error:
            _discard(1)
            raise AnswerLost(os.strerror(error.errno or errno.EIO)) from error

    def _tell(self, text: str) -> None:
        if self._stderr is None:
            return
        try:
            self._stderr.write(text)
            self._stderr.flush()
        except OSError:
            _discard(2)


def exit_code_for(error: CapuchinError) -> ExitCode:
    """The exit code that says who must act on `error`."""
    if isinstance(error, ServerUnavailable | WorkerUnavailable):
        return ExitCode.NO_SERVER
    return ExitCode.REFUSED


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at the other end."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def _is_in_foreground() -> bool:
    # Why: a background job that reads from its terminal is stopped by the system.
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


def shows_colours(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether escape codes may be written: a terminal that is not dumb, and no NO_COLOR."""
    if environ.get("NO_COLOR") or environ.get("TERM", "") in ("", "dumb"):
        return False
    return is_terminal(stream)


def json_text(document: JsonValue, *, one_line: bool = False, only_ascii: bool = False) -> str:
    """JSON that is readable in every script, with each mark a terminal could obey escaped."""
    text = json.dumps(
        document,
        ensure_ascii=only_ascii,
        allow_nan=False,
        indent=None if one_line else 2,
        separators=(",", ":") if one_line else None,
    )
    if text.isascii() and "\x7f" not in text:
        return text
    unsafe: dict[str, str | int | None] = {
        c: _json_escape(c) for c in set(text) if c != "\n" and visible(c) != c
    }
    return text.translate(str.maketrans(unsafe)) if unsafe else text


def _can_write(stream: TextIO | None, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _ink(parts: tuple[Part, ...], colours: bool) -> str:
    out: list[str] = []
    for part in parts:
        if isinstance(part, Ink) and colours:
            out.append(f"\x1b[{_SGR[part.colour]}m{visible(part.text)}\x1b[0m")
        else:
            out.append(visible(part.text if isinstance(part, Ink) else part))
    return "".join(out)


def _only_colours(text: str) -> str:
    return "".join(
        part if _SGR_SEQUENCE.fullmatch(part) else visible(part)
        for part in _SGR_SEQUENCE.split(text)
    )


def _fill_standard_fds() -> None:
    # Why: with `>&-` the next socket or database would become fd 1 and be printed into.
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)


def _discard(fd: int) -> None:
    # Why: what is still buffered would fail again when the interpreter ends, with a trace.
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, fd)
    finally:
        os.close(null)
