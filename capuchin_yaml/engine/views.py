"""The conversation at a glance, as the `state` query answers it."""

from __future__ import annotations

from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.spec import JsonValue


def state_view(c: Conversation, status: str, detail: str) -> dict[str, JsonValue]:
    """Return the state with every open item and grant whole; `detail` says why it failed."""
    definition = c.definition
    return {
        "v": 1,
        "conversation": c.id,
        "agent": c.agent,
        "status": status,
        "waiting": len(c.items),
        "title": c.title,
        "turn": c.turn.number if c.turn else None,
        "queued": [{k: m[k] for k in ("id", "text", "by")} for m in c.queue],
        "items": list(c.items.values()),
        "grants": list(c.grants),
        "still_running": list(c.still_running.values()),
        "definition": {
            "version": definition.spec["version"],
            "hash": definition.hash,
            "model": definition.model,
        }
        if definition
        else None,
        "usage": dict(c.usage),
        "events": c.first_event + len(c.events),
        "entries": c.first_entry + len(c.entries),
        "created_at": c.created_at,
        "updated_at": c.updated_at,
        "detail": detail or _detail(c),
        "paused": c.paused,
        "migrating": c.migrating,
        "run": c.run,
    }


def closed_summary(c: Conversation) -> dict[str, JsonValue]:
    """What a closed conversation returns as its result."""
    closing = c.closing or {}
    return {
        "v": 1,
        "conversation": c.id,
        "agent": c.agent,
        "status": "closed",
        "title": c.title,
        "turns": c.messages - len(c.queue),
        "calls": c.calls,
        "usage": dict(c.usage),
        "closed_by": closing.get("by", ""),
        "reason": closing.get("reason", ""),
    }


def _detail(c: Conversation) -> str:
    if c.paused is not None:
        reason = f": {c.paused['reason']}" if c.paused.get("reason") else ""
        return f"{c.agent} is paused by {c.paused.get('by') or 'somebody'}{reason}"
    if c.closing is not None:
        return str(c.closing.get("reason", ""))
    return ""
