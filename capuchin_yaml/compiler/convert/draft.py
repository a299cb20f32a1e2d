"""The new agent file while it is drawn up, and its text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from capuchin_yaml.compiler.document import plain_value
from capuchin_yaml.compiler.schemas import agent_schema
from capuchin_yaml.spec import JsonValue

LONGEST_DESCRIPTION = 2000
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./ ()+-]*(?::[A-Za-z0-9_./+-]+)*")
# The last one too: what is put behind the text may begin with another.
_BRACES = re.compile(r"\{(?=[{%#]|\Z)")
# What a block scalar cannot hold, or an editor would show as something else.
_NOT_IN_BLOCK = re.compile(
    "[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]"
)


@dataclass(slots=True)
class Draft:
    """What the new file holds; a key without a value is left out."""

    name: str = ""
    prompt: str = ""
    """A template: braces that are meant literally are written so."""
    version: str | None = None
    description: str | None = None
    model: str | None = None
    settings: dict[str, JsonValue] = field(default_factory=dict)
    """The other keys of a model map."""
    variables: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    had_tools: bool = False
    """The old file had tools, so every call asks until the author says otherwise."""
    max_steps: int | None = None
    listing: dict[str, JsonValue] = field(default_factory=dict)


def agent_text(draft: Draft, origin: str) -> str:
    """The new file's text; `origin` says in a comment where it comes from."""
    lines = [
        f"# Converted from {origin}.",
        "apiVersion: capuchin/v1",
        f"name: {scalar(draft.name)}",
    ]
    for key in ("version", "description"):
        value = getattr(draft, key)
        if value:
            lines.append(f"{key}: {scalar(value)}")
    if draft.model is not None:
        model: JsonValue = draft.model
        if draft.settings:
            model = {"name": draft.model, **draft.settings}
        lines.append(f"model: {_flow(model)}")
    if draft.variables:
        lines.append("variables:")
        lines += [f"  {name}: {_flow(spec)}" for name, spec in draft.variables.items()]
    lines.append(f"prompt: {_block(draft.prompt)}")
    if draft.had_tools:
        lines += [
            "# The tools of the old file are not known here: name the ones to use.",
            "# tools: [package.tool]",
            "# Every call asks until you say which may run alone.",
            "approval: all",
        ]
    if draft.max_steps is not None:
        lines.append(f"limits: {{max_steps: {draft.max_steps}}}")
    if draft.listing:
        lines.append(f"listing: {_flow(draft.listing)}")
    return "\n".join(lines) + "\n"


def literal(text: str) -> str:
    """The template that gives exactly this text."""
    return _BRACES.sub("{{ '{' }}", text)


def slug(text: str) -> str:
    """A name for an agent from any words, empty when they hold no letter or digit."""
    words = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")
    return words[:63].strip("-")


def is_identifier(name: str) -> bool:
    """Whether a variable may have this name."""
    pattern = str(agent_schema()["$defs"]["identifier"]["pattern"])
    return re.search(pattern, name) is not None and "\n" not in name


def has_model_key(key: str) -> bool:
    """Whether the map of a model has this key in this version."""
    return key in agent_schema()["$defs"]["model"]["properties"]


def scalar(value: JsonValue) -> str:
    """One value on one line, in quotes where it would be read as something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = _PLAIN.fullmatch(value) and isinstance(plain_value(value), str)
    if is_plain and value == value.strip() and len(value) < 200:
        return value
    return _quoted(value)


def _quoted(text: str) -> str:
    # JSON's escapes are YAML's; what is beyond ASCII stays readable where it is harmless.
    shown = json.dumps(text, ensure_ascii=False)
    return re.sub(_NOT_IN_BLOCK, lambda m: json.dumps(m.group())[1:-1], shown).replace(
        "\x7f", "\\u007f"
    )


def _flow(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(inner) for inner in value) + "]"
    return scalar(value)


def _block(text: str) -> str:
    """A text as a `|` block, or in quotes where a block cannot hold it."""
    if _NOT_IN_BLOCK.search(text) or not text.strip():
        return _quoted(text)
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    chomp = "-" if ends == 0 else "" if ends == 1 else "+"
    indent = "2" if body[0] in " \t\n" else ""
    lines = [f"  {line}" if line else "" for line in body.split("\n")]
    return "\n".join([f"|{indent}{chomp}", *lines, *([""] * (ends - 1))])
