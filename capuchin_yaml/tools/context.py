"""What the house tells a tool about the call it is in; the model never sees any of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from capuchin_yaml.spec import JsonValue


def _beat_nothing(*details: object) -> None:
    """Stand in for a heartbeat where no server listens."""


class ToolContext:
    """The call a tool is in: declare a parameter `ctx: ToolContext` (any name) to get it."""

    __slots__ = (
        "_data_dir",
        "attempt",
        "call_id",
        "config",
        "conversation_id",
        "heartbeat",
        "idempotency_key",
        "injected",
        "log",
    )

    idempotency_key: str
    """The same for every attempt at this call with these arguments, and for no other call."""
    conversation_id: str
    call_id: str
    attempt: int
    """From 1."""
    config: Mapping[str, JsonValue]
    """The `config` that the agent's file gives this tool."""
    injected: Mapping[str, JsonValue]
    """Values given by whoever started the conversation, such as a tenant."""
    heartbeat: Callable[..., None]
    """Tells the server that the call is alive, with small details of its progress."""
    log: logging.Logger

    def __init__(
        self,
        *,
        idempotency_key: str,
        conversation_id: str,
        call_id: str,
        attempt: int,
        data_dir: Path,
        config: Mapping[str, JsonValue] | None = None,
        injected: Mapping[str, JsonValue] | None = None,
        heartbeat: Callable[..., None] = _beat_nothing,
        log: logging.Logger | None = None,
    ) -> None:
        self.idempotency_key = idempotency_key
        self.conversation_id = conversation_id
        self.call_id = call_id
        self.attempt = attempt
        self.config = {} if config is None else config
        self.injected = {} if injected is None else injected
        self.heartbeat = heartbeat
        self.log = log or logging.getLogger("capuchin_yaml.tools.calls")
        self._data_dir = data_dir

    @property
    def data_dir(self) -> Path:
        """A folder that outlives the call, made on first use for this user alone.

        Raises:
            OSError: it cannot be made; the error names the folder.
        """
        if not self._data_dir.is_dir():
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._data_dir
