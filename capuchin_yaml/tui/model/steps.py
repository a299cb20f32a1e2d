"""The event log as steps: what belongs together is one row. No I/O.

A turn, a model's reply, a tool call from its request to its result, an item from its opening
to its decision: each grows while its events come, and keeps the place where it began.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from capuchin_yaml.events import (
    AssistantSaid,
    ConversationClosed,
    DefinitionPinned,
    Event,
    ItemDecided,
    ItemOpened,
    LimitReached,
    MessageQueued,
    RolledOver,
    ToolEnded,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    UsageRecorded,
    to_json,
)

StepKind: TypeAlias = Literal["turn", "model", "tool", "item", "talk"]
StepState: TypeAlias = Literal["open", "done", "bad", "waiting"]

_BAD_RESULTS = ("error", "unknown", "invalid")


@dataclass(slots=True)
class Step:
    """Some events that belong together."""

    key: str
    kind: StepKind
    title: str
    time: str
    state: StepState = "open"
    note: str = ""
    events: list[Event] = field(default_factory=list)
    duration_s: float | None = None

    @property
    def is_bad(self) -> bool:
        """Whether something went wrong here."""
        return self.state == "bad"

    def holds(self, needle: str) -> bool:
        """Whether every word of `needle` is somewhere in its texts."""
        text = f"{self.kind} {self.title} {self.note}".lower()
        words = needle.lower().split()
        if all(w in text for w in words):
            return True
        text += " ".join(json_line(e) for e in self.events).lower()
        return all(w in text for w in words)


def json_line(event: Event) -> str:
    """An event as one line of JSON, as `capuchin show --format json` has it."""
    return json.dumps(to_json(event), ensure_ascii=False)


def json_text(event: Event) -> str:
    """An event as JSON laid out for reading."""
    return json.dumps(to_json(event), ensure_ascii=False, indent=2)


@dataclass(slots=True)
class Steps:
    """The steps of one log; feed it every event once and in order."""

    steps: list[Step] = field(default_factory=list)
    raw: list[Event] = field(default_factory=list)
    _calls: dict[str, Step] = field(default_factory=dict)
    _items: dict[str, Step] = field(default_factory=dict)
    _turn: Step | None = None
    _reply: Step | None = None

    def feed(self, events: Iterable[Event]) -> None:
        """Take the next events."""
        for event in events:
            self.raw.append(event)
            self._take(event)

    def _new(self, event: Event, kind: StepKind, title: str, state: StepState, note: str) -> Step:
        step = Step(f"{event.offset}", kind, title, event.time, state, note, [event])
        self.steps.append(step)
        return step

    def _take(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._turn = self._new(event, "turn", f"turn {event.turn}", "open", event.text)
            case TurnEnded():
                self._end_turn(event)
            case AssistantSaid():
                self._reply = self._new(event, "model", event.model, "done", event.text)
            case UsageRecorded():
                self._count(event)
            case ToolRequested() | ToolStarted() | ToolEnded():
                self._call(event)
            case ItemOpened() | ItemDecided():
                self._item(event)
            case _:
                self._talk(event)

    def _talk(self, event: Event) -> None:
        """What the conversation tells of itself."""
        match event:
            case MessageQueued():
                self._new(event, "talk", "message queued", "done", event.text)
            case DefinitionPinned():
                name = f"{event.agent} {event.version}"
                self._new(event, "talk", "definition pinned", "done", f"{name} · {event.model}")
            case LimitReached():
                self._new(event, "talk", f"limit {event.limit}", "bad", str(event.value))
            case RolledOver():
                self._new(event, "talk", "rolled over", "done", event.previous_run_id)
            case ConversationClosed():
                state: StepState = "bad" if event.status == "failed" else "done"
                self._new(event, "talk", f"conversation {event.status}", state, event.detail)
            case UnknownEvent():
                self._new(event, "talk", event.name, "done", "not known to this release")
            case _:
                self._new(event, "talk", event.kind.replace("_", " "), "done", "")

    def _end_turn(self, event: TurnEnded) -> None:
        state: StepState = "done" if event.outcome in ("answered", "cancelled") else "bad"
        turn, self._turn = self._turn, None
        if turn is None:
            self._new(event, "turn", f"turn {event.turn}", state, event.detail)
            return
        turn.events.append(event)
        turn.state = state
        if event.outcome != "answered":
            turn.title = f"turn {event.turn} {event.outcome.replace('_', ' ')}"
            turn.note = event.detail or turn.note

    def _count(self, event: UsageRecorded) -> None:
        cached = event.cache_read_tokens + event.cache_write_tokens
        tokens = event.input_tokens + event.output_tokens + cached
        if self._reply is not None:
            self._reply.events.append(event)
            self._reply.title = f"{event.model} · {tokens:,} tokens"
            self._reply = None
        else:
            self._new(event, "model", f"{event.model} · {tokens:,} tokens", "done", "")

    def _call(self, event: ToolRequested | ToolStarted | ToolEnded) -> None:
        step = self._calls.get(event.call_id)
        if step is None:
            note = "" if isinstance(event, ToolEnded) else event.arguments
            step = self._new(event, "tool", event.tool, "open", note)
            self._calls[event.call_id] = step
        else:
            step.events.append(event)
        match event:
            case ToolRequested(verdict="ask"):
                step.state = "waiting"
            case ToolRequested(verdict="deny" | "invalid"):
                step.state = "bad" if event.verdict == "invalid" else "done"
                step.title = f"{event.tool} · {event.verdict}"
            case ToolEnded():
                step.state = "bad" if event.status in _BAD_RESULTS else "done"
                step.title = f"{step.title} · {event.status}"
                step.duration_s = event.duration_s
            case _:
                step.state = "open"

    def _item(self, event: ItemOpened | ItemDecided) -> None:
        if isinstance(event, ItemOpened):
            item_id = str(event.item.get("id", ""))
            kind = str(event.item.get("kind", "item"))
            title = str(event.item.get("title", ""))
            self._items[item_id] = self._new(event, "item", kind, "waiting", title)
            return
        step = self._items.pop(event.item_id, None)
        who = f" by {event.by}" if event.by else ""
        told = f"{event.item_kind} · {event.choice.replace('_', ' ')}{who}"
        if step is None:
            self._new(event, "item", told, "done", event.reason)
            return
        step.events.append(event)
        step.title, step.state = told, "done"
        step.duration_s = event.waited_s or None
        step.note = event.reason or step.note
