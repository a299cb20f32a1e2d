"""What a condition may name, and of which type: built from the tools' input schemas.

CEL checks types against protobuf messages, so the schemas become one message type in a pool
of its own. Conditions are never run on that message: an argument that is absent would read as
0 there and pass a gate. They run on the plain values (`policy.rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capuchin_yaml.spec import JsonValue, ToolSpec, VariableSpec

_PACKAGE = "rule"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_DEPTH = 16
EACH = "[]"
"""Stands for every item of a list in a path."""

Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Scope:
    """What one rule may name: merged over every tool that it can be about."""

    args: Schema | None
    """JSON Schema of `args`; None when some tool takes arguments that it does not declare."""
    variables: Mapping[str, VariableSpec] | None
    injected: tuple[str, ...] | None
    """None where the agent is not known, as for the operator's rules."""
    tool_names: tuple[str, ...] = ()
    """Identities, for messages."""


@dataclass(frozen=True, slots=True)
class Struct:
    """One map that a condition can select from."""

    path: str
    """Such as `args.who`."""
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckTypes:
    """The checking environment of one scope."""

    env: Any
    structs: Mapping[str, Struct] = field(default_factory=dict)
    """By the message name that CEL prints."""


def scope_of(
    tools: Sequence[ToolSpec], variables: Mapping[str, VariableSpec], injected: tuple[str, ...]
) -> Scope:
    """Merge the tools' schemas: a name that differs in type between tools has no type."""
    names = tuple(sorted({tool.identity for tool in tools}))
    schemas = [plain_schema(tool.input_schema) for tool in tools]
    if not schemas or any(s.get("additionalProperties") is True for s in schemas):
        return Scope(None, variables, injected, names)
    properties: dict[str, JsonValue] = {}
    for schema in schemas:
        for name, value in schema.get("properties", {}).items():
            if name not in properties:
                properties[name] = value
            elif _shape(properties[name]) != _shape(value):
                properties[name] = {}
    always = [name for name in properties if all(_always_there(schema, name) for schema in schemas)]
    return Scope({"properties": properties, "required": always}, variables, injected, names)


def optional_paths(schema: Schema, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Paths under `prefix` that a call may leave out."""
    for name, inner in schema.get("properties", {}).items():
        path = (*prefix, name)
        if not _always_there(schema, name):
            yield path
        if isinstance(inner, Mapping) and len(path) < _MAX_DEPTH:
            yield from optional_paths(inner, path)
            if isinstance(inner.get("items"), Mapping):
                yield from optional_paths(inner["items"], (*path, EACH))


def numeric_names(schema: Schema) -> dict[str, str]:
    """Arguments with a total, and whether it is an `integer` or a `number`."""
    found: dict[str, str] = {}
    for name, inner in schema.get("properties", {}).items():
        kind = inner.get("type") if isinstance(inner, Mapping) else None
        if kind in ("integer", "number"):
            found[name] = str(kind)
    return found


def plain_schema(schema: JsonValue, root: Schema | None = None, depth: int = 0) -> dict[str, Any]:
    """The schema with references put in place, cut off where it nests too deep."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return {}
    root = schema if root is None else root
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: JsonValue = root
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        return plain_schema(target, root, depth + 1)
    plain = {k: v for k, v in schema.items() if k not in ("$defs", "properties", "items")}
    if isinstance(schema.get("properties"), Mapping):
        plain["properties"] = {
            str(name): plain_schema(inner, root, depth + 1)
            for name, inner in schema["properties"].items()
        }
    if "items" in schema:
        plain["items"] = plain_schema(schema["items"], root, depth + 1)
    return plain


def check_types(scope: Scope) -> CheckTypes:
    """The environment that type-checks conditions of this scope."""
    from cel_expr_python import cel
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        descriptor_pool,
        duration_pb2,
        empty_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    builder = _Messages(descriptor_pb2)
    if scope.args is not None:
        builder.add("Args", "args", scope.args)
        totals = {name: {"type": kind} for name, kind in numeric_names(scope.args).items()}
        builder.add("Totals", "conversation.total", {"properties": totals})
    variables = {name: {"type": spec.type} for name, spec in (scope.variables or {}).items()}
    builder.add("Variables", "variables", {"properties": variables})
    injected: dict[str, Any] = {name: {} for name in scope.injected or ()}
    builder.add("Injected", "injected", {"properties": injected})
    total: dict[str, Any] = {"message": "Totals"} if scope.args is not None else {}
    builder.add(
        "Conversation",
        "conversation",
        {
            "properties": {
                "calls": {"type": "integer"},
                "total": total,
                "untrusted": {"type": "boolean"},
            }
        },
    )
    pool = descriptor_pool.DescriptorPool()
    for module in (struct_pb2, any_pb2, duration_pb2, timestamp_pb2, wrappers_pb2, empty_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(builder.file.SerializeToString())
    dyn = cel.Type.DYN
    types = {
        "args": dyn if scope.args is None else cel.Type(f"{_PACKAGE}.Args"),
        "variables": dyn if scope.variables is None else cel.Type(f"{_PACKAGE}.Variables"),
        "injected": dyn if scope.injected is None else cel.Type(f"{_PACKAGE}.Injected"),
        "conversation": cel.Type(f"{_PACKAGE}.Conversation"),
        "tool": cel.Type.STRING,
        "alias": cel.Type.STRING,
        "now": cel.Type.TIMESTAMP,
    }
    return CheckTypes(cel.NewEnv(pool, variables=types), builder.structs)


def _shape(schema: JsonValue) -> JsonValue:
    if not isinstance(schema, Mapping):
        return None
    properties = schema.get("properties")
    inner = (
        {name: _shape(value) for name, value in properties.items()}
        if isinstance(properties, Mapping)
        else None
    )
    return [schema.get("type"), inner, _shape(schema.get("items"))]


def _always_there(schema: Schema, name: str) -> bool:
    """Whether a call has the argument: it must be given, or its default is filled in."""
    if name in schema.get("required", ()):
        return True
    inner = schema.get("properties", {}).get(name)
    return isinstance(inner, Mapping) and "default" in inner


class _Messages:
    """JSON schemas as protobuf message types of one file."""

    def __init__(self, descriptor_pb2: Any) -> None:
        self._kinds = descriptor_pb2.FieldDescriptorProto
        self.file = descriptor_pb2.FileDescriptorProto(
            name="rule.proto",
            package=_PACKAGE,
            syntax="proto3",
            dependency=["google/protobuf/struct.proto"],
        )
        self.structs: dict[str, Struct] = {}

    def add(self, name: str, path: str, schema: Schema) -> None:
        """Add a top-level message."""
        self._fill(self.file.message_type.add(name=name), f"{_PACKAGE}.{name}", path, schema)

    def _fill(self, message: Any, full_name: str, path: str, schema: Schema) -> None:
        properties = schema.get("properties", {})
        self.structs[full_name] = Struct(path, tuple(properties))
        for i, (name, inner) in enumerate(properties.items(), 1):
            # A name that is no identifier cannot be written as args.x anyway.
            if not _IDENTIFIER.fullmatch(name):
                continue
            inner = inner if isinstance(inner, Mapping) else {}
            added = message.field.add(name=name, number=i, label=self._kinds.LABEL_OPTIONAL)
            if inner.get("type") == "array":
                added.label = self._kinds.LABEL_REPEATED
                items = inner.get("items")
                inner = items if isinstance(items, Mapping) else {}
            self._set_type(message, added, f"{full_name}.N{i}", f"{path}.{name}", inner)

    def _set_type(self, message: Any, added: Any, nested: str, path: str, schema: Schema) -> None:
        scalar = {
            "integer": self._kinds.TYPE_INT64,
            "number": self._kinds.TYPE_DOUBLE,
            "string": self._kinds.TYPE_STRING,
            "boolean": self._kinds.TYPE_BOOL,
        }
        kind = schema.get("type")
        if "message" in schema:
            added.type, added.type_name = (
                self._kinds.TYPE_MESSAGE,
                f".{_PACKAGE}.{schema['message']}",
            )
        elif isinstance(kind, str) and kind in scalar:
            added.type = scalar[kind]
        elif kind == "object" and schema.get("properties"):
            added.type, added.type_name = self._kinds.TYPE_MESSAGE, f".{nested}"
            name = nested.rpartition(".")[2]
            self._fill(message.nested_type.add(name=name), nested, path, schema)
        else:
            # Unions and free maps: CEL takes this type as dynamic.
            added.type, added.type_name = (
                self._kinds.TYPE_MESSAGE,
                ".google.protobuf.Value",
            )
