"""Templates of the program `llm`.

Source: https://llm.datasette.io/en/stable/templates.html and llm/templates.py
(checked 2026-11-30).
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
        *("name", "prompt", "system", "attachments", "attachment_types", "model", "defaults"),
        *("options", "extract", "extract_last", "schema_object", "fragments"),
        *("system_fragments", "tools", "functions"),
    }
)
_TOP: Mapping[str, str] = {
    "attachments": "a message is text",
    "attachment_types": "a message is text",
    "extract": "a reply is shown whole",
    "extract_last": "a reply is shown whole",
    "schema_object": "a reply is text",
    "fragments": "the prompt is in one place; put their text into it",
    "system_fragments": "the prompt is in one place; put their text into it",
    "functions": "a file holds no code; a tool package does",
}
_NAME = re.compile(r"\$(?:\$|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_INPUT = "input"


def convert(source: Source, draft: Draft, stem: str) -> None:
    """Draw up the agent of the file, or of a file that is one text, the prompt."""
    draft.name = slug(source.text("name") or "") or slug(stem)
    root = source.document.root
    if root is not None and root.kind == "scalar":
        draft.prompt = _template(source, draft, (), root.text)
        return
    system = _template(source, draft, ("system",), source.text("system") or "")
    before = _before_each(source, draft)
    draft.prompt = "\n\n".join(part for part in (system, before) if part)
    for name in source.keys("defaults"):
        if name not in draft.variables:
            source.lose(("defaults", name), "neither prompt nor system uses it")
    _model(source, draft)
    _tools(source, draft)
    for key in ("fragments", "system_fragments"):
        if source.node(key) is not None:
            source.fill_in((key,), "prompt", "add the text of these fragments")
    source.lose_all((), _TOP)


def _before_each(source: Source, draft: Draft) -> str:
    """What the old file put around every message, as a part of the prompt."""
    written = source.text("prompt") or ""
    text = _template(source, draft, ("prompt",), written)
    if text:
        source.lose(
            ("prompt",),
            "it went with every message; its text is a part of the prompt now",
        )
    return text


def _template(source: Source, draft: Draft, path: Path, text: str) -> str:
    """`$name` as Jinja2; `$input` is the message itself and leaves no trace."""
    pieces: list[str] = []
    at = 0
    for match in _NAME.finditer(text):
        pieces.append(literal(text[at : match.start()]))
        at = match.end()
        name = match.group(1) or match.group(2)
        if name is None:
            pieces.append("$")
        elif name == _INPUT:
            if path == ("system",) or (text[: match.start()].strip() and text[at:].strip()):
                source.fill_in(path, "prompt", "$input stood here; say it in other words")
        elif _declare(source, draft, name):
            pieces.append(f"{{{{ {name} }}}}")
        else:
            pieces.append(literal(match.group()))
            source.fill_in(path, "prompt", f"{shown(match.group())} is no name for a variable")
    return "".join([*pieces, literal(text[at:])]).strip(" ") if text else ""


def _declare(source: Source, draft: Draft, name: str) -> bool:
    from capuchin_yaml.compiler.bind_variables import RESERVED_NAMES

    if name in RESERVED_NAMES or not is_identifier(name):
        return False
    spec: dict[str, JsonValue] = {"type": "string"}
    default = source.text("defaults", name)
    if default is not None:
        spec["default"] = default
    draft.variables[name] = spec
    return True


def _model(source: Source, draft: Draft) -> None:
    model = source.text("model")
    if model is not None:
        set_model(source, draft, ("model",), model, separator="/")
    for key in ("max_tokens", "temperature"):
        set_number(source, draft, ("options", key), key)
    for key in source.keys("options"):
        if key not in draft.settings:
            source.lose(("options", key), "the provider's own default is used")
    settle_model(source, draft, {key: ("options", key) for key in draft.settings})


def _tools(source: Source, draft: Draft) -> None:
    for i in range(source.count("tools")):
        node = source.node("tools", i)
        name = shown(node.text) if node is not None else "a tool"
        source.lose(("tools", i), f"no package here is known to be the same as {name}")
        source.fill_in(("tools", i), "tools", f"a package with a tool in the place of {name}")
        draft.had_tools = True
    if source.node("functions") is not None:
        source.fill_in(("functions",), "tools", "a package with these functions as tools")
        draft.had_tools = True
