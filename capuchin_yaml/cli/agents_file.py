"""`agents.json` in the state folder: which agents `up` serves, for every other terminal."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from capuchin_yaml.client.home import Home
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.spec import AgentSpec, JsonValue, VariableSpec


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """One agent as another terminal needs to know it."""

    name: str
    version: str = ""
    description: str = ""
    model: str = ""
    """What answers for it now; `rehearsal` when no key is there."""
    sentence: str = ""
    """What its policy asks about and what runs alone."""
    variables: Mapping[str, VariableSpec] = field(default_factory=dict)
    injected: tuple[str, ...] = ()
    path: str = ""
    definition_hash: str = ""
    problem: str = ""
    """What is wrong with the file as it is on disk; the last good one is served."""

    def spec(self) -> AgentSpec:
        """As much of the spec as checking variables and injected values needs."""
        return AgentSpec(
            name=self.name, prompt="", variables=self.variables, injected=self.injected
        )


def write_agents(home: Home, agents: Sequence[KnownAgent]) -> None:
    """Replace the list of agents that other terminals see."""
    document = {"v": 1, "agents": [dataclasses.asdict(agent) for agent in agents]}
    home.write(home.agents_file, json.dumps(document, indent=2) + "\n")


def read_agents(home: Home) -> tuple[KnownAgent, ...]:
    """The agents that `up` serves here; empty when none has been started."""
    text = home.read(home.agents_file) if home.exists else None
    if text is None:
        return ()
    try:
        return tuple(_agent(value) for value in json.loads(text)["agents"])
    except (ValueError, KeyError, TypeError):
        return ()


def agent_named(agents: Sequence[KnownAgent], name: str) -> KnownAgent | None:
    """The served agent of that name, or None."""
    return next((agent for agent in agents if agent.name == name), None)


def no_such_name(agents: Sequence[KnownAgent], name: str) -> RequestRefused:
    """The refusal for a word that is neither an agent nor a conversation."""
    names = [agent.name for agent in agents]
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"agents here: {', '.join(names) or 'none'}"
    return RequestRefused(f"{name!r} is neither an agent nor a conversation; {hint}")


def told_to_others(agent: KnownAgent) -> dict[str, JsonValue]:
    """What a worker tells of an agent to terminals on other machines: no path of this one."""
    plain = dataclasses.asdict(agent)
    return {k: v for k, v in plain.items() if k not in ("path", "problem")}


def told_agent(told: Mapping[str, JsonValue]) -> KnownAgent | None:
    """An agent as a worker told of it; None when this release does not understand that."""
    try:
        return _agent(told)
    except (TypeError, ValueError, AttributeError):
        return None


def _agent(value: Mapping[str, JsonValue]) -> KnownAgent:
    names = {f.name for f in dataclasses.fields(KnownAgent)}
    kept = {k: v for k, v in value.items() if k in names}
    known = {f.name for f in dataclasses.fields(VariableSpec)}
    kept["variables"] = {
        name: VariableSpec(
            **dict[str, Any](
                (k, tuple(v) if k == "enum" else v) for k, v in variable.items() if k in known
            )
        )
        for name, variable in dict(kept.get("variables", {})).items()
    }
    kept["injected"] = tuple(kept.get("injected", ()))
    return KnownAgent(**kept)
