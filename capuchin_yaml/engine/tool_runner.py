"""Runs one tool call: exactly the arguments that were judged, at most once when it must be.

Tool code never runs on the worker's main loop. Every call has a thread of its own, an async
tool with a loop of its own in it, so a call that blocks holds up nothing else. The wrapper
beats, times, converts and caps, and says plainly whether the tool was ever entered.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import check_origin
from capuchin_yaml.engine.call_secrets import Secrets
from capuchin_yaml.engine.journal import Journal
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.errors import PluginUnavailable, ToolFailed, ToolUnavailable
from capuchin_yaml.items import call_digest
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.definition import Tool
from capuchin_yaml.tools.registry import Registry
from capuchin_yaml.tools.results import result_text

Outcome: TypeAlias = dict[str, JsonValue]
"""`{status, text, duration_s}`; status is ok, error (it did not do it), unknown, unavailable
(never entered) or changed (this worker would run something else)."""

LATE_TRIES = 60
LATE_PAUSE_S = 10.0
ONE_ATTEMPT_SILENCE_S = 55.0
"""A one-attempt call longer than this may have been given up by the server meanwhile."""
_HEAD_PART = 0.75

logger = logging.getLogger("capuchin_yaml.tools")


@dataclass(slots=True)
class ToolRunner:
    """The tool activity of one worker."""

    client: Client
    registry: Registry
    data_dir: Path
    journal: Journal
    store: FolderStore | None = None
    operator: LiveOperatorConfig = field(default_factory=LiveOperatorConfig)
    late: set[asyncio.Task[None]] = field(default_factory=set)
    """Calls that the server gave up, still watched to their end."""

    @activity.defn(name=contract.CALL_TOOL)
    async def call_tool(self, request: contract.CallTool) -> Outcome:
        """Run the call, or say why it was not entered."""
        check_origin(request, contract.CallTool)
        tool, refusal = self._find(request)
        if tool is None:
            return refusal
        given = Secrets()
        try:
            config = given.resolved(
                request.config, request.tool, self.operator.now().grants, os.environ
            )
        except ToolUnavailable as error:
            return {"status": "unavailable", "text": str(error)}
        if request.one_attempt and not await asyncio.to_thread(
            self.journal.enter, _journal_key(request)
        ):
            return {"status": "unknown", "text": "this very call was already entered once before"}
        started = time.monotonic()
        running = self._enter(tool, request, config, given)
        beat = asyncio.create_task(_beat())
        try:
            outcome = await asyncio.wait_for(
                asyncio.shield(asyncio.wrap_future(running.result)), request.timeout_s
            )
        except TimeoutError:
            outcome = self._timed_out(running, request)
        except asyncio.CancelledError:
            if request.one_attempt:
                self._watch(running, request)
            else:
                running.cancel()
            raise
        finally:
            beat.cancel()
        outcome["duration_s"] = round(time.monotonic() - started, 3)
        if outcome["status"] == "retry":
            if activity.info().attempt < 4:
                raise ConnectionError(str(outcome["text"]))
            outcome["status"] = "error"
        if request.one_attempt and time.monotonic() - started > ONE_ATTEMPT_SILENCE_S:
            self._watch(running, request)
        return outcome

    async def stop(self) -> None:
        """Stop watching late calls; what they would say is asked of a person."""
        for task in list(self.late):
            task.cancel()
        if self.late:
            await asyncio.wait(list(self.late), timeout=5)
        self.journal.close()

    def _find(self, request: contract.CallTool) -> tuple[Tool | None, Outcome]:
        entry, _, name = request.tool.partition(".")
        try:
            package = self.registry.package(entry)
            tool = package.tools.get(name)
        except PluginUnavailable as error:
            return None, {"status": "unavailable", "text": str(error)}
        if tool is None:
            text = f"{request.tool} is no longer installed on this worker"
            return None, {"status": "unavailable", "text": text}
        here = {
            "identity": request.tool,
            "tool_version": tool.version,
            "distribution": package.distribution,
            "distribution_version": package.distribution_version,
            "config": dict(request.config),
        }
        digest = call_digest(here, request.arguments, request.injected, request.definition_hash)
        if digest != request.digest:
            text = f"this worker has {package.distribution} {package.distribution_version}"
            return None, {"status": "changed", "text": text}
        return tool, {}

    def _enter(
        self, tool: Tool, request: contract.CallTool, config: dict[str, JsonValue], given: Secrets
    ) -> _Running:
        info = activity.info()
        loop = asyncio.get_running_loop()
        heartbeat = activity.heartbeat

        def beat(*details: object) -> None:
            loop.call_soon_threadsafe(heartbeat, *details)

        entry = request.tool.partition(".")[0]
        context = ToolContext(
            idempotency_key=idempotency_key(info.namespace, request),
            conversation_id=request.conversation,
            call_id=request.call_id,
            attempt=info.attempt,
            data_dir=self.data_dir / entry,
            config=config,
            injected=dict(request.injected),
            heartbeat=beat,
        )
        running = _Running(tool, json.loads(request.arguments), context, self._finish, given)
        running.start(request.call_id)
        return running

    def _finish(self, tool: Tool, value: object, given: Secrets) -> Outcome:
        """What the tool returned as text; from here on nothing may fail, for it has happened."""
        try:
            text = result_text(value)
        except ToolFailed as error:
            text = f"({tool.name} ended, but its result cannot be shown: {error})"
        return {"status": "ok", "text": self._capped(given.hidden(text))}

    def _capped(self, text: str) -> str:
        data = text.encode("utf-8", "replace")
        if len(data) <= contract.MAX_RESULT_BYTES:
            return data.decode()
        digest = hashlib.sha256(data).hexdigest()
        if self.store is not None:
            try:
                self.store.put(data)
            except OSError as error:
                logger.warning("a large result could not be kept whole: %s", error)
        head = int(contract.MAX_RESULT_BYTES * _HEAD_PART)
        tail = contract.MAX_RESULT_BYTES - head
        return (
            data[:head].decode("utf-8", "ignore")
            + f"\n[… {len(data) - head - tail} of {len(data)} bytes left out; "
            + f"the whole result has sha256 {digest} …]\n"
            + data[-tail:].decode("utf-8", "ignore")
        )

    def _timed_out(self, running: _Running, request: contract.CallTool) -> Outcome:
        text = f"no answer within {request.timeout_s:g} s"
        if request.one_attempt:
            self._watch(running, request)
            return {"status": "unknown", "text": text}
        running.cancel()
        return {"status": "error", "text": f"The tool gave {text}."}

    def _watch(self, running: _Running, request: contract.CallTool) -> None:
        """Report the end of a call that the server has given up, whenever that comes."""
        task = asyncio.create_task(self._report_late(running, request))
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def _report_late(self, running: _Running, request: contract.CallTool) -> None:
        outcome = await asyncio.wrap_future(running.result)
        if outcome["status"] not in ("ok", "error"):
            return
        handle = self.client.get_workflow_handle(request.conversation)
        update_id = f"late:{request.n}:{request.digest[:24]}"
        for attempt in range(LATE_TRIES):
            await asyncio.sleep(LATE_PAUSE_S if attempt else 1.0)
            report = contract.LateResult(
                conversation=request.conversation,
                id=f"{update_id}:{attempt}",
                by="",
                client="worker",
                sent_at=datetime.now(UTC).isoformat(),
                call_id=request.call_id,
                digest=request.digest,
                status=str(outcome["status"]),
                text=str(outcome["text"]),
            )
            try:
                await handle.execute_update(
                    contract.LATE_RESULT,
                    report,
                    id=report.id,
                    result_type=dict,
                    rpc_timeout=timedelta(seconds=10),
                )
                return
            except WorkflowUpdateFailedError as error:
                if getattr(error.cause, "type", "") != contract.ROLLING_OVER:
                    logger.warning("late result of %s refused: %s", request.call_id, error.cause)
                    return
            except Exception as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise  # the SDK turns a cancel into an error of its own
                logger.warning("late result of %s not delivered: %s", request.call_id, error)


class _Running:
    """One call in its own thread."""

    def __init__(
        self,
        tool: Tool,
        arguments: Mapping[str, JsonValue],
        context: ToolContext,
        finish: Callable[[Tool, object, Secrets], Outcome],
        given: Secrets,
    ) -> None:
        self.result: Future[Outcome] = Future()
        self._tool = tool
        self._arguments = arguments
        self._context = context
        self._finish = finish
        self._given = given
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None

    def start(self, name: str) -> None:
        """Enter the tool."""
        # Why: from here on nobody who waits for the result can cancel it away.
        self.result.set_running_or_notify_cancel()
        threading.Thread(target=self._run, name=f"tool {name}", daemon=True).start()

    def cancel(self) -> None:
        """Ask an async tool to stop; a sync one runs on, and its result is dropped."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    def _run(self) -> None:
        outcome: Outcome
        try:
            outcome = self._finish(self._tool, self._call(), self._given)
        except ToolFailed as error:
            outcome = {"status": "error", "text": self._said(error) or "The tool failed."}
        except ToolUnavailable as error:
            outcome = {"status": "unavailable", "text": self._said(error) or "not available"}
        except BaseException as error:
            text = f"{type(error).__name__}: {self._said(error)}"[:2000]
            # Why: a trace may quote what the tool was given.
            logger.warning(
                "%s raised %s", self._context.call_id, text, exc_info=not self._given.any
            )
            outcome = {"status": self._after(error), "text": text}
        self.result.set_result(outcome)

    def _said(self, error: BaseException) -> str:
        return self._given.hidden(str(error))

    def _after(self, error: BaseException) -> str:
        repeatable = self._tool.idempotent or self._tool.effect == "read"
        if not repeatable:
            return "unknown"
        return "retry" if isinstance(error, OSError) else "error"

    def _call(self) -> object:
        if not self._tool.is_async:
            return self._tool.call_sync(self._arguments, self._context)
        return asyncio.run(self._call_async())

    async def _call_async(self) -> object:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        return await self._tool.call_async(self._arguments, self._context)


async def _beat() -> None:
    """Keep the call alive at the server, which is also how it hears of a cancel."""
    while True:
        # Why first: a call that ends before it needs no beat, which the server would write down.
        await asyncio.sleep(0.5)
        activity.heartbeat()


def _journal_key(request: contract.CallTool) -> str:
    return f"{request.first_run_id}:{request.call_id}:{request.entry}"


def idempotency_key(namespace: str, request: contract.CallTool) -> str:
    """The key a tool may hand to whatever it changes, 52 characters of lower-case base32.

    The same after a retry, restart, roll-over and reset to the same arguments; another for
    an edit, for another reply after a reset, and for a new conversation under a used id.
    """
    arguments = hashlib.sha256(request.arguments.encode()).hexdigest()
    parts = "\0".join((namespace, request.first_run_id, str(request.n), request.tool, arguments))
    digest = hashlib.sha256(parts.encode()).digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()
