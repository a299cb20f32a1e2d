"""From type hints to the JSON Schema a model sees, and from its JSON back to typed values.

Loaded when the first tool is declared: it imports pydantic.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from capuchin_yaml.errors import InvalidTool, ToolFailed
from capuchin_yaml.spec import JsonValue, canonical_json
from capuchin_yaml.tools.context import ToolContext

# Source: https://docs.claude.com/en/api/messages (the property keys of a tool's input schema)
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_KEYWORD = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only; remove the '/'",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values; declare a list parameter",
    inspect.Parameter.VAR_KEYWORD: "takes any names; declare each parameter, or one dict",
}
# The keywords whose value is a schema, a list of schemas, or a map from names to schemas.
_SCHEMA_KEYS = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
)
_LIST_KEYS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAP_KEYS = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})


class _Schema(GenerateJsonSchema):
    """Refuses what pydantic only warns of: a default that JSON cannot hold would be lost."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise InvalidTool(detail)


class Parameters:
    """What a tool takes: `schema` for the model, `bind` from the model's JSON to typed values."""

    def __init__(self, function: Callable[..., Any], descriptions: Mapping[str, str]) -> None:
        where = f"tool function {function.__qualname__!r}"
        taken, self._context_name = _taken(function, where)
        self._adapter: TypeAdapter[dict[str, object]] = _adapter(function, taken, where)
        try:
            schema = self._adapter.json_schema(schema_generator=_Schema)
            self.schema = clean_schema(schema)
            canonical_json(self.schema)
        except (InvalidTool, PydanticUserError, ValueError, TypeError) as error:
            raise InvalidTool(f"{where}: {_first_line(error)}") from error
        properties = self.schema["properties"]
        self._check_defaults(properties, where)
        for name, property_schema in properties.items():
            if not _PROPERTY.fullmatch(name):
                raise InvalidTool(
                    f"{where}: parameter {name!r} cannot be sent to a model; "
                    "use at most 64 of a-z, A-Z, 0-9, '_', '.' and '-'"
                )
            if descriptions.get(name):
                property_schema.setdefault("description", descriptions[name])

    def _check_defaults(self, properties: Mapping[str, Any], where: str) -> None:
        defaults = {name: p["default"] for name, p in properties.items() if "default" in p}
        try:
            self._adapter.validate_json(json.dumps(defaults))
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_context=False):
                if not problem["type"].startswith("missing"):
                    name = problem["loc"][0]
                    raise InvalidTool(
                        f"{where}: the default {defaults.get(str(name))!r} of parameter {name!r} "
                        f"does not fit its type hint: {problem['msg']}"
                    ) from error

    def bind(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> dict[str, object]:
        """Return the keyword arguments of the function, converted to their types.

        Raises:
            ToolFailed: the arguments do not fit; the tool was not entered.
        """
        try:
            # Why: in its JSON mode pydantic takes a text for a date also where the type is strict.
            values = self._adapter.validate_json(json.dumps(dict(arguments)))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}"
                for e in error.errors(include_url=False, include_context=False)
            ]
            raise ToolFailed(f"the arguments do not fit: {'; '.join(problems)}") from error
        except (ValueError, TypeError) as error:
            raise ToolFailed(f"the arguments do not fit: {error}") from error
        if self._context_name is not None:
            values[self._context_name] = context
        return values


def schema_of(declared: type | Mapping[str, JsonValue], where: str) -> dict[str, JsonValue]:
    """Return the JSON Schema of a package's config: as given, or of a type.

    A type's schema refuses keys that it does not declare, unless it says otherwise.

    Raises:
        InvalidTool: it is no schema of an object.
    """
    try:
        if isinstance(declared, Mapping):
            schema: dict[str, JsonValue] = json.loads(canonical_json(dict(declared)))
        else:
            schema = clean_schema(TypeAdapter(declared).json_schema(schema_generator=_Schema))
            schema.setdefault("additionalProperties", False)
    except (InvalidTool, PydanticUserError, ValueError, TypeError) as error:
        raise InvalidTool(f"{where}: {_first_line(error)}") from error
    if schema.get("type") != "object":
        raise InvalidTool(f"{where}: the config must be an object, so write 'type': 'object'")
    return schema


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, which only repeat names, and with sets in a fixed order."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in _SCHEMA_KEYS and isinstance(value, Mapping):
            out[key] = clean_schema(value)
        elif key in _LIST_KEYS and isinstance(value, Sequence):
            out[key] = [clean_schema(v) if isinstance(v, Mapping) else v for v in value]
        elif key in _MAP_KEYS and isinstance(value, Mapping):
            out[key] = {
                name: clean_schema(v) if isinstance(v, Mapping) else v for name, v in value.items()
            }
        else:
            out[key] = value
    if out.get("uniqueItems") and isinstance(out.get("default"), list):
        # Why: a set's order differs between processes, and the schema is part of a hash.
        out["default"] = sorted(out["default"], key=canonical_json)
    return out


def _taken(function: Callable[..., Any], where: str) -> tuple[list[inspect.Parameter], str | None]:
    """Return what the model gives, each with its resolved hint, and the context's name."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise InvalidTool(
            f"{where}: a type hint cannot be resolved ({type(error).__name__}: {error}); "
            "define its types at the top of the module, before the function"
        ) from error
    taken: list[inspect.Parameter] = []
    contexts: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in _NOT_KEYWORD:
            raise InvalidTool(f"{where}: parameter {name!r} {_NOT_KEYWORD[parameter.kind]}")
        if name not in hints:
            raise InvalidTool(
                f"{where}: parameter {name!r} has no type hint; write one, such as '{name}: str'"
            )
        hint = hints[name]
        if hint is ToolContext:
            contexts.append(name)
        elif _mentions_context(hint):
            raise InvalidTool(
                f"{where}: write the context's parameter as '{name}: ToolContext', nothing else"
            )
        else:
            taken.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))
    if len(contexts) > 1:
        raise InvalidTool(f"{where}: keep one of the ToolContext parameters {contexts}")
    return taken, contexts[0] if contexts else None


def _mentions_context(hint: object) -> bool:
    return hint is ToolContext or any(_mentions_context(arg) for arg in typing.get_args(hint))


def _adapter(
    function: Callable[..., Any], taken: Sequence[inspect.Parameter], where: str
) -> TypeAdapter[dict[str, object]]:
    """Return pydantic's view of a function with just the given parameters."""

    def collect(**values: object) -> dict[str, object]:
        return values

    # Why: pydantic reads a function's signature and hints; through this one it checks the
    # model's arguments without running the tool, whatever the parameters are called.
    collect.__name__ = collect.__qualname__ = function.__name__
    collect.__module__ = function.__module__
    collect.__annotations__ = {p.name: p.annotation for p in taken}
    vars(collect)["__signature__"] = inspect.Signature(taken)
    try:
        return TypeAdapter(cast(Any, collect))  # a function is a type to pydantic only
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError, ValueError) as error:
        raise InvalidTool(
            f"{where}: pydantic cannot read its type hints: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
