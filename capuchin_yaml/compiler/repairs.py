"""What to type instead of a value that the schema refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from capuchin_yaml.compiler.document import Node, Path
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.wording import quoted
from capuchin_yaml.compiler.words import our_value
from capuchin_yaml.spec import JsonValue

_EXAMPLES: Mapping[str, str] = {
    "apiVersion": "add apiVersion: capuchin/v1",
    "name": "add name: my-agent",
    "prompt": "add prompt: | and the text on the lines below it",
    "use": "add use: package.tool",
    "type": "add type: per_call",
    "then": "add then: ask",
    "file": "add file: prompts/agent.md.j2",
    "amount": 'add amount: "0.25"',
    "currency": "add currency: USD",
    "input": 'add input: "3.00"',
    "output": 'add output: "15.00"',
    "env": "add env: MY_API_KEY",
}
EMPTY_PROMPT = "write prompt: | and the text on the lines below it"
_MODEL_NAME = "add name: anthropic:claude-opus-4-8"
_REQUIRED = frozenset({"apiVersion", "name", "prompt", "use"})
_SECTIONS: Mapping[str, str] = {
    "tools": "tools: [package.tool]",
    "approval": "approval: all",
    "limits": "limits: {max_steps: 8}",
    "budget": 'budget: {max_usd: "2.00"}',
    "price": "price: {type: free}",
    "listing": "listing: {license: MIT}",
    "variables": "variables: {company: {type: string}}",
    "injected": "injected: [tenant]",
    "requires": 'requires: {capuchin: ">=0.1"}',
}
_YES = frozenset({"yes", "on", "y"})
_NO = frozenset({"no", "off", "n"})
_SPELLED_DURATION = re.compile(
    r"(\d{1,6})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)", re.IGNORECASE
)


def repair_for(
    path: Path, node: Node, schema: Mapping[str, JsonValue], *, missing: bool = False
) -> str | None:
    """A line to type, or None when nothing is certain enough to suggest."""
    key = path[-1] if path else ""
    if missing:
        return _MODEL_NAME if (path[0], key) == ("model", "name") else _EXAMPLES.get(str(key))
    title = schema.get("title")
    if len(schema.get("enum", ())) == 1:
        return f"write {key}: {schema['enum'][0]}"
    if title not in ("duration", "Model name") and _needs_quotes(node, schema):
        name = f"{key}: " if isinstance(key, str) and key else ""
        return f"put it in quotes: {name}{quoted(node.text)}"
    if title == "duration":
        return duration_repair(node.text)
    if title == "amount":
        return amount_repair(node.text, with_currency=path[0] != "budget")
    if "enum" in schema:
        return _enum_repair(str(key), node, schema)
    if title in ("Agent name", "Alias", "tool reference"):
        return _name_repair(title, node.text)
    if title == "Currency" and re.fullmatch(r"[A-Za-z]{3}", node.text):
        return f"currency: {node.text.upper()}"
    if title == "Currency" and node.text in _SIGNS:
        return f"currency: {_SIGNS[node.text]}"
    if title == "Model name":
        return "write provider:name, such as anthropic:claude-opus-4-8, or rehearsal"
    if len(path) == 2 and path[0] == "variables" and node.kind == "scalar":
        return _variable_repair(str(key), node)
    return _type_repair(key, node, schema)


def _name_repair(title: str, text: str) -> str | None:
    if title == "tool reference":
        return "write package.tool, such as billing.lookup_order"
    if title == "Alias":
        alias = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:64]
        return f"as: {alias}" if alias else None
    slug = re.sub(r"[^a-z0-9_-]+", "-", text.casefold()).strip("-_")[:63]
    return f"name: {slug}" if slug else None


def _variable_repair(name: str, node: Node) -> str:
    kinds = ("string", "integer", "number", "boolean")
    kind = node.text if node.text in kinds else our_value("type", node.text)
    if kind in kinds:
        return f"write {name}: {{type: {kind}}}"
    return f"write {name}: {{default: {quoted(node.text)}}}"


def duration_repair(text: str) -> str | None:
    """The same time as a duration of this format, if the text names one."""
    text = text.strip()
    if re.fullmatch(r"\d{1,6}", text):
        return f"write {text}s, {text}m or {text}h"
    match = _SPELLED_DURATION.fullmatch(text)
    if match is None:
        return "write hours, minutes, seconds: 1h30m, 5m, 30s"
    count, unit = int(match.group(1)), match.group(2)[0].lower()
    return f"write {count * 24}h" if unit == "d" else f"write {count}{unit}"


_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}


def amount_repair(text: str, *, with_currency: bool = True) -> str | None:
    """The same amount as a plain decimal, if the text names one."""
    text = text.strip()
    if text.casefold() in ("free", "none", "gratis"):
        return "price: {type: free}"
    sign = next((code for symbol, code in _SIGNS.items() if symbol in text), None)
    bare = re.sub(r"[$€£¥\s_]|[A-Za-z]{3}$", "", text)
    if re.fullmatch(r"\d+,\d{1,2}", bare):
        bare = bare.replace(",", ".")
    bare = bare.replace(",", "")
    try:
        number = Decimal(bare)
    except InvalidOperation:
        return 'write digits with a point: amount: "0.25"'
    if not number.is_finite() or number < 0 or abs(number.adjusted()) > 12:
        return 'write digits with a point: amount: "0.25"'
    plain = f"{number:f}"
    return f'write "{plain}"' + (f" and currency: {sign}" if sign and with_currency else "")


def _enum_repair(key: str, node: Node, schema: Mapping[str, JsonValue]) -> str | None:
    if node.kind != "scalar":
        return None
    ours = our_value(key, node.text)
    if ours is not None and ours in schema["enum"]:
        return f"write {key}: {ours}"
    meant = nearest(node.text, [str(value) for value in schema["enum"]])
    return f"did you mean {meant!r}?" if meant is not None else None


def _type_repair(key: str | int, node: Node, schema: Mapping[str, JsonValue]) -> str | None:
    wanted = schema.get("type", "")
    name = f"{key}: " if isinstance(key, str) and key else ""
    if key == "model" and node.kind == "scalar":
        return "write provider:name, such as anthropic:claude-opus-4-8, or rehearsal"
    if key == "api_key" and node.kind == "scalar":
        return "name a variable of the environment: api_key: {env: MY_API_KEY}"
    if key == "prompt" and node.kind == "scalar":
        return f"put it in quotes: prompt: {quoted(node.text)}"
    if node.kind == "scalar":
        number = r"\d{1,12}" if wanted == "integer" else r"\d{1,12}(\.\d+)?"
        if wanted in ("integer", "number") and re.fullmatch(number, node.text):
            return f"without quotes: {name}{node.text}"
        if wanted == "boolean" and node.text.casefold() in _YES | _NO:
            return f"{name}{'true' if node.text.casefold() in _YES else 'false'}"
        if wanted == "array" and isinstance(node.value, str):
            return f"write a list: {name}[{node.text[:60]}]" if "\n" not in node.text else None
    if key == "tools" and node.kind == "map":
        return "start each tool with '- ': tools: [package.tool]"
    is_section = wanted in ("object", "array") or key == "approval"
    return _SECTIONS.get(str(key)) if is_section else None


def empty_repair(path: Path) -> str:
    """What to do about a key with nothing behind it."""
    key = str(path[-1]) if path else ""
    if key in _REQUIRED or path == ("price", "type"):
        return _EXAMPLES[key].replace("add ", "write ", 1)
    section = _SECTIONS.get(key) if len(path) == 1 else None
    return f"remove the line, or write {section or 'a value'}"


def _needs_quotes(node: Node, schema: Mapping[str, JsonValue]) -> bool:
    is_text = isinstance(node.value, str)
    return schema.get("type") == "string" and node.kind == "scalar" and not is_text
