"""`model` of a checked file: which model answers, how it is asked, and who answers in its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from capuchin_yaml.compiler.document import Node, Path
from capuchin_yaml.compiler.own_files import AgentFolder, own_file
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.spec import ModelChoice, ModelSettings

_MAX_TOKENS = 4096
_OFFLINE = frozenset({"rehearsal", "scripted"})
"""Providers that nobody is asked for over a network."""


def bind_model(reading: Reading, folder: AgentFolder | None) -> str | None:
    """The model's name; None leaves the choice to the worker."""
    node = reading.document.node(("model",))
    where: Path = ("model", "name") if node is not None and node.kind == "map" else ("model",)
    return _name(reading, folder, where)


def bind_settings(reading: Reading, folder: AgentFolder | None) -> ModelSettings:
    """How the model is asked, with the models that are asked in its place."""
    settings = _settings(reading, ("model",))
    choices: list[ModelChoice] = []
    named = {reading.text(("model", "name"))}
    for where, node in _fallbacks(reading):
        is_map = node.kind == "map"
        at: Path = (*where, "name") if is_map else where
        name = _name(reading, folder, at)
        if name is None:
            continue
        if name in named and not is_map:
            reading.warning(
                "listed-twice",
                f"{name} is asked already before it comes to this entry",
                at,
                "remove this entry",
            )
        named.add(name)
        own = _settings(reading, where) if is_map else ModelSettings()
        choices.append(ModelChoice(name, own))
    return replace(settings, fallback=tuple(choices))


def model_places(reading: Reading) -> Iterator[tuple[str, Path]]:
    """Every model that the file names, and where."""
    node = reading.document.node(("model",))
    if node is None:
        return
    first: Path = ("model", "name") if node.kind == "map" else ("model",)
    fallbacks = [
        (*where, "name") if node.kind == "map" else where for where, node in _fallbacks(reading)
    ]
    for where in (first, *fallbacks):
        name = reading.text(where)
        if name is not None:
            yield name, where


def _fallbacks(reading: Reading) -> Iterator[tuple[Path, Node]]:
    block = reading.document.node(("model", "fallback"))
    for i, node in enumerate(block.items if block is not None else ()):
        yield ("model", "fallback", i), node


def _name(reading: Reading, folder: AgentFolder | None, where: Path) -> str | None:
    model = reading.text(where)
    if model is None or folder is None or not model.startswith("scripted:"):
        return model
    file = own_file(reading, folder, model.removeprefix("scripted:"), where)
    if file is None:
        return model
    # Why: the worker looks for it from the agent's own file, whatever file named it.
    return f"scripted:{os.path.relpath(file, folder.path)}"


def _settings(reading: Reading, at: Path) -> ModelSettings:
    temperature = reading.node((*at, "temperature"))
    thinking = reading.whole((*at, "thinking"), 0) or None
    most = reading.whole((*at, "max_tokens"), 0) or None
    if thinking is not None and thinking >= (most or _MAX_TOKENS):
        reading.error(
            "out-of-range",
            f"model.thinking must be less than model.max_tokens, which is {most or _MAX_TOKENS}",
            (*at, "thinking"),
            f"max_tokens: {thinking + _MAX_TOKENS}",
        )
    if thinking is not None and temperature is not None and temperature.value != 1:
        reading.error(
            "needless-key",
            "a model that thinks takes no temperature",
            reading.document.key_span((*at, "temperature")),
            "remove the line",
        )
    base_url, key = reading.text((*at, "base_url")), reading.text((*at, "api_key", "env"))
    _only_for_providers(reading, at)
    return ModelSettings(
        max_tokens=most,
        temperature=float(temperature.value) if temperature is not None else None,
        thinking_tokens=thinking,
        timeout_s=reading.duration_s((*at, "timeout")),
        base_url=base_url.rstrip("/") if base_url is not None else None,
        key_variable=key,
    )


def _only_for_providers(reading: Reading, at: Path) -> None:
    provider = (reading.text((*at, "name")) or "anthropic:").partition(":")[0]
    if provider not in _OFFLINE:
        return
    for key in ("base_url", "api_key"):
        if reading.document.node((*at, key)) is not None:
            reading.error(
                "needless-key",
                f"a {provider} model has no address and takes no {key}",
                reading.document.key_span((*at, key)),
                "remove the line",
            )
