"""What an agent wants beyond itself, and what the operator granted: a need is not a grant."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capuchin_yaml.spec import AgentSpec, JsonValue, canonical_json

MODEL = "model"
"""Stands where the identity of a tool stands; those have a dot."""


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """A variable of the worker's environment for a tool or the model, or an address to ask."""

    variable: str
    """Empty where only an address is wanted: then no key goes there."""
    tool: str
    """Identity, or `model`."""
    address: str = ""
    """Where the model is asked, if not at its provider's own address."""

    def __str__(self) -> str:
        """As the operator's config holds it."""
        if self.tool != MODEL:
            return f"env {self.variable} for {self.tool}"
        if not self.variable:
            return f"address {self.address} for the model, without a key"
        return f"env {self.variable} for the model" + (
            f" at {self.address}" if self.address else ""
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """The operator's yes to the needs of one agent."""

    agent: str
    hash: str
    needs: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the hash is that of the needs, so that nobody added one by hand unseen."""
        return self.hash == needs_hash(self.agent, self.needs)


def needs_of(spec: AgentSpec) -> tuple[Need, ...]:
    """Everything that a compiled agent needs, sorted."""
    found = {
        Need(variable, tool.identity)
        for tool in spec.tools
        for variable in variables_in(tool.config)
    }
    settings = spec.model_settings
    for one in (settings, *(choice.settings for choice in settings.fallback)):
        need = model_need(one.base_url, one.key_variable)
        if need is not None:
            found.add(need)
    return tuple(sorted(found))


def model_need(base_url: str | None, key_variable: str | None) -> Need | None:
    """What asking a model takes: nothing with the provider's own key at its own address.

    Key and address are one need, so that no key goes to an address it was not granted for.
    """
    if base_url is None and key_variable is None:
        return None
    return Need(key_variable or "", MODEL, base_url or "")


def variables_in(config: JsonValue) -> Iterator[str]:
    """The names in every `{env: NAME}` of a config."""
    name = variable_of(config)
    if name is not None:
        yield name
    elif isinstance(config, Mapping):
        for value in config.values():
            yield from variables_in(value)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from variables_in(value)


def variable_of(value: JsonValue) -> str | None:
    """The name in `{env: NAME}`; None for any other value."""
    if isinstance(value, Mapping) and set(value) == {"env"} and isinstance(value["env"], str):
        return value["env"]
    return None


def needs_hash(agent: str, needs: Sequence[str]) -> str:
    """32 hex digits over the agent's name and its needs."""
    text = canonical_json([agent, sorted(needs)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def grant_of(agent: str, needs: Sequence[Need]) -> Grant:
    """The grant that answers exactly these needs."""
    texts = tuple(str(need) for need in sorted(needs))
    return Grant(agent, needs_hash(agent, texts), texts)


def is_granted(agent: str, needs: Sequence[Need], grants: Sequence[Grant]) -> bool:
    """Whether the operator said yes to exactly these needs of this agent; no needs need no yes."""
    return not needs or any(grant.is_whole and grant == grant_of(agent, needs) for grant in grants)


def may_have(need: Need, grants: Sequence[Grant]) -> bool:
    """Whether some grant answers this need."""
    return any(grant.is_whole and str(need) in grant.needs for grant in grants)
