"""Which version of each agent new conversations get, while files change under a running `up`.

Pure: from what is served and what is on disk to what to serve next, what to say, what to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from capuchin_yaml.cli.agents_file import KnownAgent
from capuchin_yaml.policy.gating import loosened
from capuchin_yaml.policy.sentence import policy_sentence
from capuchin_yaml.spec import AgentSpec, JsonValue, ModelSettings


@dataclass(frozen=True, slots=True)
class OnDisk:
    """One agent file as it was just compiled."""

    path: Path
    spec: AgentSpec | None
    """None when the file has errors."""
    problems: str = ""
    """Every diagnostic in its full form; empty when there is none."""
    headline: str = ""
    """The first error on one line."""
    model: str = ""
    """What would answer: forced, the agent's own, or `rehearsal`."""
    is_stand_in: bool = False
    """Whether `rehearsal` answers only because the key of the agent's own model is missing."""
    parts: tuple[Path, ...] = ()
    """Other files that the agent is made of."""
    rule_places: tuple[str, ...] = ()
    """Where each of its rules stands."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The version of one agent that new conversations get."""

    path: Path
    spec: AgentSpec
    model: str = ""
    is_stand_in: bool = False
    problem: str = ""
    """What is wrong with the file on disk now, one line; the version here is the last good one."""
    rule_places: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """What the worker needs to run it."""
        # Why in the spec: each conversation pins its model, and the next start may have a key.
        spec = self.spec
        if self.is_stand_in:
            spec = replace(spec, model=self.model, model_settings=ModelSettings())
        rules = list(self.rule_places)
        return {"path": str(self.path), "spec": spec.to_json(), "rules": rules}

    def for_others(self) -> KnownAgent:
        """What other terminals are told of it."""
        return KnownAgent(
            name=self.spec.name,
            version=self.spec.version,
            description=self.spec.description,
            model=self.model,
            sentence=policy_sentence(self.spec),
            variables=self.spec.variables,
            injected=self.spec.injected,
            path=str(self.path),
            definition_hash=self.spec.definition_hash,
            problem=self.problem,
        )


Roster: TypeAlias = Mapping[str, Serving]
"""By agent name."""


@dataclass(frozen=True, slots=True)
class Loosening:
    """A changed agent that would let calls run alone which asked before."""

    name: str
    path: Path
    tools: tuple[str, ...]
    """Identities that would run alone."""
    definition_hash: str
    sentence: str
    """The new policy."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do after a look at the disk."""

    roster: Roster
    """What to serve now; a loosened agent stays as it was."""
    asks: tuple[Loosening, ...] = ()
    news: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    """Names whose file was good before and has errors now."""


def first_roster(on_disk: Sequence[OnDisk]) -> tuple[Roster, tuple[str, ...]]:
    """The roster of a start, and what keeps it from starting: every mistake of every file."""
    problems = [agent.problems for agent in on_disk if agent.spec is None]
    roster: dict[str, Serving] = {}
    for agent in on_disk:
        if agent.spec is None:
            continue
        name = agent.spec.name
        if name in roster:
            problems.append(f"error: {same_name(name, roster[name].path, agent.path)}")
        else:
            roster[name] = _serving(agent, agent.spec)
    return roster, tuple(problems)


def next_roster(
    served: Roster, on_disk: Sequence[OnDisk], accepted: frozenset[str] = frozenset()
) -> Step:
    """What to serve after files changed.

    `accepted` holds the definition hashes whose loosening a person agreed to.
    """
    work = _Work(served, accepted)
    for agent in on_disk:
        if agent.spec is None:
            work.keep_last_good(agent)
        else:
            work.take(agent, agent.spec)
    work.drop_missing({agent.path for agent in on_disk})
    return Step(
        work.roster,
        tuple(work.asks),
        tuple(work.news),
        tuple(work.warnings),
        tuple(work.broke),
    )


def same_name(name: str, first: Path, second: Path) -> str:
    """Two files that declare one agent, in words."""
    return f"{second}: the name {name!r} is taken by {first}; names are unique in a project"


@dataclass
class _Work:
    served: Roster
    accepted: frozenset[str]
    roster: dict[str, Serving] = field(default_factory=dict)
    asks: list[Loosening] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    broke: list[str] = field(default_factory=list)

    def keep_last_good(self, agent: OnDisk) -> None:
        known = [s for s in self.served.values() if s.path == agent.path]
        for old in known:
            if old.problem != agent.headline:
                self.warnings.append(
                    f"{agent.headline}; new conversations still get the version before"
                )
            if not old.problem:
                self.broke.append(old.spec.name)
            self.roster[old.spec.name] = replace(old, problem=agent.headline)
        if not known:
            self.warnings.append(f"{agent.headline}; the agent is not served")

    def take(self, agent: OnDisk, spec: AgentSpec) -> None:
        taken = self.roster.get(spec.name)
        if taken is not None:
            self.warnings.append(same_name(spec.name, taken.path, agent.path))
            return
        new = _serving(agent, spec)
        old = self.served.get(spec.name)
        if old is None:
            self.news.append(f"{spec.name} {spec.version} is new: {policy_sentence(spec)}")
        elif old.spec.definition_hash != spec.definition_hash:
            tools = loosened(old.spec, spec)
            if tools and spec.definition_hash not in self.accepted:
                sentence = policy_sentence(spec)
                self.asks.append(
                    Loosening(spec.name, agent.path, tools, spec.definition_hash, sentence)
                )
                self.roster[spec.name] = replace(old, problem=waits_for_yes(agent.path, tools))
                return
            self.news.append(
                f"{spec.name} {spec.version} is reloaded for new conversations: "
                f"{policy_sentence(spec)}"
            )
        elif old.problem:
            self.news.append(f"{agent.path} is as it is served again")
        self.roster[spec.name] = new

    def drop_missing(self, paths: set[Path]) -> None:
        for name, old in self.served.items():
            if name not in self.roster and old.path not in paths:
                self.news.append(f"{name} is gone ({old.path}); open conversations go on")
            elif name not in self.roster:
                self.news.append(f"{old.path} is no longer {name}; open conversations go on")


def waits_for_yes(path: Path, tools: Sequence[str]) -> str:
    """Why a changed file is not served yet, in one line."""
    return f"{path}: would let {', '.join(tools)} run without asking; nobody agreed yet"


def _serving(agent: OnDisk, spec: AgentSpec) -> Serving:
    return Serving(agent.path, spec, agent.model, agent.is_stand_in, rule_places=agent.rule_places)
