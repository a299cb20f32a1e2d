"""The schema for editors: the format's own, with what the installed tool packages know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capuchin_yaml.compiler.tool_source import SourcePackage, ToolSource
from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.policy.cel_types import plain_schema
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import JsonValue

_VARIABLE = {
    "title": "Variable of the environment",
    "description": "A variable of the worker's environment, granted with `capuchin trust`.",
    "type": "object",
    "required": ["env"],
    "additionalProperties": False,
    "properties": {"env": {"type": "string", "description": "Its name, such as `SALES_DB`."}},
}


def editor_schema(source: ToolSource) -> dict[str, JsonValue]:
    """The agent schema with tool names, config schemas and argument names of `source`.

    A package that cannot be imported keeps the names of its tools open.
    """
    schema = read_schema("agent.v1")
    definitions: dict[str, Any] = schema["$defs"]
    identities: list[str] = []
    descriptions: list[str] = []
    closed: list[str] = []
    configs: list[JsonValue] = []
    conditions: list[JsonValue] = []
    for entry in source.entry_names():
        try:
            package = source.package(entry)
        except PluginUnavailable:
            closed.append(entry)
            continue
        for name in sorted(package.tools):
            tool = package.tools[name]
            identities.append(f"{entry}.{name}")
            descriptions.append(f"{tool.effect}: {tool.description}")
            conditions.append(_condition(f"{entry}.{name}", tool.input_schema))
        configs.append(_config(entry, package, definitions))
    _name_tools(definitions["identity"], identities, descriptions, closed)
    definitions["toolEntry"]["allOf"] = configs
    definitions["rule"]["allOf"] = conditions
    _mark_descriptions(schema)
    return schema


def _mark_descriptions(schema: JsonValue) -> None:
    """Give every description also under the word for Markdown, or its code marks are shown."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            schema.setdefault("markdownDescription", schema["description"])
        for value in list(schema.values()):
            _mark_descriptions(value)
    elif isinstance(schema, list):
        for value in schema:
            _mark_descriptions(value)


def _name_tools(
    identity: dict[str, Any], names: list[str], descriptions: list[str], closed: list[str]
) -> None:
    installed = {
        "title": "Installed tools",
        "type": "string",
        "enum": names,
        # Both words are the editors' own; validators pass over them.
        "enumDescriptions": descriptions,
        "markdownEnumDescriptions": descriptions,
    }
    if not closed:
        if names:
            del identity["pattern"]
            identity |= {k: v for k, v in installed.items() if k != "title"}
        return
    unknown = {
        "title": "Tools of packages that cannot be imported now",
        "type": "string",
        "pattern": f"^({'|'.join(closed)})\\.[A-Za-z0-9_-]{{1,64}}$",
    }
    del identity["pattern"]
    identity["anyOf"] = [installed, unknown] if names else [unknown]


def _config(entry: str, package: SourcePackage, definitions: dict[str, Any]) -> JsonValue:
    """What `config` may hold where the entry's tools are used."""
    name = f"config-{entry}"
    own = package.config_schema
    if own is None:
        definitions[name] = {
            "title": f"Config of {entry}",
            "description": f"{package.distribution} takes no config.",
            "type": "object",
            "maxProperties": 0,
        }
    else:
        definitions[name] = {
            "title": f"Config of {entry}",
            "description": f"Settings of {package.distribution} {package.distribution_version}.",
            **_with_variables(_moved(own, f"#/$defs/{name}")),
        }
    used = {"type": "string", "pattern": f"^{entry}\\."}
    return {
        "if": {
            "required": ["use"],
            "properties": {"use": {"anyOf": [used, {"type": "array", "items": used}]}},
        },
        "then": {"properties": {"config": {"$ref": f"#/$defs/{name}"}}},
    }


def _moved(schema: JsonValue, place: str) -> Any:
    """A schema whose references hold from another place."""
    if isinstance(schema, Mapping):
        return {
            key: place + value[1:]
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _moved(value, place)
            for key, value in schema.items()
            if key not in ("$schema", "$id")
        }
    if isinstance(schema, list):
        return [_moved(value, place) for value in schema]
    return schema


def _with_variables(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `{env: NAME}` beside every value."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    return {
        **schema,
        "properties": {
            name: {
                **{k: inner[k] for k in ("title", "description") if k in inner},
                "anyOf": [inner, _VARIABLE],
            }
            if isinstance(inner, Mapping)
            else inner
            for name, inner in properties.items()
        },
    }


def _condition(identity: str, input_schema: Mapping[str, JsonValue]) -> JsonValue:
    """What a rule's condition may name where the rule is about this tool."""
    properties: Mapping[str, Any] = plain_schema(input_schema).get("properties", {})
    lines = [
        f"- `args.{name}` ({inner.get('type', 'any value')}): {inner.get('description', '')}"
        for name, inner in properties.items()
        if isinstance(inner, Mapping)
    ]
    text = "A condition in CEL. Arguments of " + "\n".join([f"`{identity}`:\n", *lines])
    return {
        "if": {"required": ["tool"], "properties": {"tool": {"enum": [identity]}}},
        "then": {
            "properties": {
                "when": {
                    "description": text,
                    "examples": [f"args.{name}" for name in properties],
                }
            }
        },
    }
