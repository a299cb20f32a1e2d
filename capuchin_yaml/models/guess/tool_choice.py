"""Which tools a message asks for, judged by their names and descriptions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from capuchin_yaml.messages import ModelTool
from capuchin_yaml.models.guess.reading import Reading, alike, stems_of

_LOOK_UP = frozenset(
    stems_of(
        "lookup look get find list search read show fetch check describe query view status "
        "retrieve select count browse inspect return returns tell compute calculate"
    )
)
_EMPTY = frozenset(
    stems_of(
        "a an the i you we he she it they me my your our his her its is are was were be been am "
        "to of for in on at by with and or not no please can could would should will need want "
        "have has had do does did from this that these those there here what which how when where "
        "who why any all some as if so up out about into than then them just now still hi hello "
        "thanks thank ok okay yes tool use uses used using make let help give get show tell find "
        "list look see know one via per each given new like"
    )
)
_COMMON_VERBS = frozenset(
    stems_of(
        "issue process run perform execute submit handle manage lookup search read fetch check"
    )
    + stems_of("describe query view retrieve return returns")
)
_SAME = {
    stems_of(a)[0]: stems_of(b)[0]
    for a, b in (
        ("open", "create"),
        ("add", "create"),
        ("remove", "delete"),
        ("erase", "delete"),
        ("change", "update"),
        ("edit", "update"),
        ("modify", "update"),
        ("mail", "email"),
        ("reimburse", "refund"),
        ("sum", "add"),
        ("plus", "add"),
    )
}
_NAME_WEIGHT = 1.0
_DESCRIPTION_WEIGHT = 0.2


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool that fits a message."""

    tool: ModelTool
    looks_up: bool
    """Whether it seems to tell something rather than to do something."""
    score: float = 0.0
    by_description: bool = False
    """Only words of its description were met, none of its name."""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @classmethod
    def of(cls, tool: ModelTool) -> Choice:
        """The tool as it looks without any message."""
        name = stems_of(tool.name)
        first = stems_of(tool.description)[:1]
        looks_up = bool(_LOOK_UP & set(name)) or bool(first and first[0] in _LOOK_UP)
        return cls(tool, looks_up)


def tools_for(reading: Reading, tools: Sequence[ModelTool]) -> list[Choice]:
    """The tools that the message asks for: look-ups first, then the better fit, then file order.

    Tools whose name the message meets; when there is none, the one whose description fits best.
    """
    said = {s for s in reading.stems if s not in _EMPTY}
    names = {s for t in tools for s in stems_of(t.name)}
    # A word that a tool is named by means that tool, not one that does something like it.
    said |= {_SAME[s] for s in said - names if s in _SAME}
    plain = [Choice.of(t) for t in tools]
    rare = Counter(s for t in tools for s in set(_telling(t.name)))
    looked_up = {s for c in plain if c.looks_up for s in _telling(c.name)}
    named, described = [], []
    for choice in plain:
        telling = set(_telling(choice.name))
        own = telling - looked_up if not choice.looks_up else telling
        hits = {s for s in telling if _met(s, said)}
        score = sum(_NAME_WEIGHT / rare[s] for s in hits)
        words = set(stems_of(choice.tool.description)) - _EMPTY - _COMMON_VERBS
        in_description = sum(_DESCRIPTION_WEIGHT for s in words if _met(s, said))
        if hits and (hits & own or not own):
            named.append(Choice(choice.tool, choice.looks_up, score + in_description))
        elif in_description:
            described.append(Choice(choice.tool, choice.looks_up, in_description, True))
    if not named:
        return sorted(described, key=lambda c: -c.score)[:1]
    return sorted(named, key=lambda c: (not c.looks_up, -c.score))


def _telling(name: str) -> tuple[str, ...]:
    """The stems of a name that tell tools apart; all of them when none does."""
    stems = stems_of(name)
    return tuple(s for s in stems if s not in _COMMON_VERBS and s not in _EMPTY) or stems


def _met(stem: str, said: set[str]) -> bool:
    return any(alike(stem, word) for word in said)
