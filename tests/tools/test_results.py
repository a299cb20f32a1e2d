"""Whatever a tool returns becomes text that can be sent, or a clear refusal."""

from __future__ import annotations

import collections
import datetime as dt
import gc
import ipaddress
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from capuchin_yaml.errors import ToolFailed
from capuchin_yaml.tools.results import NO_OUTPUT, result_text


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    HELLO = "hello"


class Kind(Enum):
    DAY = dt.date(2026, 1, 2)


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Node:
    name: str
    inner: Any = None
    _hidden: int = field(default=1, repr=False)


class Model(BaseModel):
    when: dt.date
    secret: SecretStr = SecretStr("hush")
    n: float = 1.5


class Scalar:
    """Stands for a numpy scalar or array: those have `dtype` and `tolist`."""

    dtype = "float64"

    def __init__(self, value: Any) -> None:
        self._value = value

    def tolist(self) -> Any:
        return self._value


class Raises:
    dtype = "x"

    def tolist(self) -> Any:
        raise RuntimeError("no \ud800")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        ("", NO_OUTPUT),
        (" \n\t", NO_OUTPUT),
        (None, NO_OUTPUT),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        (2**64, "18446744073709551616"),
        ([], "[]"),
        ({"b": 1, "a": "é"}, '{"b": 1, "a": "é"}'),
        ((1, None, True), "[1, null, true]"),
        ({3, 1, 2}, "[1, 2, 3]"),
        (frozenset({"b", "a"}), '["a", "b"]'),
        (range(3), "[0, 1, 2]"),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.values(), "[1]"),
        (collections.deque([1]), "[1]"),
        (collections.Counter("aab"), '{"a": 2, "b": 1}'),
        (Point(1, 2), '{"x": 1, "y": 2}'),
        (Level.HIGH, "3"),
        (Word.HELLO, "hello"),
        (Kind.DAY, "2026-01-02"),
        ({Kind.DAY: Word.HELLO}, '{"2026-01-02": "hello"}'),
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02T03:00:00+00:00"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(minutes=1.5), "90.0"),
        (Decimal("1.10"), "1.10"),
        ({"d": Decimal("1E+999999")}, '{"d": "1E+999999"}'),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("a/b"), "a/b"),
        (Fraction(1, 3), "1/3"),
        (ipaddress.ip_address("::1"), "::1"),
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"x"), "x"),
        (memoryview(b"x"), "x"),
        (b"", NO_OUTPUT),
        (Scalar(2.5), "2.5"),
        (Scalar([[1], [2]]), "[[1], [2]]"),
    ],
)
def test_the_documented_conversions(value: object, text: str) -> None:
    assert result_text(value) == text


def test_a_dataclass_is_an_object_of_its_fields() -> None:
    assert json.loads(result_text(Node("n", [Node("m")]))) == {
        "name": "n",
        "inner": [{"name": "m", "inner": None, "_hidden": 1}],
        "_hidden": 1,
    }


def test_a_pydantic_model_keeps_its_secrets() -> None:
    assert json.loads(result_text(Model(when=dt.date(2026, 1, 2)))) == {
        "when": "2026-01-02",
        "secret": "**********",
        "n": 1.5,
    }


def test_keys_that_are_no_text_are_written_as_json() -> None:
    keys = {2: "a", None: "b", False: "c", 1.5: "d"}

    assert json.loads(result_text(keys)) == {"2": "a", "null": "b", "false": "c", "1.5": "d"}


def loop_of_dicts() -> object:
    value: dict[str, object] = {}
    value["self"] = [value]
    return value


def loop_of_nodes() -> object:
    node = Node("n")
    node.inner = {"again": node}
    return node


def deep() -> object:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    return value


def wide_by_sharing() -> object:
    value: object = ["x"]
    for _ in range(60):
        value = [value, value]
    return value


def long_by_sharing() -> object:
    return ["x" * 1_000_000] * 1_000


async def later() -> int:
    return 1


def generate() -> Iterator[int]:
    yield 1


async def generate_later() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: float("nan"), "holds nan, which JSON cannot"),
        (lambda: {"a": [float("inf")]}, "holds inf"),
        (lambda: Decimal("NaN"), "holds NaN"),
        (lambda: Decimal("-Infinity"), "holds -Infinity"),
        (lambda: 10**5000, "a whole number of more than 3000 digits"),
        (lambda: [-(10**5000)], "a whole number of more than 3000 digits"),
        (lambda: {10**5000: 1}, "a whole number of more than 3000 digits"),
        (lambda: "half \ud83d", "half of a surrogate pair"),
        (lambda: {"\udc00": 1}, "half of a surrogate pair"),
        (lambda: ["\ud800"], "half of a surrogate pair"),
        (lambda: {"\ud800": 1, (): 2}, "has a key that is"),
        (lambda: b"\xff", "bytes that are no UTF-8"),
        (loop_of_dicts, "holds itself"),
        (loop_of_nodes, "holds itself"),
        (deep, "nested more than 100 deep"),
        (wide_by_sharing, "more than 500000 values"),
        (long_by_sharing, "texts of more than"),
        (lambda: range(10**12), "more than 500000 values"),
        (generate, "is a generator or iterator"),
        (generate_later, "is a generator or iterator"),
        (lambda: iter([1]), "is a generator or iterator"),
        (lambda: map(str, [1]), "is a generator or iterator"),
        (lambda: {(1, 2): 3}, "has a key that is a tuple"),
        (lambda: {1: "a", "1": "b"}, "two keys that are written '1'"),
        (object, "holds a builtins.object; return text"),
        (lambda: Node, "holds a builtins.type"),
        (lambda: Model, "holds a pydantic"),
        (lambda: 1j, "holds a builtins.complex"),
        (lambda: ValueError("x"), "holds a builtins.ValueError"),
        (lambda: len, "holds a builtins.builtin_function"),
        (lambda: Scalar(float("nan")), "holds nan"),
        (Raises, "cannot be read: RuntimeError: no \\ud800"),
        (lambda: Model(when=dt.date(2026, 1, 2), n=float("nan")), "holds nan"),
    ],
)
def test_what_has_no_text_form_is_refused_clearly(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        result_text(make())

    assert str(refused.value).startswith("the result ")
    assert said in str(refused.value)
    str(refused.value).encode()


def test_a_forgotten_await_is_named_and_leaves_no_warning_behind() -> None:
    with pytest.raises(ToolFailed, match=r"is a coroutine: .* without await"):
        result_text([later()])

    gc.collect()


keys = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.ip_addresses(),
    st.just(5000).map(lambda n: 10**n),
    st.sampled_from([Level.HIGH, Word.HELLO, Kind.DAY]),
    st.just(object()),
)
scalars = st.one_of(keys, st.decimals())  # a signaling NaN cannot be a key
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(keys, inner),
        inner.map(lambda v: Node("n", v)),
        inner.map(Scalar),
    ),
    max_leaves=20,
)


@given(anything)
def test_every_text_can_be_sent_or_the_refusal_can(value: object) -> None:
    try:
        text = result_text(value)
    except ToolFailed as refused:
        text = str(refused)

    assert text.strip()
    text.encode()


def no_constant(name: str) -> Any:
    raise AssertionError(f"{name} on the wire")


@given(st.one_of(st.lists(anything), st.dictionaries(st.text(), anything)))
def test_structured_results_are_strict_json(value: object) -> None:
    try:
        text = result_text(value)
    except ToolFailed:
        return

    json.loads(text, parse_constant=no_constant)


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=10,
)


@given(st.one_of(st.lists(json_values), st.dictionaries(st.text(), json_values)))
def test_plain_data_comes_back_as_it_was(value: object) -> None:
    assert json.loads(result_text(value)) == value
