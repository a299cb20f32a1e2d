"""Turns what a tool returned into the text that the model reads.

A text goes as it is; all else becomes JSON:

    None, blank text                   (no output)
    bool, int, finite float            themselves
    list, tuple, range, deque, views   list
    set, frozenset                     list, sorted by the JSON text of its members
    mapping                            object; keys that are numbers, dates, ... become text
    named tuple, dataclass             object of its fields
    pydantic model                     object, as the model itself writes JSON
    enum member                        its value
    date, time, datetime               ISO 8601
    timedelta                          seconds
    Decimal, UUID, path, Fraction,
    IP address or network              text
    bytes                              text, if it is UTF-8
    numpy scalar, numpy array          as the Python value or list it stands for

Anything else, a NaN or infinity, half of a surrogate pair, and a value that holds itself are
refused with a text that says what to return instead.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import inspect
import ipaddress
import json
import math
import pathlib
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any, NoReturn

from capuchin_yaml.errors import ToolFailed
from capuchin_yaml.spec import JsonValue

NO_OUTPUT = "(no output)"
MAX_DEPTH = 100
MAX_PARTS = 500_000
"""Most values in one result: shared parts count each time they occur, as in the JSON."""
MAX_CHARACTERS = 64 * 1024 * 1024
"""Most characters of all texts in one structured result; the engine caps far below."""

_AS_TEXT = (
    uuid.UUID,
    pathlib.PurePath,
    fractions.Fraction,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)


def result_text(value: object) -> str:
    """Return the text for the model, never blank and always valid UTF-8.

    Raises:
        ToolFailed: the tool ran, but what it returned has no text form.
    """
    try:
        text = _text(value)
        text.encode()
    except ToolFailed:
        raise
    except UnicodeEncodeError:
        _refuse("holds half of a surrogate pair, which is no valid text")
    except Exception as error:  # code of the value's own class may raise anything
        _refuse(
            f"is a {type(value).__name__!r} that cannot be read: {type(error).__name__}: {error}"
        )
    return text if text.strip() else NO_OUTPUT


def _text(value: object) -> str:
    if value is None:
        return NO_OUTPUT
    plain = _Plain().of(value)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


class _Plain:
    """One walk through a value, with the bounds of the whole result."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._parts = 0
        self._characters = 0

    def of(self, value: object) -> JsonValue:
        """Return `value` as plain JSON values."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            _refuse(f"holds more than {MAX_PARTS} values")
        if isinstance(value, enum.Enum):
            return self.of(value.value)
        if value is None or isinstance(value, bool | str | int | float):
            return self._scalar(value)
        if id(value) in self._open:
            _refuse("holds itself")
        if len(self._open) >= MAX_DEPTH:
            _refuse(f"is nested more than {MAX_DEPTH} deep")
        self._open.add(id(value))
        try:
            return self._converted(value)
        finally:
            self._open.discard(id(value))

    def _scalar(self, value: str | float | None) -> JsonValue:
        match value:
            case None | bool():
                return value
            case str():
                self._characters += len(value)
                if self._characters > MAX_CHARACTERS:
                    _refuse(f"holds texts of more than {MAX_CHARACTERS} characters")
                return str.__str__(value)
            case int():
                # Why: Python refuses to write longer integers, its guard against slow work.
                if value.bit_length() > 10_000:
                    _refuse("holds a whole number of more than 3000 digits")
                return int(value)
            case float():
                if not math.isfinite(value):
                    _refuse(f"holds {value!r}, which JSON cannot; return None or a text")
                return float(value)

    def _converted(self, value: object) -> JsonValue:
        match value:
            case bytes() | bytearray() | memoryview():
                return self._scalar(_decoded(bytes(value)))
            case datetime.datetime() | datetime.date() | datetime.time():
                return value.isoformat()
            case datetime.timedelta():
                return value.total_seconds()
            case decimal.Decimal():
                if not value.is_finite():
                    _refuse(f"holds {value!s}, which JSON cannot; return None or a text")
                return str(value)
            case tuple() if hasattr(value, "_fields"):
                return {name: self.of(getattr(value, name)) for name in value._fields}
            case Mapping():
                return self._object(value)
            case Set():
                return sorted((self.of(v) for v in value), key=_sort_key)
            case Sequence() | ValuesView() | collections.deque():
                return [self.of(v) for v in value]
            case _ if isinstance(value, _AS_TEXT):
                return str(value)
            case _:
                return self._foreign(value)

    def _foreign(self, value: Any) -> JsonValue:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return {name: self.of(getattr(value, name)) for name in names}
        if not isinstance(value, type):
            if hasattr(value, "__pydantic_serializer__"):
                return self.of(value.model_dump(mode="json", warnings=False))
            if hasattr(value, "dtype") and hasattr(value, "tolist"):
                return self.of(value.tolist())  # a numpy scalar gives a scalar here
        if inspect.iscoroutine(value):
            value.close()  # else Python warns, much later and elsewhere
            _refuse("is a coroutine: the tool calls an async function without await")
        if inspect.isawaitable(value):
            _refuse("still waits to be awaited: write 'async def' and 'await'")
        if isinstance(value, Iterator) or inspect.isasyncgen(value):
            _refuse("is a generator or iterator, which gives its values once; return a list")
        _refuse(
            f"holds a {type(value).__module__}.{type(value).__qualname__}; return text, "
            "numbers, lists, dicts or a dataclass"
        )

    def _object(self, value: Mapping[Any, object]) -> JsonValue:
        out: dict[str, JsonValue] = {}
        for key, inner in value.items():
            name = self._key(key)
            if name in out:
                _refuse(f"has two keys that are written {name!r}")
            out[name] = self.of(inner)
        return out

    def _key(self, key: object) -> str:
        plain = self.of(key)
        if isinstance(plain, list | dict):
            _refuse(f"has a key that is a {type(key).__name__}; use texts as keys")
        return plain if isinstance(plain, str) else json.dumps(plain)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        _refuse("holds bytes that are no UTF-8; return text, such as their base64 form")


def _sort_key(plain: JsonValue) -> str:
    return json.dumps(plain, sort_keys=True)


def _refuse(why: str) -> NoReturn:
    # Why: the reason may quote the value, and this text must itself be fit to send.
    raise ToolFailed(f"the result {why}".encode("utf-8", "backslashreplace").decode())
