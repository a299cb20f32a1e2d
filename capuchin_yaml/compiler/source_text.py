"""The bytes of a file as text with positions; everything but clean UTF-8 is reported."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from capuchin_yaml.diagnostics import Diagnostic, Severity, Span

MAX_FILE_BYTES = 8_000_000

_STRAY = re.compile("[\udc80-\udcff]+")
# Why: YAML forbids these, and a line or paragraph separator (or NEL) counts as a line break
# for the parser but not for an editor, so a key could hide inside what looks like one line.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")
# Why: a file of another kind would give one report per byte.
_MOST_REPORTS = 20


class SourceText:
    """One file's text; lines and columns count from 1, in code points."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def _starts(self) -> list[int]:
        # Why only when it is asked for: a file without mistakes needs no places.
        if "\r" in self.text:
            return [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return [0, *accumulate(lengths)][:-1]

    @cached_property
    def line_count(self) -> int:
        """Lines of the file; the empty text after a last line break counts as one."""
        return len(self._starts) if "\r" in self.text else self.text.count("\n") + 1

    def line(self, number: int) -> str:
        """The line `number` without its line break; empty when the file has no such line."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, line: int, column: int) -> int:
        """The place of a position in `text`."""
        return self._starts[line - 1] + column - 1

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a place in `text`."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """The range between two places in `text`, kept inside the text."""
        start = min(max(start, 0), len(self.text))
        end = min(max(end, start), len(self.text))
        return Span(self.path, *self.position(start), *self.position(end))

    def line_span(self, number: int) -> Span:
        """The line `number` from its first character that is not blank to its end."""
        line = self.line(number)
        blank = len(line) - len(line.lstrip())
        return Span(self.path, number, blank + 1, number, len(line) + 1)


def decode(path: str, data: bytes) -> tuple[SourceText, list[Diagnostic], bool]:
    """Text of UTF-8 bytes, what is wrong with them, and whether the text is worth parsing.

    A byte-order mark is dropped. A stray byte or a forbidden character is reported and
    replaced by U+FFFD, so that the rest of the file can still be checked.
    """
    start = Span(path, 1, 1, 1, 1)
    if len(data) > MAX_FILE_BYTES:
        return (
            SourceText(path, ""),
            [
                _error(
                    "too-large",
                    f"the file has {len(data)} bytes, at most {MAX_FILE_BYTES}",
                    start,
                    "write long texts to a file of their own: prompt: {file: prompts/agent.md.j2}",
                )
            ],
            False,
        )
    other = _other_encoding(data)
    if other is not None:
        problem = _error(
            "encoding",
            f"the file is {other}, an agent file must be UTF-8",
            start,
            f"iconv -f {other} -t UTF-8 {path} > agent.utf8.yaml",
        )
        return SourceText(path, ""), [problem], False
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    source = SourceText(path, text)
    problems = list(_problems(source))
    if problems:
        text = _FORBIDDEN.sub("\ufffd", _STRAY.sub(lambda m: "\ufffd" * len(m.group()), text))
        source = SourceText(path, text)
    return source, problems[:_MOST_REPORTS], len(problems) <= _MOST_REPORTS


def _problems(source: SourceText) -> Iterator[Diagnostic]:
    for match in _STRAY.finditer(source.text) if not source.text.isascii() else ():
        found = " ".join(f"0x{ord(char) - 0xDC00:02X}" for char in match.group()[:4])
        yield _error(
            "encoding",
            f"the bytes {found} are not UTF-8"
            if len(match.group()) > 1
            else f"the byte {found} is not UTF-8",
            source.span(match.start(), match.end()),
            "save the file as UTF-8",
        )
    for match in _FORBIDDEN.finditer(source.text):
        code = f"U+{ord(match.group()):04X}"
        yield _error(
            "control-character",
            f"the file holds the character {code}, which a YAML file may not hold",
            source.span(match.start(), match.end()),
            f'remove it, or write it in double quotes as "\\u{ord(match.group()):04x}"',
        )


def _other_encoding(data: bytes) -> str | None:
    # UTF-32 first: its little-endian mark starts with that of UTF-16.
    for mark, name in (
        (b"\xff\xfe\x00\x00", "UTF-32"),
        (b"\x00\x00\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ):
        if data.startswith(mark):
            return name
    head = data[:4]
    if len(head) == 4 and head[0] and head[2] and not head[1] and not head[3]:
        return "UTF-16LE"
    if len(head) == 4 and head[1] and head[3] and not head[0] and not head[2]:
        return "UTF-16BE"
    return None


def _error(id_: str, message: str, span: Span, help_: str | None = None) -> Diagnostic:
    return Diagnostic(id_, Severity.ERROR, message, span, help_)
