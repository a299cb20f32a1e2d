"""docker-agent (cagent) YAML.

Source: https://github.com/docker/docker-agent agent-schema.json and docs/configuration
(checked 2026-11-30, at 0d76412a).
"""

from __future__ import annotations

from collections.abc import Mapping

from capuchin_yaml.compiler.convert.draft import Draft, has_model_key, literal, slug
from capuchin_yaml.compiler.convert.models import (
    set_fallback,
    set_model,
    set_number,
    set_steps,
    settle_model,
)
from capuchin_yaml.compiler.convert.source import Source
from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.wording import shown

MAIN = "root"
"""The agent that docker-agent starts when none is named."""

_TOP: Mapping[str, str] = {
    "providers": "an address of a provider is the operator's to grant; write model.base_url",
    "rag": "there is no search over documents; a tool package may have one",
    "mcps": "MCP servers are not carried over",
}
_AGENT: Mapping[str, str] = {
    "welcome_message": "the model speaks first only when it is asked",
    "code_mode_tools": "every tool is called by itself",
    "sub_agents": "an agent is no tool of another",
    "handoffs": "a conversation stays with its agent",
    "add_date": "the model is not told the date; the tool clock.now of capuchin-clock tells it",
    "add_environment_info": "the model is not told about the machine",
    "num_history_items": "the model reads the whole conversation",
    "commands": "there are no prompts with names",
    "structured_output": "a reply is text",
    "rag": "there is no search over documents; a tool package may have one",
    "add_description_parameter": "whoever approves sees the arguments themselves",
    "hooks": "a file starts no program",
    "skills": "a file reads nothing outside its folder",
    "add_prompt_files": "the prompt is in one place; put their text into it",
}
_FALLBACK: Mapping[str, str] = {
    "retries": "a model is asked again as often as its failure allows",
    "cooldown": "the first model is asked first every time",
}
_MODEL: Mapping[str, str] = {
    **dict.fromkeys(
        ("top_p", "frequency_penalty", "presence_penalty", "provider_opts"),
        "the provider's own default is used",
    ),
    "parallel_tool_calls": "limits.max_parallel_calls says how many calls run at once",
    "track_usage": "usage is always recorded",
    "routing": "there is one model for every message",
    "base_url": "an address is written anew as model.base_url, and the operator grants it",
    "token_key": "a variable is written anew as model.api_key, and the operator grants it",
}


def agents_in(source: Source) -> tuple[str, ...]:
    """The names of the agents that the file declares."""
    return source.keys("agents")


def convert(source: Source, draft: Draft, stem: str, wanted: str | None) -> None:
    """Draw up one agent of the file: `wanted`, else `root`, else the first."""
    names = agents_in(source)
    chosen = wanted or (MAIN if MAIN in names else names[0])
    base: Path = ("agents", chosen)
    draft.name = slug(stem if chosen == MAIN else chosen) or slug(stem)
    for other in names:
        if other != chosen:
            source.lose(("agents", other), f"another agent; convert it with --agent {other}")
    draft.description = source.text(*base, "description")
    draft.prompt = literal(source.text(*base, "instruction") or "")
    set_steps(source, draft, (*base, "max_iterations"))
    _model(source, draft, base)
    _tools(source, draft, base)
    _permissions(source, draft)
    _metadata(source, draft)
    if source.node(*base, "add_prompt_files") is not None:
        source.fill_in((*base, "add_prompt_files"), "prompt", "add the text of these files")
    source.lose_all(base, _AGENT)
    source.lose_all((), _TOP)
    source.take("version")


def _model(source: Source, draft: Draft, base: Path) -> None:
    where = (*base, "model")
    written = source.text(*where)
    if written is None:
        return
    if written == "auto":
        source.lose(where, "whatever model the worker has: CAPUCHIN_MODEL decides")
        return
    first, comma, _ = written.partition(",")
    named: Path = ("models", first)
    places: dict[str, Path] = {}
    if source.node(*named) is None:
        set_model(source, draft, where, first.strip(), separator="/")
    else:
        provider = source.text(*named, "provider") or ""
        name = source.text(*named, "model") or ""
        set_model(source, draft, (*named, "model"), f"{provider}/{name}", separator="/")
        places = _settings(source, draft, named)
    if comma:
        source.lose(where, f"several models take turns; only {shown(first)} is kept")
    for other in source.keys("models"):
        if ("models", other) != named:
            source.lose(("models", other), "the agent does not use it first")
    fallback: Path = (*base, "fallback")
    set_fallback(source, draft, (*fallback, "models"), separator="/")
    source.lose_all(fallback, _FALLBACK)
    settle_model(source, draft, {**places, "fallback": (*fallback, "models")})


def _settings(source: Source, draft: Draft, named: Path) -> dict[str, Path]:
    places: dict[str, Path] = {key: (*named, key) for key in ("max_tokens", "temperature")}
    places["thinking"] = (*named, "thinking_budget")
    for key in ("max_tokens", "temperature"):
        set_number(source, draft, places[key], key)
    node = source.node(*places["thinking"])
    if node is not None and isinstance(node.value, int) and not isinstance(node.value, bool):
        if node.value == 0:
            source.take(*places["thinking"])
        else:
            set_number(source, draft, places["thinking"], "thinking")
    elif node is not None:
        source.lose(places["thinking"], "model.thinking is a number of tokens")
    if source.node(*named, "base_url") is not None and has_model_key("base_url"):
        source.fill_in((*named, "base_url"), "model.base_url", "write the address, if it stays")
    source.lose_all(named, _MODEL)
    return places


def _tools(source: Source, draft: Draft, base: Path) -> None:
    where = (*base, "toolsets")
    for i in range(source.count(*where)):
        kind = source.node(*where, i, "type")
        ref = source.node(*where, i, "ref") or source.node(*where, i, "command")
        name = shown(kind.text) if kind is not None else "a toolset"
        more = f" ({shown(ref.text)})" if ref is not None and ref.kind == "scalar" else ""
        source.lose((*where, i), f"no package here is known to be the same as {name}{more}")
        source.fill_in((*where, i), "tools", f"a package with tools in the place of {name}{more}")
        draft.had_tools = True


def _permissions(source: Source, draft: Draft) -> None:
    where: Path = ("permissions",)
    for key, why, todo in (
        ("allow", "these ran without asking, and every call asks now", None),
        ("ask", "every call asks now", None),
        ("deny", "these were never run", "a rule with then: deny for each of these patterns"),
    ):
        for i in range(source.count(*where, key)):
            pattern = source.node(*where, key, i)
            said = f"{shown(pattern.text)}: " if pattern is not None else ""
            source.lose((*where, key, i), said + why)
            if todo is not None:
                source.fill_in((*where, key, i), "approval.rules", f"{said}{todo}")
        if source.node(*where, key) is not None:
            draft.had_tools = True


def _metadata(source: Source, draft: Draft) -> None:
    for key in ("author", "license"):
        text = source.text("metadata", key)
        if text:
            draft.listing[key] = text
    draft.version = source.text("metadata", "version")
    if draft.description is None:
        draft.description = source.text("metadata", "description")
    source.lose(("metadata", "readme"), "a listing has a homepage for what is longer")
