"""Names of models in other formats, in the form that agent.yaml has."""

from __future__ import annotations

import re

from capuchin_yaml.compiler.convert.draft import Draft, has_model_key
from capuchin_yaml.compiler.convert.source import Source
from capuchin_yaml.compiler.document import Path
from capuchin_yaml.compiler.schemas import agent_schema
from capuchin_yaml.compiler.wording import resolved

_FAMILIES = (
    (re.compile(r"claude-[\w.-]+"), "anthropic"),
    (re.compile(r"(gpt-|chatgpt-|o\d)[\w.-]*"), "openai"),
    (re.compile(r"gemini-[\w.-]+"), "google"),
)
_NO_PROVIDER = "no provider of this version is certainly the one that is meant"


def model_name(provider: str, name: str) -> str | None:
    """`provider:name`, or None when it would be no name of a model."""
    written = f"{provider}:{name}"
    pattern = str(agent_schema()["$defs"]["modelName"]["pattern"])
    return written if re.search(pattern, written) and "\n" not in written else None


def guessed_provider(name: str) -> str | None:
    """The provider of a model whose name alone says it."""
    return next((provider for form, provider in _FAMILIES if form.fullmatch(name)), None)


def set_model(source: Source, draft: Draft, path: Path, written: str, *, separator: str) -> None:
    """Take a model that stands as `provider<separator>name`, or as a name, at `path`."""
    provider, found, name = written.partition(separator)
    if not found:
        provider, name = guessed_provider(written) or "", written
    model = model_name(provider, name)
    if model is None:
        source.lose(path, f"{written[:60]!r}: {_NO_PROVIDER}")
        source.fill_in(path, "model", "write provider:name, or leave it to CAPUCHIN_MODEL")
        return
    draft.model = model
    source.take(*path)
    from capuchin_yaml.models.registry import PROVIDERS

    if provider not in PROVIDERS:
        source.fill_in(path, "model", f"this version has no provider {provider[:40]!r}")


def set_fallback(source: Source, draft: Draft, path: Path, *, separator: str) -> None:
    """Take the models that are asked when the first cannot answer, as they stand in a list."""
    models: list[str] = []
    for i in range(source.count(*path)):
        written = source.text(*path, i) or ""
        provider, _, name = written.partition(separator)
        model = model_name(provider, name)
        if model is None or not has_model_key("fallback"):
            source.lose((*path, i), f"{written[:60]!r}: {_NO_PROVIDER}")
        else:
            models.append(model)
    if models:
        draft.settings["fallback"] = models


def set_number(source: Source, draft: Draft, path: Path, key: str) -> None:
    """Take a setting of the model at `path`, if agent.yaml takes this value of it."""
    if not has_model_key(key) or source.node(*path) is None:
        return
    schema = resolved(agent_schema()["$defs"]["model"]["properties"][key], agent_schema())
    node = source.node(*path)
    value = node.value if node is not None else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = schema["type"] != "integer" or isinstance(value, int)
    if not is_number or not whole:
        source.lose(path, f"{key} is a {'whole ' if not whole else ''}number here")
    elif not schema["minimum"] <= value <= schema["maximum"]:
        source.lose(path, f"{key} goes from {schema['minimum']} to {schema['maximum']} here")
    else:
        source.take(*path)
        draft.settings[key] = value


def settle_model(source: Source, draft: Draft, paths: dict[str, Path]) -> None:
    """Drop settings that have no model, or that do not go together; `paths` says where they are."""
    thinking, most = draft.settings.get("thinking"), draft.settings.get("max_tokens", 4096)
    if thinking is not None and thinking >= most:
        source.lose(paths["thinking"], f"thinking must be less than max_tokens, which is {most}")
        del draft.settings["thinking"]
    if "thinking" in draft.settings and draft.settings.get("temperature", 1) != 1:
        source.lose(paths["temperature"], "a model that thinks takes no temperature here")
        del draft.settings["temperature"]
    if draft.model is None:
        for key in draft.settings:
            source.lose(paths[key], "a setting belongs to a model, and the new file names none")
        draft.settings.clear()


def set_steps(source: Source, draft: Draft, path: Path) -> None:
    """Take a bound on model calls per message."""
    value = source.number(*path)
    if value is None:
        return
    if isinstance(value, int) and 1 <= value <= 1000:
        draft.max_steps = value
    else:
        source.lose(path, "limits.max_steps goes from 1 to 1000; the new agent has 8")
