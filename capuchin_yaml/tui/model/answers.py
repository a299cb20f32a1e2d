"""Which keys answer which kind of item; no kind has a default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from capuchin_yaml.events import Choice
    from capuchin_yaml.items import Item


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer and its key."""

    key: str
    choice: Choice
    label: str
    asks: Literal["", "reason", "result"] = ""
    """What a box asks for before it is sent: a reason that may be empty, a result that must not."""
    runs_tool: bool = False
    """Whether the tool runs by it, so that a destructive one has its name typed."""
    asks_rule: bool = False
    """Whether a box asks what else it allows in this conversation."""
    arguments: str = ""
    """For the choice `edit`: what shall run instead."""
    is_for_all: bool = False
    """Whether it answers every item that would run the very same call."""


ANSWERS: Mapping[str, tuple[Answer, ...]] = {
    "approval": (
        Answer("a", "approve", "approve", runs_tool=True),
        Answer("d", "deny", "deny (reason)", asks="reason"),
        Answer("r", "approve", "approve and remember", runs_tool=True, asks_rule=True),
    ),
    "outcome": (
        Answer("h", "happened", "it happened (enter the result)", asks="result"),
        Answer("r", "rerun", "it did not (run it again)", runs_tool=True),
        Answer("f", "failed", "treat it as failed"),
    ),
    "limit": (
        Answer("o", "go_on", "go on"),
        Answer("s", "stop", "stop the turn"),
    ),
    "question": (),
}


EDITED = Answer("a", "edit", "approve with your changes", runs_tool=True)
"""What takes the place of an approve once a person changed the arguments."""


def answers(item: Item) -> tuple[Answer, ...]:
    """The answers that this screen can give to an item."""
    return ANSWERS.get(item.kind, ())


def must_type_name(item: Item, answer: Answer) -> bool:
    """Whether the tool's name has to be typed: it is destructive, or nobody knows."""
    return answer.runs_tool and item.effect not in ("read", "write")
