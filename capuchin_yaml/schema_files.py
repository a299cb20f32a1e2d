"""Where the public JSON Schemas and the pages of diagnostics are, in a wheel and in a checkout."""

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
    return _text(("schemas", file_name), ("schemas", file_name))


@cache
def diagnostics_page() -> str:
    """docs/reference/diagnostics.md, which `capuchin explain` prints from."""
    name = "diagnostics.md"
    return _text(("pages", name), ("docs", "reference", name))


def read_schema(name: str) -> dict[str, JsonValue]:
    """A fresh copy of the JSON Schema `name`, such as `agent.v1`.

    Raises:
        FileNotFoundError: no schema has this name.
    """
    schema: dict[str, JsonValue] = json.loads(schema_text(name))
    return schema


def _text(in_wheel: tuple[str, ...], in_checkout: tuple[str, ...]) -> str:
    # Why: a wheel carries the files inside the package; an editable install has only the
    # checkout's own folders beside it.
    packaged = files("capuchin_yaml").joinpath(*in_wheel)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    return Path(__file__).parent.parent.joinpath(*in_checkout).read_text(encoding="utf-8")
