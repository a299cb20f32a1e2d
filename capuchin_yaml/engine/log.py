"""The event log of a conversation, written inside the workflow."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.events import Event, to_json


class Log:
    """Appends events with their offset and the workflow's time."""

    def __init__(self, conversation: Conversation) -> None:
        self._c = conversation

    def add(self, kind: type[Event], **fields: Any) -> None:
        """Append one event."""
        time = workflow.now().isoformat()
        offset = self._c.first_event + len(self._c.events)
        self._c.events.append(to_json(kind(offset=offset, time=time, **fields)))
        self._c.updated_at = time
