"""pydantic-ai agent specs, YAML or JSON.

Source: https://pydantic.dev/docs/ai/core-concepts/agent-spec/ and
pydantic_ai_slim/pydantic_ai/agent/spec.py (checked 2026-11-30).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from capuchin_yaml.compiler.convert.draft import Draft, is_identifier, literal, slug
from capuchin_yaml.compiler.convert.models import set_model, set_number, settle_model
from capuchin_yaml.compiler.convert.source import Source
from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.spec import JsonValue

KEYS = frozenset(
    {
        *("$schema", "model", "name", "description", "instructions", "deps_schema"),
        *("output_schema", "model_settings", "retries", "end_strategy", "tool_timeout"),
        *("metadata", "capabilities", "instrument"),
    }
)
_TOP: Mapping[str, str] = {
    "$schema": "an editor gets the schema of this format from `capuchin schema`",
    "output_schema": "a reply is text",
    "retries": "a tool is run again only when that is safe, and the model reads its mistakes",
    "end_strategy": "every call of a reply is carried out",
    "tool_timeout": "an entry of tools has a timeout of its own",
    "metadata": "notes of your own are keys that start with x-",
    "instrument": "it is the operator's to watch a worker",
}
_SIMPLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_TAG = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_TYPES = ("string", "integer", "number", "boolean")


def convert(source: Source, draft: Draft, stem: str) -> None:
    """Draw up the agent of the file."""
    name = source.text("name") or ""
    draft.name = slug(name) or slug(stem)
    if name and draft.name != name:
        source.fill_in(("name",), "name", f"{shown(name)} is {draft.name} now; it is a slug here")
    draft.description = source.text("description")
    if draft.description and "{{" in draft.description:
        source.lose(("description",), "a description is no template")
        draft.description = None
    parts = [_template(source, draft, path) for path in _instructions(source)]
    draft.prompt = "\n\n".join(part for part in parts if part)
    _unused_deps(source, draft)
    _model(source, draft)
    for i in range(source.count("capabilities")):
        _capability(source, draft, i)
    source.lose_all((), _TOP)


def _instructions(source: Source) -> list[Path]:
    node = source.node("instructions")
    if node is None:
        return []
    if node.kind == "list":
        return [("instructions", i) for i in range(len(node.items))]
    return [("instructions",)]


def _template(source: Source, draft: Draft, path: Path) -> str:
    """Handlebars as Jinja2: plain names become variables, everything else stays as text."""
    text = source.text(*path) or ""
    pieces: list[str] = []
    at = depth = 0
    for tag in _TAG.finditer(text):
        name = _SIMPLE.fullmatch(tag.group())
        variable = name.group(1) if name is not None else ""
        # In a block a name is one of the thing that the block is about, and `{{{` is no plain one.
        depth += tag.group().startswith(("{{#", "{{^")) - tag.group().startswith("{{/")
        is_plain = depth <= 0 and text[tag.start() - 1 : tag.start()] != "{"
        pieces.append(literal(text[at : tag.start()]))
        at = tag.end()
        if is_plain and is_identifier(variable) and _declare(source, draft, variable):
            pieces.append(f"{{{{ {variable} }}}}")
            continue
        pieces.append(literal(tag.group()))
        source.fill_in(
            path,
            "prompt",
            f"{shown(tag.group())} is plain text now: a variable is one text, number or yes or no",
        )
    return "".join([*pieces, literal(text[at:])])


def _declare(source: Source, draft: Draft, name: str) -> bool:
    """Declare a variable as the old file types it; False when it is no single value."""
    from capuchin_yaml.compiler.bind_variables import RESERVED_NAMES, fits

    if name in RESERVED_NAMES:
        return False
    if name in draft.variables:
        return True
    base: Path = ("deps_schema", "properties", name)
    kind = "string"
    written = source.node(*base, "type")
    if written is not None:
        if written.text not in _TYPES:
            return False
        kind = written.text
        source.take(*base, "type")
    spec: dict[str, JsonValue] = {"type": kind}
    default = source.node(*base, "default")
    if default is not None and fits(kind, default.value):  # type: ignore[arg-type]  # one of _TYPES
        source.take(*base, "default")
        spec["default"] = default.value
    description = source.text(*base, "description")
    if description:
        spec["description"] = description
    if source.node("deps_schema") is not None:
        source.take("deps_schema", "type")
        source.take("deps_schema", "required")
    draft.variables[name] = spec
    return True


def _unused_deps(source: Source, draft: Draft) -> None:
    for name in source.keys("deps_schema", "properties"):
        if name not in draft.variables:
            why = "the instructions do not use it; what tools alone see is `injected`"
            source.lose(("deps_schema", "properties", name), why)


def _model(source: Source, draft: Draft) -> None:
    model = source.text("model")
    if model is not None:
        set_model(source, draft, ("model",), model, separator=":")
    base: Path = ("model_settings",)
    for key in ("max_tokens", "temperature"):
        set_number(source, draft, (*base, key), key)
    timeout = source.node(*base, "timeout")
    if timeout is not None and isinstance(timeout.value, int | float) and timeout.value >= 1:
        source.take(*base, "timeout")
        draft.settings["timeout"] = f"{round(timeout.value)}s"
    for key in source.keys(*base):
        if key not in draft.settings and key not in ("max_tokens", "temperature"):
            source.lose((*base, key), "the provider's own default is used")
    settle_model(source, draft, {key: (*base, key) for key in draft.settings})


def _capability(source: Source, draft: Draft, i: int) -> None:
    path: Path = ("capabilities", i)
    node = source.node(*path)
    if node is None:
        return
    name = node.text if node.kind == "scalar" else next(iter(node.entries), "a capability")
    if name == "Thinking":
        source.lose(path, "model.thinking is a number of tokens")
        source.fill_in(path, "model.thinking", "how many tokens it may think with, or nothing")
    elif name in ("Instrumentation", "ReinjectSystemPrompt", "CompactRetryHistory"):
        source.lose(path, "the engine does what is needed of it by itself")
    else:
        source.lose(path, f"no package here is known to be the same as {shown(name)}")
        source.fill_in(path, "tools", f"a package with tools in the place of {shown(name)}")
        draft.had_tools = True
