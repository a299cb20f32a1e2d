"""A conversation on paper: each event as one labelled paragraph, and its JSON form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from capuchin_yaml.cli.clock import clock_time, span
from capuchin_yaml.cli.output import Colour, Ink, Output
from capuchin_yaml.events import (
    AssistantSaid,
    ConversationClosed,
    ConversationRenamed,
    ConversationReopened,
    DefinitionPinned,
    Event,
    ItemDecided,
    ItemEscalated,
    ItemOpened,
    ItemVoted,
    LimitReached,
    MessageQueued,
    ToolEnded,
    ToolRequested,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    UsageRecorded,
)
from capuchin_yaml.messages import (
    AssistantMessage,
    CallBlock,
    Note,
    TextBlock,
    ToolResult,
    TranscriptEntry,
    UserMessage,
)
from capuchin_yaml.spec import JsonValue

REHEARSAL = "rehearsal"
_LABEL_WIDTH = 10


def print_event(out: Output, event: Event) -> None:
    """Write one event as a paragraph; events that say nothing new to a person write nothing."""
    told = _told(event)
    if told is None:
        return
    label, colour, text = told
    indent = " " * (10 + _LABEL_WIDTH)
    first, *more = text.split("\n") or [""]
    out.answer(
        Ink(f"{clock_time(event.time)}  ", "dim"), Ink(f"{label:<{_LABEL_WIDTH}}", colour), first
    )
    for line in more:
        out.answer(indent, line)


def _told(event: Event) -> tuple[str, Colour, str] | None:
    """Label, colour and text of what a person should read of an event."""
    match event:
        case TurnStarted():
            return "user", "cyan", f"{event.text}\n({event.by})" if event.by else event.text
        case MessageQueued():
            return "queued", "cyan", event.text
        case AssistantSaid():
            label = REHEARSAL if event.model == REHEARSAL else "agent"
            return (label, "green", event.text) if event.text.strip() else None
        case ToolRequested() | ToolEnded():
            return _told_of_call(event)
        case ItemOpened():
            item = event.item
            return "waiting", "yellow", f"{item.get('title', '')}\ncapuchin inbox show {item['id']}"
        case ItemDecided():
            return "decided", "yellow", decision_text(event)
        case ItemVoted() | ItemEscalated():
            return "waiting", "yellow", waiting_text(event)
        case _:
            return _told_of_turn(event)


def _told_of_call(event: ToolRequested | ToolEnded) -> tuple[str, Colour, str]:
    if isinstance(event, ToolRequested):
        verdict = "" if event.verdict == "allow" else f"  [{event.verdict}: {event.reason}]"
        return "call", "bold", f"{_tool(event.tool, event.alias)} {event.arguments}{verdict}"
    took = "" if event.duration_s is None else f" after {span(event.duration_s)}"
    return "result", "bold", f"{event.status}{took}: {event.text}"


def _told_of_turn(event: Event) -> tuple[str, Colour, str] | None:
    match event:
        case LimitReached():
            return "limit", "yellow", f"{event.limit} = {event.value} is reached"
        case TurnEnded(outcome="answered"):
            return None
        case TurnEnded():
            text = f"{event.outcome}: {event.detail}" if event.detail else event.outcome
            return "ended", "red", text
        case ConversationClosed():
            by = f" by {event.by}" if event.by else ""
            detail = f": {event.detail}" if event.detail else ""
            return event.status, "red", f"{event.status}{by}{detail}"
        case ConversationRenamed():
            return "renamed", "bold", f"renamed by {event.by}: {event.title}"
        case ConversationReopened():
            return "opened", "bold", f"opened again by {event.by}"
        case DefinitionPinned() if event.problem:
            return "agent is", "red", event.problem
        case DefinitionPinned():
            mark = " (rehearsal: no model is asked)" if event.model == REHEARSAL else ""
            name = f"{event.agent} {event.version} {event.definition_hash[:12]}"
            return "agent is", "dim", f"{name}, model {event.model}{mark}"
        case UnknownEvent():
            return "event", "dim", f"{event.name} {json.dumps(event.data, ensure_ascii=False)}"
        case _:
            return None


def _tool(identity: str, alias: str) -> str:
    return identity if alias in ("", identity.rpartition(".")[2]) else f"{identity} as {alias}"


def decision_text(event: ItemDecided) -> str:
    """How an item was settled, by whom and why."""
    if event.choice == "expired":
        return "expired: nobody decided in time"
    if event.choice == "withdrawn":
        return "withdrawn: the turn or the conversation ended"
    proof = "" if event.proven else " (name not proven)"
    reason = f": {event.reason}" if event.reason else ""
    return f"{event.choice} by {event.by}{proof}{reason}"


def waiting_text(event: ItemVoted | ItemEscalated) -> str:
    """What happened to an item that waits on."""
    if isinstance(event, ItemEscalated):
        return f"nobody decided in time: {event.to} may decide as well"
    proof = "" if event.proven else " (name not proven)"
    left = event.quorum - event.votes
    return f"approved by {event.by}{proof}: {event.votes} of {event.quorum}, {left} more needed"


def reply_text(events: Iterable[Event]) -> str:
    """The agent's last words in these events; empty when it said nothing."""
    words = [e.text for e in events if isinstance(e, AssistantSaid) and e.text.strip()]
    return words[-1] if words else ""


def usage_json(events: Iterable[Event]) -> dict[str, JsonValue]:
    """Tokens of these events, in four classes that never overlap, and the models asked."""
    counts = dict.fromkeys(
        ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), 0
    )
    models: list[str] = []
    for event in events:
        if isinstance(event, UsageRecorded):
            for name in counts:
                counts[name] += getattr(event, name)
            if event.model not in models:
                models.append(event.model)
    return {**counts, "models": list(models)}


def messages_json(entries: Sequence[TranscriptEntry]) -> list[JsonValue]:
    """The transcript as `[{role, content: [..]}]`."""
    return [_message_json(entry) for entry in entries]


def _message_json(entry: TranscriptEntry) -> dict[str, JsonValue]:
    match entry:
        case UserMessage():
            return {
                "role": "user",
                "content": [{"type": "text", "text": entry.text}],
                "id": entry.id,
                "by": entry.by,
                "at": entry.at,
            }
        case AssistantMessage():
            content: list[Mapping[str, JsonValue]] = []
            for block in entry.blocks:
                if isinstance(block, TextBlock):
                    content.append({"type": "text", "text": block.text})
                elif isinstance(block, CallBlock):
                    content.append(
                        {
                            "type": "tool_call",
                            "id": block.call_id,
                            "tool": block.tool,
                            "input": dict(block.input),
                        }
                    )
            return {"role": "assistant", "content": content, "model": entry.model}
        case ToolResult():
            result = {
                "type": "tool_result",
                "call_id": entry.call_id,
                "tool": entry.tool,
                "status": entry.status,
                "text": entry.text,
            }
            return {"role": "tool", "content": [result]}
        case Note():
            return {"role": "note", "content": [{"type": "text", "text": entry.text}]}
