"""The state of one conversation: plain data that survives a roll-over.

Pure: no clock, no I/O, no temporalio. The workflow owns one `Conversation` and is the only
writer; everything in here is rebuilt by replay, and carried whole to the next run.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from capuchin_yaml.engine.contract import MAX_CARRIED_BYTES, MAX_RECENT_REQUESTS, REQUEST_AGE_S
from capuchin_yaml.spec import JsonValue, canonical_json

DECIDED_KEPT = 200
"""Decisions that a late or second decider is told of by name."""


@dataclass(slots=True)
class Call:
    """One tool call of the running turn."""

    n: int
    call_id: str
    alias: str
    input: dict[str, JsonValue]
    problem: str | None = None
    tool: str = ""
    arguments: str = ""
    digest: str = ""
    distribution: str = ""
    reason: str = ""
    rule: str = ""
    """The rule that decided, as written and where it stands."""
    gated: bool = False
    stage: str = "new"
    """new → (preview → asked) → ready → running → done; `unknown` waits for an outcome."""
    item_id: str = ""
    revision: int = 1
    outcome_revision: int = 0
    requested_by: str = ""
    """The person who wrote the arguments; empty for the model."""
    before: str = ""
    """The model's arguments, when a person changed them."""
    entries: int = 0
    """Times a worker was asked to enter the tool."""
    unavailable: int = 0
    """Times the tool could not be entered."""
    status: str = ""
    text: str = ""
    duration_s: float | None = None
    artifacts: dict[str, JsonValue] = field(default_factory=dict)
    receipt: dict[str, JsonValue] | None = None
    has_preview: bool = False
    terms: dict[str, JsonValue] = field(default_factory=dict)
    """Who decides and by when, when it is asked; see `items.terms_of`."""
    may_decide: list[str] = field(default_factory=list)
    """Who was in the groups of the terms when it was judged."""
    may_then: list[str] = field(default_factory=list)
    """Who was in the group that it is escalated to."""
    gate_asked: int = 0
    """Times the operator's gate was asked."""
    preview: str = ""
    preview_hash: str = ""
    late: dict[str, JsonValue] | None = None

    @property
    def was_started(self) -> bool:
        """Whether some worker entered the tool, or may have."""
        return self.entries > self.unavailable


@dataclass(slots=True)
class Turn:
    """The user message being answered."""

    number: int
    message_id: str
    by: str = ""
    """Who wrote the message."""
    phase: str = "model"
    """model → judge → gate → calls → model …, with `limit` between any two while a limit waits."""
    limit: str = ""
    limit_item: str = ""
    step: int = 0
    steps_allowed: int = 0
    calls_made: int = 0
    calls_allowed: int = 0
    same: dict[str, int] = field(default_factory=dict)
    same_allowed: int = 0
    cut_off: int = 0
    calls: list[Call] = field(default_factory=list)
    cancelled_by: str | None = None

    def allow(self, limits: Mapping[str, JsonValue]) -> None:
        """Set what the turn may do before a person is asked."""
        self.steps_allowed = int(limits["max_steps"])
        self.calls_allowed = int(limits["max_tool_calls"])
        self.same_allowed = int(limits["same_call"])


@dataclass(slots=True)
class Definition:
    """What was pinned at the start."""

    spec: dict[str, JsonValue]
    hash: str
    model: str
    system: str
    roll_over_events: int
    pin: int = 1
    """How often one was pinned, this one included."""


@dataclass(slots=True)
class Conversation:
    """Everything a conversation knows."""

    id: str
    agent: str
    created_at: str
    definition: Definition | None = None
    run: int = 1
    earlier: list[dict[str, JsonValue]] = field(default_factory=list)
    """Runs before this one, oldest first: `{run_id, first_event, first_entry}`."""

    events: list[dict[str, JsonValue]] = field(default_factory=list)
    first_event: int = 0
    entries: list[dict[str, JsonValue]] = field(default_factory=list)
    """Transcript entries this run holds; the model's window is all of them."""
    first_entry: int = 0
    window_digest: str = ""
    """Chained digest of all entries."""
    known_entries: int = 0
    known_digest: str = ""
    """Count and digest of the entries that the worker had after the last model call."""

    queue: list[dict[str, JsonValue]] = field(default_factory=list)
    messages: int = 0
    """Messages accepted so far; the k-th is answered by turn k."""
    turn: Turn | None = None
    calls: int = 0
    limits_hit: int = 0
    items: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    decided: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    loose_calls: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    """Calls of ended turns whose outcome is still unknown, by item id."""
    grants: list[dict[str, JsonValue]] = field(default_factory=list)
    """What persons allowed beforehand: `{id, scope, tool, digest, left, until, by, at}`."""
    grants_given: int = 0
    hooks: bool = False
    """Whether the operator wants to be told of what waits, as last heard from a worker."""
    notices: list[dict[str, JsonValue]] = field(default_factory=list)
    """What whoever is to be told has not been told yet, oldest first."""
    notices_made: int = 0
    still_running: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    """By call id: calls that were given up and run on, `{call_id, tool, since}`."""
    notes: list[str] = field(default_factory=list)
    """What the model is told before the next message."""
    seen: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    tallies: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    """By tool identity: calls of ended replies that were started, for rules that count."""
    untrusted: bool = False
    """Whether the model has read what a tool returned."""
    usage: dict[str, int] = field(
        default_factory=lambda: {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
        }
    )
    title: str = ""
    updated_at: str = ""
    closing: dict[str, JsonValue] | None = None
    paused: dict[str, JsonValue] | None = None
    """Who holds the next turn back, since when and why: `{by, at, reason}`."""
    migrating: dict[str, JsonValue] | None = None
    """Who asked for the definition on disk, to be pinned before the next turn."""

    def __post_init__(self) -> None:
        if not self.window_digest:
            self.window_digest = self.known_digest = window_start(self.id, self.first_entry)

    def add_entry(self, entry: dict[str, JsonValue]) -> None:
        """Append to the transcript and its digest."""
        self.entries.append(entry)
        self.window_digest = chained(self.window_digest, entry)

    def new_entries(self) -> tuple[dict[str, JsonValue], ...]:
        """Entries that the worker of the last model call does not have yet."""
        return tuple(self.entries[self.known_entries :])

    def mark_known(self) -> None:
        """The worker that answered has every entry up to now."""
        self.known_entries = len(self.entries)
        self.known_digest = self.window_digest

    def remember(self, request_id: str, at_s: float, answer: dict[str, JsonValue]) -> None:
        """Keep the answer to a request, and drop those too old to be repeated."""
        oldest = at_s - 2 * REQUEST_AGE_S
        for key in [k for k, v in self.seen.items() if v["at_s"] < oldest]:
            del self.seen[key]
        self.seen[request_id] = {"at_s": at_s, "answer": answer}

    def too_many_requests(self, at_s: float) -> bool:
        """Whether the recent requests fill the memory that keeps repeats apart."""
        if len(self.seen) < MAX_RECENT_REQUESTS:
            return False
        oldest = at_s - 2 * REQUEST_AGE_S
        return sum(1 for v in self.seen.values() if v["at_s"] >= oldest) >= MAX_RECENT_REQUESTS

    def forget_running(self, before: datetime) -> None:
        """Drop the given-up calls of which no worker has said anything since then."""
        self.still_running = {
            call_id: running
            for call_id, running in self.still_running.items()
            if datetime.fromisoformat(str(running["since"])) > before
        }

    def record_decision(self, item_id: str, decision: dict[str, JsonValue]) -> None:
        """Keep how an item was decided, for whoever comes late."""
        self.decided[item_id] = decision
        while len(self.decided) > DECIDED_KEPT:
            del self.decided[next(iter(self.decided))]

    def carry(self, run_id: str) -> dict[str, JsonValue]:
        """The state for the next run: no events, and a window within `MAX_CARRIED_BYTES`."""
        earlier = [
            *self.earlier,
            {"run_id": run_id, "first_event": self.first_event, "first_entry": self.first_entry},
        ]
        entries, dropped = _window(self.entries)
        kept = entries is self.entries
        value = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("definition", "turn", "events", "entries")
        }
        value |= {
            "definition": dataclasses.asdict(self.definition) if self.definition else None,
            "turn": dataclasses.asdict(self.turn) if self.turn else None,
            "run": self.run + 1,
            "earlier": earlier,
            "events": [],
            "first_event": self.first_event + len(self.events),
            "entries": entries,
            "first_entry": self.first_entry + dropped,
        }
        if not kept:
            digest = window_start(self.id, self.first_entry + dropped)
            for entry in entries:
                digest = chained(digest, entry)
            value |= {
                "window_digest": digest,
                "known_entries": 0,
                "known_digest": window_start(self.id, self.first_entry + dropped),
            }
        return value

    def become(self, closed: Conversation) -> None:
        """Go on as a closed conversation, opened again: nothing runs, waits or is allowed."""
        for f in dataclasses.fields(self):
            setattr(self, f.name, getattr(closed, f.name))
        self.closing = self.turn = self.paused = self.migrating = None
        self.queue, self.items, self.loose_calls, self.grants = [], {}, {}, []
        self.notices, self.still_running = [], {}

    @classmethod
    def resume(cls, value: Mapping[str, Any]) -> Conversation:
        """Rebuild what `carry` wrote; keys of another release are ignored."""
        names = {f.name for f in dataclasses.fields(cls)}
        kept = {k: v for k, v in value.items() if k in names}
        if kept.get("definition"):
            kept["definition"] = _rebuild(Definition, kept["definition"])
        if kept.get("turn"):
            turn = _rebuild(Turn, kept["turn"])
            turn.calls = [_rebuild(Call, c) for c in kept["turn"].get("calls", ())]
            kept["turn"] = turn
        return cls(**kept)


def window_start(conversation: str, first_entry: int) -> str:
    """The digest of an empty window that begins at this entry."""
    return hashlib.sha256(f"window\0{conversation}\0{first_entry}".encode()).hexdigest()


def chained(digest: str, entry: Mapping[str, JsonValue]) -> str:
    """The digest of a window with one more entry."""
    text = digest + canonical_json(entry)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def size_bytes(value: JsonValue) -> int:
    """Bytes of the value as JSON."""
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))


def _window(
    entries: list[dict[str, JsonValue]],
) -> tuple[list[dict[str, JsonValue]], int]:
    """Drop whole oldest turns until the rest fits; then cut old texts of the one that is left."""
    sizes = [size_bytes(e) for e in entries]
    total = sum(sizes)
    if total <= MAX_CARRIED_BYTES:
        return entries, 0
    start = 0
    for i, entry in enumerate(entries):
        if entry["kind"] == "user":
            start = i
            if total - sum(sizes[:i]) <= MAX_CARRIED_BYTES:
                break
    kept = [dict(e) for e in entries[start:]]
    excess = sum(sizes[start:]) - MAX_CARRIED_BYTES
    for entry, size in zip(kept, sizes[start:], strict=True):
        if excess <= 0:
            break
        text = entry.get("text")
        if isinstance(text, str) and size > 1024:
            entry["text"] = f"{text[:200]}\n[… {len(text)} characters, no longer in the window]"
            excess -= size - size_bytes(entry)
    return kept, start


def _rebuild(cls: Any, value: Mapping[str, Any]) -> Any:
    names = {f.name for f in dataclasses.fields(cls)}
    return cls(**{k: v for k, v in value.items() if k in names})
