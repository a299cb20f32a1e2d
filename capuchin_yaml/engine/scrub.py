"""Keeps secrets of this worker out of everything that leaves it.

A secret is found as it is and in the forms in which programs repeat what they were given:
base64 at each of its three alignments and with line breaks, hexadecimal, percent-encoding,
escapes of JSON, Python and HTML, also mixed within one secret, and cut in two by the chunks
of a stream.
"""

from __future__ import annotations

import base64
import functools
import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capuchin_yaml.spec import JsonValue

MIN_SECRET = 6
"""Characters of the shortest secret that is looked for; shorter ones are part of common words."""
SURE_SECRET = 16
"""Characters from which a secret cannot be a word of the house, such as the name of a tool."""
MIN_LINE = 16
"""Characters of the shortest line of a secret of several lines that is looked for alone."""
PIECE = 64 * 1024
"""Characters that are looked through in one go; between two, other threads may run."""

logger = logging.getLogger("capuchin_yaml.worker")

_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_BREAKS = ("\n", "\r\n", "\\n", "\\r\\n")


class _Part(NamedTuple):
    """One part of a secret: the ways in which it may be written, and a pattern of them."""

    ways: tuple[str, ...]
    """Hexadecimal in lower case where case does not matter."""
    pattern: str


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of a secret, part by part."""

    parts: tuple[_Part, ...]
    ignore_case: bool

    @property
    def longest(self) -> int:
        return sum(max(len(way) for way in part.ways) for part in self.parts)

    def pattern(self) -> str:
        body = "".join(part.pattern for part in self.parts)
        return f"(?i:{body})" if self.ignore_case else body

    def may_begin(self, tail: str) -> bool:
        """Whether `tail` is the beginning of this form and not yet the whole of it."""
        if self.ignore_case:
            tail = tail.lower()
        ends = {0}
        for part in self.parts:
            reached = set()
            for end in ends:
                rest = len(tail) - end
                for way in part.ways:
                    if rest < len(way):
                        if way.startswith(tail[end:]):
                            return True
                    elif tail.startswith(way, end):
                        reached.add(end + len(way))
            if not reached:
                return False
            ends = reached
        return False


@dataclass(frozen=True, slots=True)
class _Rules:
    """What to look for, compiled."""

    secrets: tuple[tuple[str, str | bytes], ...]
    """Name and value of each."""
    forms: tuple[_Form, ...] = ()
    names: tuple[str, ...] = ()
    """By the number of its group, the name of each secret."""
    pattern: re.Pattern[str] | None = None
    longest: int = 0
    first: frozenset[str] = frozenset()
    """Characters with which a form may begin."""


class Scrubber:
    """The secrets that this worker has resolved; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all = _Rules(())
        self._sure = _Rules(())

    def add(self, name: str, value: str | bytes) -> None:
        """Replace this value by `[secret NAME]` from now on.

        Bytes are looked for in their encoded forms too. One that is too short is not looked
        for; a log line says so.
        """
        plain = value.strip() if isinstance(value, str) else value
        found: list[str | bytes] = [plain]
        if isinstance(plain, bytes):
            found.append(plain.hex())
        else:
            lines = [line.strip() for line in plain.splitlines()]
            found += [line for line in lines if len(lines) > 1 and len(line) >= MIN_LINE]
        if len(plain) < MIN_SECRET:
            if plain:
                logger.warning(
                    "the value of %s has fewer than %d characters: it is not kept out of "
                    "results and logs",
                    name,
                    MIN_SECRET,
                )
            return
        with self._lock:
            held = {secret for _, secret in self._all.secrets}
            new = tuple((name, secret) for secret in found if secret not in held)
            if new:
                secrets = (*self._all.secrets, *new)
                self._all = _compiled(secrets)
                self._sure = _compiled([s for s in secrets if len(s[1]) >= SURE_SECRET])

    def scrub(self, text: str) -> str:
        """Return `text` with every form of every secret replaced."""
        return self._scrub(text, self._all)

    def scrub_bytes(self, data: bytes) -> bytes:
        """Return `data` with every form of every secret replaced; other bytes stay as they are."""
        if self._all.pattern is None:
            return data
        text = data.decode("utf-8", "surrogateescape")
        return self.scrub(text).encode("utf-8", "surrogateescape")

    def scrub_json(
        self,
        value: JsonValue,
        *,
        house: frozenset[str] = frozenset(),
        foreign: frozenset[str] = frozenset(),
    ) -> JsonValue:
        """Return plain data with its texts scrubbed, and `value` itself when nothing was found.

        `house` are keys whose values the house itself wrote, such as a status: in those only
        secrets are replaced that can be no such word. Below a key in `foreign` every key and
        value is somebody else's.
        """
        if self._all.pattern is None:
            return value
        return self._walk(value, house, foreign, self._all)

    def stream(self) -> ScrubbedStream:
        """Return a scrubber for a text that comes in pieces."""
        return ScrubbedStream(lambda: self._all)

    def _scrub(self, text: str, rules: _Rules) -> str:
        if rules.pattern is None or len(text) < MIN_SECRET:
            return text
        if len(text) <= PIECE:
            return rules.pattern.sub(functools.partial(_replaced, rules), text)
        stream = ScrubbedStream(lambda: rules)
        pieces = [stream.feed(text[i : i + PIECE]) for i in range(0, len(text), PIECE)]
        return "".join(pieces) + stream.end()

    def _walk(
        self, value: JsonValue, house: frozenset[str], foreign: frozenset[str], rules: _Rules
    ) -> JsonValue:
        match value:
            case str():
                return self._scrub(value, rules)
            case bytes():
                return self.scrub_bytes(value)
            case bool() | None:
                return value
            case int() | float():
                text = repr(value)
                shown = self._scrub(text, rules)
                return value if shown == text else shown
            case Mapping():
                out = {}
                for key, inner in value.items():
                    is_house = key in house
                    name = key if is_house else self._walk(key, house, foreign, rules)
                    inside = (frozenset[str](),) * 2 if key in foreign else (house, foreign)
                    out[name] = self._walk(inner, *inside, self._sure if is_house else rules)
                is_same = all(k in out and out[k] is v for k, v in value.items())
                return value if is_same else out
            case Sequence():
                items = [self._walk(v, house, foreign, rules) for v in value]
                is_same = all(new is old for new, old in zip(items, value, strict=True))
                return value if is_same else items
            case _:
                return value


class ScrubbedStream:
    """Scrubs a text that comes in pieces: what may be the beginning of a secret waits."""

    def __init__(self, newest: Callable[[], _Rules]) -> None:
        self._newest = newest
        self._rules = newest()
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take the next piece, and return what is safe to show of all so far."""
        self._rules = self._newest()
        if self._rules.pattern is None:
            return piece
        self._held += piece
        out = []
        start = 0
        wait = self._wait_from(0)
        for found in self._rules.pattern.finditer(self._held):
            if found.start() >= wait:
                break
            out += [self._held[start : found.start()], _replaced(self._rules, found)]
            start = found.end()
            if start > wait:
                wait = self._wait_from(start)
        out.append(self._held[start:wait])
        self._held = self._held[wait:]
        return "".join(out)

    def end(self) -> str:
        """Return the rest; nothing more comes."""
        rest, self._held = self._held, ""
        if self._rules.pattern is None:
            return rest
        return self._rules.pattern.sub(functools.partial(_replaced, self._rules), rest)

    def _wait_from(self, start: int) -> int:
        """The place from which on the text may be the beginning of a secret."""
        held, rules = self._held, self._rules
        for i in range(max(start, len(held) - rules.longest + 1), len(held)):
            if held[i] in rules.first:
                tail = held[i:]
                if any(form.may_begin(tail) for form in rules.forms):
                    return i
        return len(held)


def _replaced(rules: _Rules, found: re.Match[str]) -> str:
    assert found.lastindex is not None  # every alternative is a group
    return f"[secret {rules.names[found.lastindex - 1]}]"


def _compiled(secrets: Sequence[tuple[str, str | bytes]]) -> _Rules:
    # Why longest first: where one secret begins with another, the whole of it goes.
    ordered = sorted(secrets, key=lambda s: len(s[1]), reverse=True)
    forms = [_forms(value) for _, value in ordered]
    if not forms:
        return _Rules(tuple(secrets))
    patterns = ["|".join(form.pattern() for form in group) for group in forms]
    flat = tuple(form for group in forms for form in group)
    first = {way[0] for form in flat for way in form.parts[0].ways}
    return _Rules(
        secrets=tuple(secrets),
        forms=flat,
        names=tuple(name for name, _ in ordered),
        pattern=re.compile("|".join(f"({p})" for p in patterns)),
        longest=max(form.longest for form in flat),
        first=frozenset(first | {c.upper() for c in first}),
    )


def _forms(value: str | bytes) -> list[_Form]:
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    found = [_Form(_base64(data, shift), ignore_case=False) for shift in range(3)]
    found.append(_Form(_hexadecimal(data), ignore_case=True))
    if isinstance(value, str):
        found.insert(0, _Form(tuple(_written(c) for c in value), ignore_case=False))
    return found


def _base64(data: bytes, shift: int) -> tuple[_Part, ...]:
    """The characters that `data` alone decides, when `shift` other bytes come before it."""
    text = base64.b64encode(b"\0" * shift + data + b"\0\0").decode()
    core = text[(shift * 8 + 5) // 6 : (shift + len(data)) * 8 // 6]
    return tuple(_digit(c, i > 0) for i, c in enumerate(core))


@functools.cache
def _digit(c: str, may_break: bool) -> _Part:
    """One digit of base64, in its own alphabet and that of URLs."""
    ways = {"+": ("+", "-", "%2B", "%2b"), "/": ("/", "_", "%2F", "%2f", "\\/")}.get(c, (c,))
    pattern = f"(?:{'|'.join(re.escape(w) for w in ways)})" if len(ways) > 1 else c
    if not may_break:
        return _Part(ways, pattern)
    # Why: tools that write base64 break it into lines.
    broken = tuple(b + w for b in _BREAKS for w in ways)
    return _Part(ways + broken, r"(?:\r?\n|(?:\\r)?\\n)?" + pattern)


def _hexadecimal(data: bytes) -> tuple[_Part, ...]:
    return tuple(_pair(f"{byte:02x}", i > 0) for i, byte in enumerate(data))


@functools.cache
def _pair(digits: str, may_break: bool) -> _Part:
    if not may_break:
        return _Part((digits,), digits)
    ways = (digits, *(s + digits for s in (":", " ", "-", "\\x", ", 0x")))
    return _Part(ways, r"(?:[: -]|\\x|, 0x)?" + digits)


@functools.cache
def _written(c: str) -> _Part:
    """One character in every way in which it is written in URLs, JSON, Python and HTML."""
    data = c.encode("utf-8", "surrogatepass")
    units = c.encode("utf-16-be", "surrogatepass")
    pairs = [f"{byte:02x}" for byte in data]
    wide = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
    ways, patterns = [c], [re.escape(c)]
    for percent in ("%", "%25"):
        ways += _cased(percent, pairs)
    patterns.append("".join(f"%(?:25)?(?i:{p})" for p in pairs))
    escapes = [("x", pairs), ("u", wide), ("U", [f"{ord(c):08x}"])]
    if 128 <= ord(c) < 256:
        escapes.append(("x", [f"{ord(c):02x}"]))
    for n in range(1, 5):
        for letter, digits in escapes:
            ways += _cased("\\" * n + letter, digits)
    patterns += ["".join(r"\\{1,4}" + f"{x}(?i:{d})" for d in digits) for x, digits in escapes]
    ways += [f"&#{ord(c)};", *_cased("&#x", [f"{ord(c):x}"], ";")]
    patterns.append(f"&#(?:{ord(c)}|(?i:x{ord(c):x}));")
    if c in _ENTITIES:
        ways.append(_ENTITIES[c])
        patterns.append(_ENTITIES[c])
    if c == " ":
        ways.append("+")
        patterns.append(r"\+")
    if c in "\"'/":
        ways += ["\\" * n + c for n in range(1, 8)]
        patterns.append(r"\\{1,7}" + c)
    if c == "\\":
        ways += [c * n for n in range(2, 9)]
        patterns.append(r"\\{1,8}")
    if c in _LETTERS:
        ways += ["\\" * n + _LETTERS[c] for n in range(1, 8)]
        patterns.append(r"\\{1,7}" + _LETTERS[c])
    # Why backwards: the whole of an escape is taken, never its first character.
    return _Part(tuple(dict.fromkeys(ways)), f"(?:{'|'.join(reversed(patterns))})")


def _cased(before: str, digits: list[str], after: str = "") -> tuple[str, str]:
    """Hexadecimal digits in lower and in upper case, each with what stands before and after."""
    lower = "".join(before + d + after for d in digits)
    return lower, "".join(before + d.upper() + after for d in digits)
