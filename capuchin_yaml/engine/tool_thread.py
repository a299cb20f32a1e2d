"""One call of a tool in a thread of its own, and how it is stopped.

A call that is cancelled hears of it three ways: `ctx.cancelled` is set, its programs are
ended, and its code is interrupted: an async tool by `asyncio.CancelledError`, a sync one by
`ToolCancelled`, raised in its thread at the next bytecode. Nothing can interrupt code that
waits inside the C library; such a call runs on, and its result is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future

from capuchin_yaml.engine.tool_outcome import MAX_ERROR, Maker, Outcome
from capuchin_yaml.errors import ToolCancelled, ToolFailed, ToolUnavailable
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.definition import Tool

STUBBORN_S = 1.0
"""Time after which an async tool that blocks its loop is interrupted like a sync one."""

logger = logging.getLogger("capuchin_yaml.tools")
_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc


class RunningCall:
    """One call that was entered."""

    def __init__(
        self,
        tool: Tool,
        arguments: Mapping[str, JsonValue],
        context: ToolContext,
        outcomes: Maker,
    ) -> None:
        self.result: Future[Outcome] = Future()
        self.tool = tool
        self.context = context
        self.started = time.monotonic()
        self.is_watched = False
        """Whether somebody waits to report the end to the conversation by an update."""
        self._arguments = arguments
        self._outcomes = outcomes
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._lock = threading.Lock()
        self._thread: int | None = None
        """The thread while the tool's own code is in it, so that nothing else is interrupted."""
        self._interrupted = False

    def start(self) -> None:
        """Enter the tool."""
        # Why: from here on nobody who waits for the result can cancel it away.
        self.result.set_running_or_notify_cancel()
        name = f"tool {self.context.call_id}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def cancel(self) -> None:
        """Tell the tool to stop; may be called from any thread, and more than once."""
        self.context.cancelled.set()
        self.context.children.stop()
        if not self.tool.is_async:
            self._interrupt()
            return
        with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
        timer = threading.Timer(STUBBORN_S, self._interrupt)
        timer.daemon = True
        timer.start()

    def _interrupt(self) -> None:
        with self._lock:
            if self._thread is not None and not self._interrupted:
                self._interrupted = True
                _raise_in_thread(ctypes.c_ulong(self._thread), ctypes.py_object(ToolCancelled))

    def _run(self) -> None:
        value: object = None
        error: BaseException | None = None
        has_returned = False
        try:
            value = self._call()
            has_returned = True
        except BaseException as raised:
            error = raised
        # Why a loop: the one interruption may come between any two lines up to here.
        while True:
            try:
                self._leave()
                break
            except ToolCancelled as late:
                error = error if has_returned or error else late
        try:
            self.context.children.kill()
            outcome = self._outcome(value, error)
        except BaseException as broken:
            logger.exception("what %s gave could not be told", self.context.call_id)
            outcome = {"status": "unknown", "text": f"{type(broken).__name__} after it ended"}
        self.result.set_result(outcome)

    def _call(self) -> object:
        with self._lock:
            self._thread = threading.get_ident()
        if self.context.cancelled.is_set():
            raise ToolUnavailable("it was cancelled before it was entered")
        if not self.tool.is_async:
            return self.tool.call_sync(self._arguments, self.context)
        return asyncio.run(self._call_async())

    async def _call_async(self) -> object:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self.context.cancelled.is_set():
            raise ToolUnavailable("it was cancelled before it was entered")
        return await self.tool.call_async(self._arguments, self.context)

    def _leave(self) -> None:
        """From here on nobody interrupts this thread, also not with what was sent before."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                _raise_in_thread(ctypes.c_ulong(thread), None)

    def _outcome(self, value: object, error: BaseException | None) -> Outcome:
        match error:
            case None:
                return self._outcomes.returned(self.tool, value)
            case ToolFailed():
                return self._outcomes.raised("error", str(error) or "The tool failed.")
            case ToolUnavailable():
                return self._outcomes.raised("unavailable", str(error) or "not available")
        repeatable = self.tool.idempotent or self.tool.effect == "read"
        is_stop = isinstance(error, ToolCancelled | asyncio.CancelledError)
        if is_stop and self.context.cancelled.is_set():
            status = "cancelled" if repeatable else "unknown"
            return self._outcomes.raised(status, "it was stopped while it was running")
        # Why scrubbed before it is cut: half a secret is found by nobody.
        text = self._outcomes.scrubber.scrub(f"{type(error).__name__}: {error}")[:MAX_ERROR]
        logger.warning("%s raised %s", self.context.call_id, text, exc_info=error)
        status = "error" if repeatable else "unknown"
        if repeatable and isinstance(error, OSError):
            status = "retry"
        return self._outcomes.raised(status, text)
