"""A line that a schema takes, made from what it says of a key, for whoever has to type one."""

from __future__ import annotations

import json
from collections.abc import Mapping

from capuchin_yaml.compiler.document import Path, plain_value
from capuchin_yaml.compiler.wording import either, resolved
from capuchin_yaml.spec import JsonValue

_DEEPEST = 4
_MOST_CHARS = 120
_LOOSENING = ("allow", "auto")
_SPECIAL = frozenset("#&*!|>%@`\"'{}[],:?-")


def example_line(
    path: Path, schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue], verb: str = "write"
) -> str | None:
    """What to type at `path`, such as `write quorum: 1`; None when the schema says too little."""
    value = _example(schema, root, 0)
    if value is None or len(value) > _MOST_CHARS:
        return None
    key = path[-1] if path else ""
    return f"{verb} {key}: {value}" if isinstance(key, str) and key else f"{verb} {value}"


def _example(
    schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue], depth: int
) -> str | None:
    if depth > _DEEPEST:
        return None
    schema = resolved(schema, root)
    for known in ("const", "default"):
        if known in schema:
            return _written(schema[known])
    if schema.get("enum"):
        return either([_written(value) for value in schema["enum"][:8]])
    if schema.get("examples"):
        return _written(schema["examples"][0])
    for branches in (schema.get("anyOf"), schema.get("oneOf")):
        if branches:
            return next((e for b in branches if (e := _example(b, root, depth + 1))), None)
    return _example_of_type(schema, root, depth)


def _example_of_type(
    schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue], depth: int
) -> str | None:
    kinds = schema.get("type")
    match kinds[0] if isinstance(kinds, list) and kinds else kinds:
        case "integer" | "number":
            return _written(schema.get("minimum", 1))
        case "boolean":
            return "true or false"
        case "string" if "pattern" not in schema:
            return '"…"'
        case "array":
            item = _example(schema.get("items") or {"type": "string"}, root, depth + 1)
            return f"[{item}]" if item is not None else None
        case "object":
            return _example_map(schema, root, depth)
        case _:
            return None


def _example_map(
    schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue], depth: int
) -> str | None:
    properties = schema.get("properties") or {}
    if not properties:
        return "{key: value}"
    names = [n for n in schema.get("required", ()) if n in properties] or list(properties)[:1]
    lines = [
        f"{name}: {value}"
        for name in names
        if (value := _one_value(properties[name], root, depth)) is not None
    ]
    return f"{{{', '.join(lines)}}}" if lines and len(lines) == len(names) else None


def _one_value(
    schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue], depth: int
) -> str | None:
    choices = resolved(schema, root).get("enum")
    if choices:
        # Why: what lets more run without asking is never proposed unasked.
        return next((_written(c) for c in choices if c not in _LOOSENING), None)
    return _example(schema, root, depth + 1)


def _written(value: JsonValue) -> str:
    """A value as YAML, on one line."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    plain = isinstance(plain_value(value), str) and value[:1] not in _SPECIAL
    return value if plain and ": " not in value and " #" not in value else json.dumps(value)
