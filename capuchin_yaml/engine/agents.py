"""The agents a worker serves: swapped while it runs, pinned by each conversation at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from capuchin_yaml.spec import AgentSpec


@dataclass(frozen=True, slots=True)
class ServedAgent:
    """A compiled agent and the folder of its file, in which its model's script may lie."""

    spec: AgentSpec
    folder: Path | None = None
    rule_places: tuple[str, ...] = ()
    """Where each of its rules stands, such as `agents/billing.yaml:14`."""


class AgentTable:
    """Agents by name. A swap takes effect for conversations that start after it."""

    def __init__(self, agents: Mapping[str, ServedAgent] | None = None) -> None:
        self._agents: dict[str, ServedAgent] = dict(agents or {})

    def put(self, agent: ServedAgent) -> None:
        """Serve this definition to new conversations."""
        self._agents = {**self._agents, agent.spec.name: agent}

    def drop(self, name: str) -> None:
        """Serve no new conversation of this agent."""
        self._agents = {k: v for k, v in self._agents.items() if k != name}

    def get(self, name: str) -> ServedAgent | None:
        """The agent as it is now, or None."""
        return self._agents.get(name)

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._agents))
