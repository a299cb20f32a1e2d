"""Which model answers for an agent on this machine, and whether a key for it is here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.models.registry import REHEARSAL, needs_key
from capuchin_yaml.spec import ModelSettings

FORCED = "CAPUCHIN_MODEL"


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """What answers, and what a person should be told of it."""

    name: str
    wanted: str | None = None
    """The model whose key is missing; None when the one that answers is the one meant."""
    key: str | None = None
    """The environment variable that should hold the missing key."""

    @property
    def notice(self) -> str:
        """Why a stand-in answers; empty when none does, or when it was asked for."""
        if self.wanted is None or self.key is None:
            return ""
        return f"{self.wanted} needs a key and {self.key} is not set"


def forced_model(environ: Mapping[str, str] = os.environ) -> str | None:
    """What CAPUCHIN_MODEL asks for; None when it is unset or blank."""
    return (environ.get(FORCED) or "").strip() or None


def answering_model(
    agents_own: str | None,
    environ: Mapping[str, str] = os.environ,
    settings: ModelSettings | None = None,
) -> AnsweringModel:
    """The model for an agent that names `agents_own`; `rehearsal` where its key is missing.

    `settings` are the agent's own: another address needs no key, another key is looked for.

    Raises:
        ModelRejected: no such provider.
    """
    forced = forced_model(environ)
    wanted = forced or agents_own or REHEARSAL
    try:
        key = needs_key(wanted)
    except ModelRejected as error:
        if forced is None:
            raise
        raise ModelRejected(f"{FORCED}: {error}") from error
    if forced is None and settings is not None:
        key = settings.key_variable or (None if settings.base_url is not None else key)
    if key is None or (environ.get(key) or "").strip():
        return AnsweringModel(wanted)
    return AnsweringModel(REHEARSAL, wanted, key)
