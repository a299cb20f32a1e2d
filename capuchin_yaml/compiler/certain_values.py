"""What a refused value certainly has to be: written into the file by `validate --fix`.

A value comes out only where no two readings are possible. Nothing here lets more run without
asking: the words `auto` and `allow` are typed by a person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal

from capuchin_yaml.compiler.document import Node, Path, plain_value
from capuchin_yaml.compiler.nearest import certain
from capuchin_yaml.compiler.words import our_value
from capuchin_yaml.money import parse_amount
from capuchin_yaml.spec import JsonValue

_LOOSENING = frozenset({"auto", "allow"})
_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_SPELLED = re.compile(
    r"([1-9]\d{0,5}) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?)", re.IGNORECASE
)
_SCIENTIFIC = re.compile(r"[0-9]+(\.[0-9]+)?[eE][-+]?[0-9]{1,2}")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
# Why: a text with these inside brackets, or behind a comma, would become something else.
_ONE_ITEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*")


def certain_value(path: Path, node: Node, schema: Mapping[str, JsonValue]) -> str | None:
    """The text to write in the place of a refused value, or None when a person has to decide."""
    if node.kind != "scalar" or node.value is None or "\n" in node.text or not node.text:
        return None
    title = schema.get("title")
    if title == "duration":
        return _duration(node.text)
    if title == "amount":
        return _amount(node)
    if title == "Currency":
        return node.text.upper() if re.fullmatch("[A-Za-z]{3}", node.text) else None
    if title == "Agent name" and isinstance(node.value, str):
        folded = node.text.lower()
        return folded if re.fullmatch(str(schema["pattern"]), folded) else None
    if "enum" in schema:
        return _choice(path, node, [str(value) for value in schema["enum"]])
    return _other_type(node, schema)


def in_quotes(text: str) -> str:
    """One line of text as a quoted scalar that says exactly this."""
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)


def _duration(text: str) -> str | None:
    match = _SPELLED.fullmatch(text.strip())
    if match is None:
        return None
    count, unit = int(match.group(1)), match.group(2)[0].lower()
    return f"{count * 24}h" if unit == "d" else f"{count}{unit}"


def _amount(node: Node) -> str | None:
    text = node.text
    is_float = isinstance(node.value, float) and _NUMBER.fullmatch(text) is not None
    if not is_float and _SCIENTIFIC.fullmatch(text) is None:
        return None
    plain = f"{Decimal(text):f}"
    try:
        parse_amount(plain)
    except ValueError:
        return None
    return f'"{plain}"'


def _choice(path: Path, node: Node, choices: list[str]) -> str | None:
    if len(path) > 1 and path[0] == "variables" and path[-1] == "type":
        ours = our_value("type", node.text)
        if ours in choices:
            return ours
    meant = certain(node.text, choices)
    return meant if meant not in _LOOSENING else None


def _other_type(node: Node, schema: Mapping[str, JsonValue]) -> str | None:
    match schema.get("type", _only_text(schema)):
        case "string" if not isinstance(node.value, str):
            pattern = schema.get("pattern")
            fits = pattern is None or re.search(str(pattern), node.text)
            return in_quotes(node.text) if fits else None
        case "integer" | "number" as wanted if isinstance(node.value, str):
            value = plain_value(node.text) if _NUMBER.fullmatch(node.text) else None
            is_whole = isinstance(value, int)
            return node.text if value is not None and (is_whole or wanted == "number") else None
        case "boolean" if isinstance(node.value, str):
            return _WORDS.get(node.text.casefold())
        case "array" if isinstance(node.value, str) and _ONE_ITEM.fullmatch(node.text):
            return f"[{node.text}]" if isinstance(plain_value(node.text), str) else None
        case _:
            return None


def _only_text(schema: Mapping[str, JsonValue]) -> str | None:
    """`string` for a choice of which one branch takes any text."""
    branches = schema.get("anyOf", ())
    texts = [b for b in branches if b.get("type") == "string" and not {"enum", "pattern"} & set(b)]
    return "string" if len(texts) == 1 else None
