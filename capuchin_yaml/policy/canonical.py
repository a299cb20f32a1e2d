"""The one text form of a call's arguments: what is stored, shown, hashed and run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from capuchin_yaml.spec import JsonValue, canonical_json

MAX_ARGUMENT_BYTES = 64 * 1024
MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1
"""Larger whole numbers lose digits in most tools and databases, so they are refused."""


class InvalidArguments(ValueError):
    """The model's arguments cannot be used; the text names the field and says why."""


def canonical_arguments(schema: Mapping[str, JsonValue], value: JsonValue) -> str:
    """Return the canonical JSON text of arguments that fit `schema`, its defaults filled in.

    Raises:
        InvalidArguments: not an object, does not fit the schema, not finite, a lone
            surrogate, too deep, or over 64 KB.
    """
    if not isinstance(value, Mapping):
        raise InvalidArguments(f"the arguments must be a JSON object, not {_kind(value)}")
    _check_values(value, "", 0)
    filled = _with_defaults(schema, value, schema)
    _check_schema(schema, filled)
    text = canonical_json(filled)
    if len(text.encode()) > MAX_ARGUMENT_BYTES:
        raise InvalidArguments(f"the arguments are over {MAX_ARGUMENT_BYTES // 1024} KB")
    return text


def _check_values(value: JsonValue, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidArguments(f"{path or 'the arguments'}: nested more than {MAX_DEPTH} deep")
    match value:
        case Mapping():
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise InvalidArguments(f"{path or 'the arguments'}: a key that is no text")
                _check_text(key, path)
                _check_values(inner, f"{path}.{key}" if path else key, depth + 1)
        case list() | tuple():
            for i, inner in enumerate(value):
                _check_values(inner, f"{path}[{i}]", depth + 1)
        case _:
            _check_scalar(value, path)


def _check_scalar(value: JsonValue, path: str) -> None:
    match value:
        case bool() | None:
            return
        case str():
            _check_text(value, path)
        case int():
            if abs(value) > MAX_INTEGER:
                raise InvalidArguments(f"{path}: a whole number over 64 bits")
        case float():
            if not math.isfinite(value):
                raise InvalidArguments(f"{path}: not a finite number")
        case _:
            raise InvalidArguments(f"{path}: {type(value).__name__} is not a JSON value")


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArguments(f"{path or 'the arguments'}: half of a surrogate pair") from None


def _with_defaults(
    schema: JsonValue, value: JsonValue, root: Mapping[str, JsonValue], depth: int = 0
) -> JsonValue:
    """Fill in the schema's defaults where a key is absent, also inside given objects."""
    schema = _resolved(schema, root)
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return dict(value)
        filled = {
            k: _with_defaults(properties.get(k), v, root, depth + 1) for k, v in value.items()
        }
        for name, inner in properties.items():
            if name not in filled and isinstance(inner, Mapping) and "default" in inner:
                filled[name] = inner["default"]
        return filled
    if isinstance(value, list):
        return [_with_defaults(schema.get("items"), v, root, depth + 1) for v in value]
    return value


def _resolved(schema: JsonValue, root: Mapping[str, JsonValue]) -> JsonValue:
    for _ in range(MAX_DEPTH):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            return schema
        target: JsonValue = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        schema = target
    return None


def _check_schema(schema: Mapping[str, JsonValue], value: JsonValue) -> None:
    from jsonschema import Draft202012Validator

    errors = sorted(
        Draft202012Validator(schema).iter_errors(value), key=lambda e: [str(p) for p in e.path]
    )
    if errors:
        shown = [_sentence(error.absolute_path, error.message) for error in errors[:3]]
        more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
        raise InvalidArguments("; ".join(shown) + more)


def _sentence(path: Sequence[str | int], message: str) -> str:
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")
    message = message if len(message) <= 300 else message[:299] + "…"
    return f"{where}: {message}" if where else message


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case _:
            return "a list"
