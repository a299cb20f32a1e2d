"""Events survive the way to JSON and back, and are what the public schema says."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capuchin_yaml import events
from capuchin_yaml.events import EVENT_TYPES, Event, UnknownEvent, decode, to_json
from capuchin_yaml.items import CHOICES, Item, item_from_json
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import JsonValue

SCHEMA = read_schema("event.v1")
validator = Draft202012Validator(SCHEMA)

ITEM = {
    "id": "c:a1",
    "kind": "approval",
    "conversation": "c",
    "digest": "d" * 64,
    "revision": 0,
    "title": "Refund",
    "requested_at": "2026-11-30T00:00:00Z",
    "due": None,
    "then": "wait",
}


def required_names(cls: type) -> set[str]:
    """Fields that have no default."""
    return {
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }


def json_type(hint: Any) -> object:
    """What the schema must say of a field with this type hint."""
    simple = {int: "integer", str: "string", bool: "boolean", float: "number"}
    if hint in simple:
        return simple[hint]
    if typing.get_origin(hint) is Literal:
        return list(typing.get_args(hint))
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        (inner,) = (json_type(a) for a in arguments if a is not type(None))
        return [inner, "null"]
    if typing.get_origin(hint) is tuple:
        return "array"
    assert issubclass(typing.get_origin(hint) or hint, Mapping)
    return "object"


def schema_type(schema: Mapping[str, Any]) -> object:
    """The type or the closed set that a schema names, references followed."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema.get("enum", schema.get("type"))


@pytest.mark.parametrize("cls", [*EVENT_TYPES, Item], ids=lambda c: c.__name__)
def test_the_schema_has_the_fields_of_the_class(cls: type) -> None:
    name = getattr(cls, "kind", "item") if cls is not Item else "item"
    schema = SCHEMA["$defs"][name]
    properties = dict(schema["properties"])
    required = set(schema["required"])
    if cls is not Item:
        assert properties.pop("kind") == {"const": name}
        required.remove("kind")

    hints = typing.get_type_hints(cls)
    assert list(properties) == [f.name for f in dataclasses.fields(cls)]
    assert required == required_names(cls)
    assert {n: schema_type(p) for n, p in properties.items()} == {
        n: json_type(hints[n]) for n in properties
    }


def test_the_schema_lists_every_kind_and_no_other() -> None:
    kinds = [cls.kind for cls in EVENT_TYPES]

    assert SCHEMA["oneOf"] == [{"$ref": f"#/$defs/{kind}"} for kind in kinds]
    assert set(SCHEMA["$defs"]) == {*kinds, "offset", "time", "item"}


def test_every_event_class_is_registered() -> None:
    found = {c for c in vars(events).values() if isinstance(c, type) and issubclass(c, Event)}

    assert found == {Event, UnknownEvent, *EVENT_TYPES}
    assert len({c.kind for c in EVENT_TYPES}) == len(EVENT_TYPES)


def values_for(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if typing.get_origin(hint) is Literal:
        return st.sampled_from(typing.get_args(hint))
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return st.none() | values_for(next(a for a in arguments if a is not type(None)))
    if typing.get_origin(hint) is tuple:
        return st.lists(values_for(typing.get_args(hint)[0])).map(tuple)
    if typing.get_origin(hint) is not None:
        return st.just(ITEM)
    if hint is int:
        return st.integers(0, 2**40)
    if hint is float:
        return st.floats(0, 1e6)
    return st.from_type(hint)


def event_of(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Any event of one class."""
    hints = typing.get_type_hints(cls)
    fields = {f.name: values_for(hints[f.name]) for f in dataclasses.fields(cls)}
    return st.builds(cls, **fields)


any_event = st.one_of(*(event_of(cls) for cls in EVENT_TYPES))


@given(any_event)
def test_an_event_comes_back_as_it_was_and_fits_the_schema(event: Event) -> None:
    value = to_json(event)

    assert decode(value) == event
    assert next(iter(value)) == "kind"
    validator.validate(value)


@given(any_event, st.text(min_size=1).map(lambda t: "x-" + t))
def test_a_field_of_a_later_release_is_ignored(event: Event, name: str) -> None:
    value = {**to_json(event), name: 1}

    assert decode(value) == event
    validator.validate(value)


def test_a_kind_of_a_later_release_is_kept_whole() -> None:
    value = {"kind": "moon_rose", "offset": 3, "time": "t", "phase": [1]}

    event = decode(value)

    assert event == UnknownEvent(offset=3, time="t", name="moon_rose", data=value)
    assert to_json(event) == value


def test_a_missing_field_makes_an_unknown_event_and_not_an_error() -> None:
    event = decode({"kind": "turn_started", "offset": 1, "time": "t"})

    assert isinstance(event, UnknownEvent)
    assert event.name == "turn_started"


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)


@given(
    st.dictionaries(
        st.sampled_from(["kind", "offset", "time", "turn", "text", "item"]) | st.text(), json_like
    )
)
def test_decoding_never_raises(value: dict[str, JsonValue]) -> None:
    assert isinstance(decode(value), Event)


def test_an_item_reads_what_an_event_holds() -> None:
    item = item_from_json({**ITEM, "later": 1})

    assert (item.id, item.due, item.arguments) == ("c:a1", None, "")


def test_an_item_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="digest"):
        item_from_json({k: v for k, v in ITEM.items() if k != "digest"})


def test_every_choice_of_an_item_is_one_that_an_event_can_record() -> None:
    choices = typing.get_args(events.Choice)

    assert set(CHOICES) == set(typing.get_args(events.ItemKind))
    assert {c for offered in CHOICES.values() for c in offered} <= set(choices)
