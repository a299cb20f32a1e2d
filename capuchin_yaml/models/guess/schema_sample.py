"""JSON Schemas of tool inputs: their parts, whether a value fits, and a value that does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from capuchin_yaml.models.guess.pattern_sample import text_for_pattern
from capuchin_yaml.spec import JsonValue

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Schema = Mapping[str, JsonValue]
_DEEPEST = 5
_FORMATS = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "/example",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "regex": ".*",
    "json-pointer": "/example",
}


class InputSchema:
    """One tool's input schema, with its references followed."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def resolved(self, schema: JsonValue) -> Schema:
        """The schema with `$ref` and `allOf` put in and the first useful alternative chosen."""
        return self._resolved(schema, 0)

    def _resolved(self, schema: JsonValue, depth: int) -> Schema:
        out: dict[str, JsonValue] = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(_DEEPEST if depth < _DEEPEST else 0):
            if isinstance(out.get("$ref"), str):
                target = self._target(str(out.pop("$ref")))
                out = {**target, **out}
            elif isinstance(out.get("allOf"), list):
                for part in out.pop("allOf"):
                    out = _merged(out, self._resolved(part, depth + 1))
            elif (choices := out.pop("anyOf", None) or out.pop("oneOf", None)) is not None:
                out = _merged(out, self._alternative(choices, depth + 1))
            else:
                break
        return out

    def fits(self, schema: JsonValue, value: JsonValue) -> bool:
        """Whether a value is valid for a part of this schema; a broken schema takes everything."""
        from jsonschema.exceptions import SchemaError, UnknownType
        from referencing.exceptions import Unresolvable

        if not isinstance(schema, Mapping):
            return True
        try:
            return bool(self._validator.evolve(schema=dict(schema)).is_valid(value))
        except (SchemaError, UnknownType, Unresolvable, re.error, TypeError, RecursionError):
            return True

    def sample(self, schema: JsonValue, depth: int = 0) -> JsonValue:
        """A small value that is valid for the schema whenever that is within reach."""
        plain = self.resolved(schema)
        first: JsonValue = None
        for i, value in enumerate(self._samples(plain, depth)):
            if self.fits(schema, value):
                return value
            first = value if i == 0 else first
        return first

    def _samples(self, schema: Schema, depth: int) -> Iterator[JsonValue]:
        for key in ("const", "default"):
            if key in schema:
                yield schema[key]
        for key in ("enum", "examples"):
            if isinstance(schema.get(key), list):
                yield from schema[key]
        kind = kind_of(schema)
        match kind:
            case "object":
                yield self._object(schema, depth)
            case "array":
                yield self._array(schema, depth)
            case "integer" | "number":
                yield from _numbers(schema, whole=kind == "integer")
            case "boolean":
                yield from (False, True)
            case "null":
                yield None
            case _:
                yield from _texts(schema)

    def _object(self, schema: Schema, depth: int) -> JsonValue:
        properties = schema.get("properties", {})
        needed = list(schema.get("required", []))
        if depth > _DEEPEST:
            return {}
        for name in properties:
            if len(needed) < schema.get("minProperties", 0) and name not in needed:
                needed.append(name)
        rest = schema.get("additionalProperties", {})
        return {name: self.sample(properties.get(name, rest), depth + 1) for name in needed}

    def _array(self, schema: Schema, depth: int) -> JsonValue:
        size = schema.get("minItems", 1 if "contains" in schema else 0)
        fixed = schema.get("prefixItems", [])
        if depth > _DEEPEST or not isinstance(size, int) or size > 1000:
            return []
        item = schema.get("items", schema.get("contains", {}))
        out: list[JsonValue] = []
        for i in range(size):
            part = fixed[i] if i < len(fixed) else item
            value = self.sample(part, depth + 1)
            if schema.get("uniqueItems") and value in out:
                value = next(
                    (v for v in _others(self.resolved(part), value) if v not in out), value
                )
            out.append(value)
        return out

    def _alternative(self, choices: JsonValue, depth: int) -> Schema:
        if not isinstance(choices, list):
            return {}
        plain = [self._resolved(c, depth) for c in choices]
        useful = [c for c in plain if c.get("type") != "null"]
        return next(iter(useful or plain), {})

    def _target(self, ref: str) -> Schema:
        node: JsonValue = self._root
        for step in ref.removeprefix("#").strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            node = node.get(name, {}) if isinstance(node, Mapping) and name else node
        return node if isinstance(node, Mapping) else {}

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for

        return validator_for(self._root, default=Draft202012Validator)(dict(self._root))


def kind_of(schema: Schema) -> str:
    """The JSON type a resolved schema asks for; of several the first that is not null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _merged(a: Schema, b: Schema) -> dict[str, JsonValue]:
    out = {**b, **a}
    for key in ("properties", "$defs"):
        if key in a and key in b:
            out[key] = {**b[key], **a[key]}
    if "required" in a and "required" in b:
        out["required"] = list(dict.fromkeys([*b["required"], *a["required"]]))
    return out


def _numbers(schema: Schema, *, whole: bool) -> Iterator[JsonValue]:
    low, high = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    starts: list[float] = [1, 0]
    for bound, nudge in ((low, 0), (over, 1), (high, 0), (under, -1)):
        if isinstance(bound, int | float):
            starts += [bound + nudge, bound + nudge / 2, bound + nudge / 1000]
    for start in starts:
        if isinstance(step, int | float) and step:
            start = math.ceil(start / step) * step
        if not whole:
            yield start
        yield from (math.ceil(start), math.floor(start))


def _texts(schema: Schema) -> Iterator[JsonValue]:
    least = schema.get("minLength", 0)
    most = schema.get("maxLength")
    least = least if isinstance(least, int) and least < 100_000 else 0
    if isinstance(schema.get("pattern"), str):
        sample = text_for_pattern(schema["pattern"], least)
        if sample is not None:
            yield sample
    text = _FORMATS.get(str(schema.get("format")), "example")
    while len(text) < least:
        text += " example"
    yield text[:most] if isinstance(most, int) and len(text) > most else text


def _others(schema: Schema, value: JsonValue) -> Iterator[JsonValue]:
    """More values like one, for lists that must not repeat themselves."""
    yield from schema.get("enum", [])
    for i in range(2, 1002):
        if isinstance(value, str):
            yield f"{value} {i}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield value + i - 1
        else:
            break
    yield from (True, False)
