"""Schema and values in the words of the file: what was expected, what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from capuchin_yaml.compiler.document import Node
from capuchin_yaml.compiler.secret_text import looks_secret
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "nothing",
}


def shown(text: str) -> str:
    """A short form of foreign text in quotes, safe for a terminal and without any secret."""
    if looks_secret(text):
        # Why: what is said of a file is kept in logs and shown on pages.
        return "'***'"
    return repr(one_line(text, 60)) if text else "''"


def place_name(path: Sequence[str | int]) -> str:
    """A path as a person says it: `limits.max_steps`, `tools[0].use`; the top is `the agent`."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{step}" if name else step
    return one_line(name, 120) or "the agent"


def found(node: Node) -> str:
    """What stands in the file, for the end of a sentence."""
    if node.kind == "list":
        return "a list" if node.items else "an empty list"
    if node.kind == "map":
        return "a map" if node.entries else "an empty map"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return f"the word {node.text}"
    if isinstance(node.value, int | float):
        return f"the number {one_line(node.text, 40)}"
    return f"the text {shown(node.text)}" if node.text else "an empty text"


def expected(schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue]) -> str:
    """What a schema asks for, for the end of a sentence."""
    return either(_alternatives(schema, root)) or "something else"


def _alternatives(schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue]) -> list[str]:
    schema = resolved(schema, root)
    if "anyOf" in schema:
        return [word for branch in schema["anyOf"] for word in _alternatives(branch, root)]
    if "enum" in schema:
        return [str(value) for value in schema["enum"]]
    types = schema.get("type", [])
    names = [types] if isinstance(types, str) else list(types)
    if "pattern" in schema and "examples" in schema:
        title = str(schema.get("title", "value")).casefold()
        article = "an" if title[0] in "aeiou" else "a"
        return [f"{article} {title} such as {schema['examples'][0]}"]
    return [_TYPES[name] for name in names]


def resolved(
    schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue]
) -> Mapping[str, JsonValue]:
    """The schema itself, or the definition it refers to."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        definition: Mapping[str, JsonValue] = root["$defs"][reference.removeprefix("#/$defs/")]
        return definition
    return schema


def either(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`, each word once."""
    unique = list(dict.fromkeys(words))
    if len(unique) < 2:
        return "".join(unique)
    return f"{', '.join(unique[:-1])} or {unique[-1]}"


def quoted(text: str) -> str:
    """A text as it is written in double quotes in YAML."""
    return json.dumps(one_line(text, 80), ensure_ascii=False)
