"""Where the public JSON Schemas are, in a wheel and in a checkout."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from capuchin_yaml.spec import JsonValue


@cache
def schema_text(name: str) -> str:
    """The text of `<name>.schema.json`, such as `agent.v1`.

    Raises:
        FileNotFoundError: no schema has this name.
    """
    file_name = f"{name}.schema.json"
    # Why: a wheel carries the schemas inside the package; an editable install has only the
    # checkout's own folder beside it.
    packaged = files("capuchin_yaml").joinpath("schemas", file_name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    return (Path(__file__).parent.parent / "schemas" / file_name).read_text(encoding="utf-8")


def read_schema(name: str) -> dict[str, JsonValue]:
    """A fresh copy of the JSON Schema `name`, such as `agent.v1`.

    Raises:
        FileNotFoundError: no schema has this name.
    """
    schema: dict[str, JsonValue] = json.loads(schema_text(name))
    return schema
