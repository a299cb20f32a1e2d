"""From a model's name to its adapter; a provider's module is loaded only when it is used."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from pathlib import Path

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.models.adapter import ModelAdapter
from capuchin_yaml.models.known import PROVIDERS, REHEARSAL

_KEYS = {"anthropic": "ANTHROPIC_API_KEY"}
SECRET_VARIABLES = (*_KEYS.values(), "ANTHROPIC_AUTH_TOKEN")
"""Every environment variable that may hold a secret of a provider."""
_FORMS = {
    "anthropic": "anthropic:MODEL",
    REHEARSAL: REHEARSAL,
    "scripted": "scripted:FILE",
}
__all__ = [
    "PROVIDERS",
    "REHEARSAL",
    "SECRET_VARIABLES",
    "ModelName",
    "needs_key",
    "open_model",
    "split_model_name",
    "warm",
]


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name in its two parts."""

    provider: str
    name: str
    """What the provider is asked for; empty for `rehearsal`."""


def split_model_name(text: str) -> ModelName:
    """The provider and its own name for a model, from `provider:name`; reads and loads nothing.

    Raises:
        ModelRejected: no such provider, or its name of a model is missing; says what to write.
    """
    provider, colon, name = text.partition(":")
    provider, name = provider.strip(), name.strip()
    if provider not in PROVIDERS:
        raise ModelRejected(f"no model provider is named {provider!r}; {_advice(provider, colon)}")
    if provider == REHEARSAL:
        if name:
            raise ModelRejected(f"{text!r} is not a model: write {REHEARSAL!r} alone")
        return ModelName(provider, "")
    if not name:
        raise ModelRejected(f"{text!r} names no model: write {_FORMS[provider]}")
    return ModelName(provider, name)


def open_model(
    name: str,
    *,
    base_dir: Path | None = None,
    base_url: str | None = None,
    key_variable: str | None = None,
) -> ModelAdapter:
    """The adapter for `anthropic:MODEL`, `scripted:FILE` or `rehearsal`.

    `base_dir` is the folder of the agent file that named the model: a script is looked for there
    and must lie in it. Without it the name is the operator's, and the script may be anywhere.
    With `base_url` the model is asked there, without the provider's own key; `key_variable`
    names the variable of the environment that holds another key. Both are the caller's to allow.

    Raises:
        ModelRejected: no such provider, or its script is missing or wrong.
    """
    model = split_model_name(name)
    match model.provider:
        case "anthropic":
            from capuchin_yaml.models.anthropic import AnthropicModel

            return AnthropicModel(base_url=base_url, key_variable=key_variable)
        case "scripted":
            from capuchin_yaml.models.scripted import ScriptedModel

            return ScriptedModel.open(model.name, base_dir)
        case _:
            from capuchin_yaml.models.rehearsal import RehearsalModel

            return RehearsalModel()


def needs_key(name: str) -> str | None:
    """The environment variable that must hold a key for this model, or None.

    Raises:
        ModelRejected: no such provider.
    """
    return _KEYS.get(split_model_name(name).provider)


async def warm(name: str) -> None:
    """Load in a thread what the model's first reply would wait for; a bad name loads nothing."""
    match name.partition(":")[0].strip():
        case "anthropic":
            from capuchin_yaml.models import anthropic

            await anthropic.warm()
        case "rehearsal":
            import asyncio  # the compiler loads this module for its names alone

            await asyncio.to_thread(importlib.import_module, "jsonschema")
        case _:
            pass


def _advice(provider: str, colon: str) -> str:
    if not colon and provider.startswith("claude"):
        return f"did you mean 'anthropic:{provider}'?"
    close = difflib.get_close_matches(provider.lower(), PROVIDERS, n=1, cutoff=0.6)
    if close:
        return f"did you mean {_FORMS[close[0]]!r}?"
    return f"write one of {', '.join(_FORMS[p] for p in PROVIDERS)}"
