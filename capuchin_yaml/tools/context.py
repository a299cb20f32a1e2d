"""What the house tells a tool about the call it is in; the model never sees any of it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.child import Children, CompletedRun


def _beat_nothing(*details: object) -> None:
    """Stand in for a heartbeat where no server listens."""


class ToolContext:
    """The call a tool is in: declare a parameter `ctx: ToolContext` (any name) to get it."""

    __slots__ = (
        "_data_dir",
        "attempt",
        "call_id",
        "cancelled",
        "children",
        "config",
        "conversation_id",
        "heartbeat",
        "idempotency_key",
        "injected",
        "log",
        "preview_hash",
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
    cancelled: threading.Event
    """Set once the call is cancelled. `is_set()` between two steps, `wait(seconds)` for a pause
    that a cancel ends. Code that does not look is interrupted by ToolCancelled (a sync tool) or
    asyncio.CancelledError (an async one)."""
    preview_hash: str | None
    """`preview_hash()` of what the tool's preview gave when a person was asked; None without."""
    children: Children
    """The programs that `run` and `run_async` started; for the house."""

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
        cancelled: threading.Event | None = None,
        preview_hash: str | None = None,
    ) -> None:
        self.idempotency_key = idempotency_key
        self.conversation_id = conversation_id
        self.call_id = call_id
        self.attempt = attempt
        self.config = {} if config is None else config
        self.injected = {} if injected is None else injected
        self.heartbeat = heartbeat
        self.log = log or logging.getLogger("capuchin_yaml.tools.calls")
        self.cancelled = cancelled or threading.Event()
        self.preview_hash = preview_hash
        self.children = Children(self.cancelled)
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

    def run(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        timeout_s: float | None = None,
        input: str | bytes | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CompletedRun:
        """Run a program to its end and return what it said, whatever its exit code.

        It has a process group of its own, no terminal, and of the environment only PATH, HOME,
        LANG and what `env` names. It and all it started in its group are gone when this
        returns, and when the call is cancelled or the worker ends.

        Raises:
            ToolCancelled: the call was cancelled.
            TimeoutError: it took longer than `timeout_s`.
            OSError: it cannot be started.
        """
        return self.children.run(args, timeout_s=timeout_s, input=input, cwd=cwd, env=env)

    async def run_async(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        timeout_s: float | None = None,
        input: str | bytes | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CompletedRun:
        """As `run`, for async tools; cancelling the await ends the program."""
        return await self.children.run_async(
            args, timeout_s=timeout_s, input=input, cwd=cwd, env=env
        )
