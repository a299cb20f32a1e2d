"""What a transcript is made of; each entry is frozen, a change puts a new one in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CardState: TypeAlias = Literal[
    "requested", "waiting", "approved", "running",
    "ok", "denied", "expired", "cancelled", "error", "unknown", "invalid", "skipped",
]  # fmt: skip
"""Where a tool call stands. `approved` is decided but not handed to a worker yet; `unknown`
may or may not have happened."""

Tone: TypeAlias = Literal["info", "ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class UserSaid:
    """Words of a person or program."""

    time: str
    text: str
    by: str
    message_id: str


@dataclass(frozen=True, slots=True)
class AgentSaid:
    """Words of the model; `is_open` while they still come in."""

    time: str
    text: str
    model: str
    is_open: bool = False
    is_cut: bool = False
    """The turn ended before the reply did; the text is what had come in."""


@dataclass(frozen=True, slots=True)
class ToolCard:
    """One tool call, from the ask to its result."""

    time: str
    call_id: str
    identity: str
    alias: str
    arguments: str
    """Canonical JSON text: byte for byte what would run."""
    state: CardState
    reason: str = ""
    """Why it asks, or why it was denied or is invalid."""
    result: str = ""
    duration_s: float | None = None
    decided_by: str = ""
    asked: str = ""
    """What the model had asked for, where a person changed it."""
    changed_by: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A line about the conversation itself."""

    time: str
    text: str
    tone: Tone = "info"


Entry: TypeAlias = UserSaid | AgentSaid | ToolCard | Mark
