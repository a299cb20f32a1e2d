"""Events that a transcript tells in one line. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from capuchin_yaml.events import (
    ConversationClosed,
    ConversationRenamed,
    ConversationReopened,
    DefinitionPinned,
    Event,
    GrantRevoked,
    ItemDecided,
    LimitReached,
    RolledOver,
    TurnEnded,
    UnknownEvent,
)
from capuchin_yaml.tui.model.entries import Mark, Tone
from capuchin_yaml.tui.model.remember import rule_text

_OUTCOMES: Mapping[str, tuple[str, Tone]] = {
    "cancelled": ("turn cancelled", "warn"),
    "stopped": ("turn stopped", "warn"),
    "model_rejected": ("the model refused the request", "bad"),
    "model_unavailable": ("the model is not available", "bad"),
}


def mark_of(event: Event) -> Mark:
    """The line that tells of an event, whatever its kind."""
    text, tone = _told(event)
    return Mark(event.time, text, tone)


def granted(event: ItemDecided, tool: str) -> str:
    """What a decision allowed beforehand, as the rule that it is; empty when nothing."""
    if not event.grant:
        return ""
    times, ends = event.grant.get("times"), event.grant.get("until")
    return rule_text(
        str(event.grant.get("scope")),
        tool,
        times if isinstance(times, int) else None,
        ends if isinstance(ends, str) else None,
    )


def _told(event: Event) -> tuple[str, Tone]:
    match event:
        case DefinitionPinned(problem=""):
            name = f"{event.agent} {event.version} · definition {event.definition_hash[:8]}"
            return f"{name} · {event.model}", "info"
        case DefinitionPinned():
            return event.problem, "warn"
        case LimitReached():
            return f"limit reached: {event.limit} {event.value}", "warn"
        case ItemDecided():
            words = event.choice.replace("_", " ")
            return f"{event.item_kind}: {words}{_by(event.by)}", "info"
        case RolledOver():
            return "the conversation went on in a new run", "info"
        case GrantRevoked():
            return f"what was allowed beforehand is taken back{_by(event.by)}", "info"
        case ConversationRenamed():
            return f"renamed{_by(event.by)}: {event.title}", "info"
        case ConversationReopened():
            return f"opened again by {event.by}", "info"
        case TurnEnded():
            text, tone = _OUTCOMES.get(event.outcome, (event.outcome, "warn"))
            return _with(text, event.detail), tone
        case ConversationClosed():
            text = f"conversation {event.status}{_by(event.by)}"
            return _with(text, event.detail), "bad" if event.status == "failed" else "info"
        case _:
            name = event.name if isinstance(event, UnknownEvent) else event.kind
            return f"an event this release does not know: {name}", "info"


def _by(name: str) -> str:
    return f" by {name}" if name else ""


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
