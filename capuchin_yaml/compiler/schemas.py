"""Our schemas, and the two validators of a file: a quick one, and one that tells what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from capuchin_yaml.compiler.unknown_keys import Schema
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import JsonValue

_INLINED: dict[str, Schema] = {}
_COMPILED: dict[str, Any] = {}


@cache
def agent_schema() -> Schema:
    """The agent schema; shared, so never to be changed."""
    return read_schema("agent.v1")


def quick_validator(subject: str, schema: Schema) -> Any:
    """Say quickly whether one of our own schemas has anything against a value, and not what.

    `subject` names the schema; it is compiled once.
    """
    import jsonschema_rs

    validator = _COMPILED.get(subject)
    if validator is None:
        validator = jsonschema_rs.validator_for(dict(inlined(subject, schema)))
        _COMPILED[subject] = validator
    return validator


@cache
def careful_validator() -> Any:
    """The class of jsonschema that finds every error, with the patterns of the schema's dialect."""
    import jsonschema
    from jsonschema import validators

    def pattern(_validator: Any, source: str, instance: JsonValue, _schema: Any) -> Iterator[Any]:
        # Why: in Python `$` also matches before a last newline; in the schema's own dialect,
        # which editors use, it does not.
        if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", source), instance):
            yield jsonschema.ValidationError(f"does not match {source}")

    extended: Any = validators.extend(  # type: ignore[no-untyped-call]  # as jsonschema ships it
        jsonschema.Draft202012Validator, {"pattern": pattern}
    )
    return extended


def inlined(subject: str, schema: Schema) -> Schema:
    """One of our own schemas with each definition where it is used; `subject` names it.

    Why: looking references up takes most of the time of a check. Ours are not recursive, and
    beside a reference only say what the place is called.
    """
    if subject not in _INLINED:
        definitions = schema["$defs"]

        def laid_out(part: Any) -> Any:
            if isinstance(part, list):
                return [laid_out(value) for value in part]
            if not isinstance(part, Mapping):
                return part
            found = {k: laid_out(v) for k, v in part.items() if k not in ("$ref", "$defs")}
            reference = part.get("$ref")
            if reference is None:
                return found
            if reference.startswith("#/properties/"):
                return found  # a profile, which is laid over the file before it is checked
            return {**found, **laid_out(definitions[reference.removeprefix("#/$defs/")])}

        _INLINED[subject] = laid_out(schema)
    return _INLINED[subject]
