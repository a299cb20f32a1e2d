"""Claude Code subagents: Markdown with YAML in front of the prompt.

Source: https://code.claude.com/docs/en/sub-agents (checked 2026-11-30).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from capuchin_yaml.compiler.convert.draft import (
    LONGEST_DESCRIPTION,
    Draft,
    literal,
    slug,
)
from capuchin_yaml.compiler.convert.models import set_model, set_steps
from capuchin_yaml.compiler.convert.source import Source
from capuchin_yaml.compiler.document import Document, Path, read_document
from capuchin_yaml.compiler.wording import shown

_ALIASES = ("sonnet", "opus", "haiku", "fable", "default")
_KEYS: Mapping[str, str] = {
    "skills": "put what they say into the prompt",
    "hooks": "a file starts no program",
    "memory": "a conversation is all that an agent remembers",
    "background": "every conversation goes on by itself",
    "isolation": "tools decide where they work",
    "color": "the terminal UI chooses its colours",
    "effort": "model.thinking is a number of tokens",
    "initialPrompt": "a conversation begins with what a person says",
    "disabled": "capuchin pause AGENT begins no new turn",
}
_MODES: Mapping[str, str] = {
    "default": "every call asks now",
    "plan": "every call asks now; no tool that writes ran at all before",
    "dontAsk": "every call asks now; calls that would have asked were refused before",
    "acceptEdits": "every call asks now, edits too",
    "auto": "every call asks now",
    "bypassPermissions": "every call asks now; nothing asked before",
}
_FENCE = re.compile(r"\A(?:---)[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*):[ \t]*(.*?)[ \t]*$")


def split(text: str, path: str) -> tuple[Document, str] | None:
    """The keys in front, at their own lines of the file, and the prompt; None without a front."""
    match = _FENCE.match(text.removeprefix("\ufeff"))
    if match is None:
        return None
    front, prompt = match.group(1), text.removeprefix("\ufeff")[match.end() :]
    # The fence's own line stays as an empty one, so that lines count from the file's first.
    document = read_document(path, f"\n{front}".encode("utf-8", "surrogatepass"))
    if document.root is None or document.root.kind != "map":
        document = read_document(path, f"\n{_quoted(front)}".encode("utf-8", "surrogatepass"))
    return document, prompt.strip("\r\n").replace("\r\n", "\n")


def _quoted(front: str) -> str:
    """The front with each one-line text in quotes.

    Why: the descriptions that Claude Code writes hold `: ` without quotes, which it reads and
    YAML does not.
    """
    lines: list[str] = []
    for line in front.splitlines():
        match = _LINE.match(line)
        is_text = match is not None and match.group(2)[:1] not in ("", "[", "{", "|", ">", '"', "'")
        lines.append(f"{match[1]}: {_on_one_line(match[2])}" if match and is_text else line)
    return "\n".join(lines) + "\n"


def _on_one_line(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def convert(source: Source, draft: Draft, stem: str, prompt: str) -> None:
    """Draw up the agent of the file."""
    name = source.text("name") or stem
    draft.name = slug(name) or slug(stem)
    draft.prompt = literal(f"{prompt}\n" if prompt.strip() else "")
    _description(source, draft)
    _model(source, draft)
    set_steps(source, draft, ("maxTurns",))
    _tools(source, draft)
    mode = source.node("permissionMode")
    if mode is not None:
        source.lose(("permissionMode",), _MODES.get(mode.text, "every call asks now"))
    if source.node("skills") is not None:
        source.fill_in(("skills",), "prompt", "what the model must know of these skills")
    source.lose_all((), _KEYS)


def _description(source: Source, draft: Draft) -> None:
    text = source.text("description")
    if text is not None and len(text) > LONGEST_DESCRIPTION:
        source.lose(("description",), f"cut after {LONGEST_DESCRIPTION} characters")
        text = text[:LONGEST_DESCRIPTION]
    draft.description = text


def _model(source: Source, draft: Draft) -> None:
    model = source.text("model")
    if model is None:
        return
    if model == "inherit":
        source.lose(("model",), "there is no model to inherit: CAPUCHIN_MODEL decides")
    elif model in _ALIASES:
        source.lose(("model",), f"{model} is no name of one model")
        source.fill_in(("model",), "model", f"anthropic: and the full name of the {model} you mean")
    else:
        set_model(source, draft, ("model",), model, separator=":")


def _tools(source: Source, draft: Draft) -> None:
    """Without `tools` a subagent has every tool of the program, so tools are lost either way."""
    node = source.node("tools")
    draft.had_tools = node is None or bool(node.items or node.text.strip())
    if node is None:
        source.fill_in((), "tools", "it had every tool of Claude Code; name what it needs")
    else:
        _lose_each(source, ("tools",), "no package here is known to be the same as", "tools")
    _lose_each(source, ("disallowedTools",), "it has no tools of Claude Code, so not", None)
    servers: Path = ("mcpServers",)
    for i in range(source.count(*servers)):
        source.lose((*servers, i), "MCP servers are not carried over")
        source.fill_in((*servers, i), "tools", "a package with tools in the place of this server")
        draft.had_tools = True
    if source.node(*servers) is not None and not source.count(*servers):
        source.lose(servers, "MCP servers are not carried over")
        draft.had_tools = True


def _lose_each(source: Source, path: Path, why: str, key: str | None) -> None:
    node = source.node(*path)
    if node is None:
        return
    names = [item.text for item in node.items] or re.split(r",\s*(?![^(]*\))", node.text)
    said = ", ".join(shown(name.strip()) for name in names if name.strip())
    if said:
        source.lose(path, f"{why} {said}")
    else:
        source.take(*path)
    if said and key is not None:
        source.fill_in(path, key, f"packages with tools in the place of {said}")
