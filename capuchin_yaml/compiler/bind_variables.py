"""`variables` and `injected` of a checked file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from capuchin_yaml.compiler.certain_values import certain_value
from capuchin_yaml.compiler.document import Node, Path
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.wording import found, quoted, shown
from capuchin_yaml.spec import JsonValue, VariableSpec, VariableType

# Words of the template language: a variable of such a name could never be written in a prompt.
RESERVED_NAMES = frozenset(
    {
        *("and", "else", "false", "for", "if", "in", "is", "loop", "namespace", "none", "not"),
        *("None", "True", "False", "or", "range", "self", "true", "set", "with", "dict"),
    }
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TYPES: Mapping[str, VariableType] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_WORDS: Mapping[VariableType, str] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def bind_variables(reading: Reading) -> dict[str, VariableSpec]:
    """The variables in the order of the file."""
    block = reading.document.node(("variables",))
    variables: dict[str, VariableSpec] = {}
    for name, entry in (block.entries if block is not None else {}).items():
        if name in RESERVED_NAMES:
            reading.error(
                "reserved-name",
                f"{shown(name)} is a word of the template language and cannot be a variable",
                entry.key,
                f"rename it: {name}_",
            )
        elif entry.node.kind == "map" and _NAME.fullmatch(name):
            variables[name] = _variable(reading, ("variables", name), entry.node)
    return variables


def bind_injected(reading: Reading) -> tuple[str, ...]:
    """The names of injected values in the order of the file."""
    return reading.texts(("injected",))


def fits(kind: VariableType, value: JsonValue) -> bool:
    """Whether a JSON value is one of this type; true and false are no numbers."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)


def type_words(kind: VariableType) -> str:
    """The type as a person says it, for the end of a sentence."""
    return _WORDS[kind]


def _variable(reading: Reading, path: Path, node: Node) -> VariableSpec:
    kind = _TYPES.get(reading.text((*path, "type")) or "string")
    default = reading.node((*path, "default"))
    required = reading.node((*path, "required"))
    choices = reading.node((*path, "enum"))
    if kind is not None:
        for value in (default, *(choices.items if choices is not None else ())):
            if value is not None and not fits(kind, value.value):
                what = "the default" if value is default else "an enum value"
                _wrong_type(reading, f"{what} of {path[-1]}", kind, value)
    if default is not None and choices is not None:
        values = [item.value for item in choices.items]
        if default.value not in values:
            reading.error(
                "variable-type",
                f"the default of {path[-1]} is not one of its enum",
                default.span,
                f"use one of {', '.join(shown(item.text) for item in choices.items[:10])}",
            )
    if default is not None and required is not None and required.value is True:
        reading.error(
            "needless-key",
            f"the variable {path[-1]} is required, so its default is never used",
            node.entries["default"].key,
            "remove the default, or required: true",
        )
    has_default = default is not None
    return VariableSpec(
        type=kind or "string",
        default=default.value if default is not None else None,
        required=not has_default and (required is None or bool(required.value)),
        enum=tuple(item.value for item in choices.items) if choices is not None else (),
        description=reading.text((*path, "description")) or "",
    )


def _wrong_type(reading: Reading, what: str, kind: VariableType, value: Node) -> None:
    help_ = "write one text, number, or true or false"
    fix = certain_value((), value, {"type": kind})
    if kind == "string":
        help_ = f"put it in quotes: {quoted(value.text)}"
    elif kind == "boolean" and value.text.casefold() in ("yes", "on", "no", "off"):
        help_ = "true" if value.text.casefold() in ("yes", "on") else "false"
    elif isinstance(value.value, str):
        help_ = "write type: string"
    elif isinstance(value.value, bool):
        help_ = "write type: boolean"
    elif isinstance(value.value, int | float):
        help_ = "write type: number"
    reading.error(
        "variable-type",
        f"{what} must be {type_words(kind)}, found {found(value)}",
        value.span,
        help_,
        fix=fix,
    )
