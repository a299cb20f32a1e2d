"""Arguments that a person changes: a form from the tool's schema, checks, and what differs.

Shared by the TUI and the CLI. No I/O. Checks are the judge's own, so that what passes here is
what the conversation takes; it judges again in any case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from capuchin_yaml.spec import JsonValue, canonical_json

FieldKind: TypeAlias = Literal["string", "integer", "number", "boolean", "json"]
_SIMPLE: tuple[FieldKind, ...] = ("string", "integer", "number", "boolean")

_WORDS: Mapping[FieldKind, str] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "json": "JSON",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One argument as a form shows it."""

    name: str
    kind: FieldKind
    text: str
    """What the box holds: a text as it is, anything else as JSON; empty when it is not given."""
    is_required: bool = False
    is_given: bool = False
    """Whether the call gives it, be it as an empty text."""
    note: str = ""
    """Type, choices and description, in words."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is another one now; None where there was or is none."""

    path: str
    before: str | None
    """JSON text."""
    after: str | None


class WrongArguments(ValueError):
    """What was written cannot run; the text says where and why."""


def form(schema: Mapping[str, JsonValue], arguments: str) -> tuple[Field, ...]:
    """The arguments as fields in the schema's order; keys it does not name come last."""
    given = _object(arguments)
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required") or ()
    fields: list[Field] = []
    for name in [*known, *(k for k in given if k not in known)]:
        inner = known.get(name)
        inner = inner if isinstance(inner, Mapping) else {}
        kind = _kind(inner, given.get(name))
        text = ""
        if name in given:
            value = given[name]
            text = value if kind == "string" and isinstance(value, str) else canonical_json(value)
        is_required = name in required
        note = _note(inner, kind, is_required)
        fields.append(Field(name, kind, text, is_required, name in given, note))
    return tuple(fields)


def filled(fields: Sequence[Field], texts: Sequence[str]) -> str:
    """JSON text of the form's fields with these texts in their boxes.

    A box that is empty gives nothing, except a text that is required or was given as empty.

    Raises:
        WrongArguments: a box holds no value of its kind.
    """
    out: dict[str, JsonValue] = {}
    for field, text in zip(fields, texts, strict=True):
        if field.kind == "string":
            if text or field.is_required or (field.is_given and not field.text):
                out[field.name] = text
        elif text.strip():
            out[field.name] = _value(field, text.strip())
    return canonical_json(out)


def checked(schema: Mapping[str, JsonValue] | None, text: str) -> str:
    """Canonical text of arguments that fit the tool's schema; without one, of any JSON object.

    Raises:
        WrongArguments: no JSON object, or one that the tool would refuse.
    """
    from capuchin_yaml.policy.canonical import InvalidArguments, canonical_arguments

    try:
        return canonical_arguments(schema or {"type": "object"}, _object(text))
    except InvalidArguments as error:
        raise WrongArguments(str(error)) from error


def laid_out(arguments: str) -> str:
    """The arguments over several lines, for an editor; text that is no JSON comes back as it is."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    except ValueError:
        return arguments


def differences(before: str, after: str) -> tuple[Difference, ...]:
    """Every value that differs between two argument texts, in the order of the newer one."""
    old, new = _leaves(before), _leaves(after)
    paths = [*new, *(p for p in old if p not in new)]
    return tuple(Difference(p, old.get(p), new.get(p)) for p in paths if old.get(p) != new.get(p))


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(
            text or "{}", object_pairs_hook=_without_doubles, parse_constant=_no_number
        )
    except WrongArguments:
        raise
    except json.JSONDecodeError as error:
        raise WrongArguments(
            f"line {error.lineno}, column {error.colno}: no JSON: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise WrongArguments(f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise WrongArguments("the arguments must be a JSON object, in braces")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise WrongArguments(f"the key {key!r} is there twice")
        out[key] = value
    return out


def _no_number(text: str) -> Any:
    raise WrongArguments(f"{text} is no number of JSON")


def _kind(schema: Mapping[str, Any], value: Any) -> FieldKind:
    kind = schema.get("type")
    if isinstance(value, str) and not value.isprintable():
        return "json"  # a box of one line shows no breaks
    if kind not in _SIMPLE or (isinstance(value, str) != (kind == "string") and value is not None):
        return "json"
    found: FieldKind = _SIMPLE[_SIMPLE.index(kind)]
    return found


def _note(schema: Mapping[str, Any], kind: FieldKind, is_required: bool) -> str:
    what = {"string": "text", "json": "JSON"}.get(kind, kind)
    if isinstance(schema.get("enum"), list):
        what = "one of " + ", ".join(canonical_json(v) for v in schema["enum"])
    parts = [what, "required"] if is_required else [what]
    description = schema.get("description")
    return ", ".join(parts) + (f": {description}" if isinstance(description, str) else "")


def _value(field: Field, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_without_doubles, parse_constant=_no_number
        )
    except WrongArguments as error:
        raise WrongArguments(f"{field.name}: {error}") from error
    except (ValueError, RecursionError):
        raise WrongArguments(f"{field.name}: {text[:60]!r} is not {_WORDS[field.kind]}") from None
    return value


def _leaves(text: str) -> dict[str, str]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"": text}
    out: dict[str, str] = {}
    _collect(value, "", out)
    return out


def _collect(value: Any, path: str, out: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _collect(inner, f"{path}.{key}" if path else key, out)
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            _collect(inner, f"{path}[{i}]", out)
    else:
        out[path] = canonical_json(value)
