"""The one text form of arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.policy.canonical import InvalidArguments, canonical_arguments

OPEN: dict[str, Any] = {"type": "object"}
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values, max_size=5))
def test_the_text_is_a_fixed_point_and_means_the_same(value: dict[str, Any]) -> None:
    text = canonical_arguments(OPEN, value)

    assert json.loads(text) == value
    assert canonical_arguments(OPEN, json.loads(text)) == text
    assert text.encode()


def test_the_order_of_keys_does_not_matter() -> None:
    assert canonical_arguments(OPEN, {"b": 1, "a": [2]}) == '{"a":[2],"b":1}'


def test_defaults_are_filled_also_inside_given_objects_and_through_references() -> None:
    schema = {
        "type": "object",
        "properties": {
            "currency": {"type": "string", "default": "USD"},
            "who": {"$ref": "#/$defs/person"},
        },
        "$defs": {
            "person": {"type": "object", "properties": {"age": {"type": "integer", "default": 5}}}
        },
    }

    assert canonical_arguments(schema, {"who": {}}) == '{"currency":"USD","who":{"age":5}}'
    assert canonical_arguments(schema, {}) == '{"currency":"USD"}'


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("text", "not text"),
        (None, "not null"),
        ([], "not a list"),
        (True, "not true or false"),
        ({"a": float("nan")}, "a: not a finite number"),
        ({"a": [float("inf")]}, r"a\[0\]: not a finite number"),
        ({"a": {"b": "\ud800"}}, "a.b: half of a surrogate pair"),
        ({"\ud800": 1}, "half of a surrogate pair"),
        ({"a": 2**63}, "over 64 bits"),
        ({"a": "x" * 70_000}, "over 64 KB"),
        ({1: 2}, "no text"),
        ({"a": {1, 2}}, "set is not a JSON value"),
    ],
)
def test_what_cannot_be_shown_and_run_alike_is_refused(value: Any, words: str) -> None:
    with pytest.raises(InvalidArguments, match=words):
        canonical_arguments(OPEN, value)


def test_endless_nesting_is_refused() -> None:
    value: Any = {}
    for _ in range(100):
        value = {"a": value}

    with pytest.raises(InvalidArguments, match="deep"):
        canonical_arguments(OPEN, value)


def test_what_does_not_fit_the_schema_names_every_field() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
        "required": ["n"],
        "additionalProperties": False,
    }

    with pytest.raises(InvalidArguments) as refused:
        canonical_arguments(schema, {"s": 5, "more": 1})

    assert "more" in str(refused.value)
    assert "'n' is a required property" in str(refused.value)
    assert "s: 5 is not of type 'string'" in str(refused.value)
