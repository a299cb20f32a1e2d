"""Runs one tool call: exactly the arguments that were judged, at most once when it must be.

Tool code never runs on the worker's main loop. Every call has a thread of its own, an async
tool with a loop of its own in it, so a call that blocks holds up nothing else. The wrapper
beats, times, converts and caps, and says plainly whether the tool was ever entered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import check_origin
from capuchin_yaml.engine.call_secrets import Secrets
from capuchin_yaml.engine.journal import Journal
from capuchin_yaml.engine.pulse import Pulse
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.engine.tool_lookup import ToolRequest, find_tool, tool_context
from capuchin_yaml.engine.tool_outcome import Outcome, OutcomeMaker, PreviewMaker
from capuchin_yaml.engine.tool_thread import RunningCall
from capuchin_yaml.errors import ToolUnavailable
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.registry import Registry

LATE_TRIES = 60
LATE_PAUSE_S = 10.0
ONE_ATTEMPT_SILENCE_S = 55.0
"""A one-attempt call longer than this may have been given up by the server meanwhile."""
HEALTH_S = 2.0
_AWAY = (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED)
LAST_WORDS_S = 1.0
"""Time that calls have to put things in order once the worker has stopped."""
PREVIEW_S = 10.0
GIVE_UP_S = 2.0
"""Time a cancelled call has to end; the workflow waits a little longer than this."""

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
    scrubber: Scrubber = field(default_factory=Scrubber)
    late: set[asyncio.Task[None]] = field(default_factory=set)
    """Calls that the server gave up, still watched to their end."""
    still_running: dict[str, str] = field(default_factory=dict)
    """Tools by call id that were told to stop and did not: each holds a thread until it ends."""
    grace_over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a worker that is to stop waits no longer for running calls."""
    _running: set[RunningCall] = field(default_factory=set)

    @activity.defn(name=contract.CALL_TOOL)
    async def call_tool(self, request: contract.CallTool) -> Outcome:
        """Run the call, or say why it was not entered."""
        check_origin(request, contract.CallTool)
        tool, refusal = find_tool(self.registry, request)
        if tool is None:
            return refusal
        config, missing = self._config(request)
        if config is None:
            return missing
        if request.one_attempt and not await asyncio.to_thread(
            self.journal.enter, _journal_key(request)
        ):
            return {"status": "unknown", "text": "this very call was already entered once before"}
        pulse = Pulse()
        context = tool_context(
            request, config, self.data_dir, pulse.tell, request.preview_hash or None
        )
        outcomes = OutcomeMaker(self.scrubber, self.store)
        running = RunningCall(tool, json.loads(request.arguments), context, outcomes)
        self._running.add(running)
        running.result.add_done_callback(lambda _: self._running.discard(running))
        running.start()
        pulse.start()
        try:
            outcome = dict(await self._end_of(running, request))
            outcome["duration_s"] = round(time.monotonic() - running.started, 3)
            if request.one_attempt:
                await self._hold(running, request)
        finally:
            pulse.stop()
        if outcome["status"] == "retry":
            if activity.info().attempt < 4:
                raise ConnectionError(str(outcome["text"]))
            outcome["status"] = "error"
        if request.one_attempt and time.monotonic() - running.started > ONE_ATTEMPT_SILENCE_S:
            self._watch(running, request)
        return outcome

    @activity.defn(name=contract.PREVIEW_TOOL)
    async def preview_tool(self, request: contract.PreviewTool) -> Outcome:
        """What the call would do, in the words of its tool: `{status, text, hash}`.

        Status is none (the tool has no preview), ok, or error with the reason.
        """
        check_origin(request, contract.PreviewTool)
        tool, refusal = find_tool(self.registry, request)
        if tool is None:
            return {"status": "error", "text": refusal["text"], "hash": ""}
        if tool.preview is None:
            return {"status": "none", "text": "", "hash": ""}
        config, missing = self._config(request)
        if config is None:
            return {"status": "error", "text": missing["text"], "hash": ""}
        outcomes = PreviewMaker(self.scrubber)
        context = tool_context(request, config, self.data_dir, lambda *details: None)
        running = RunningCall(tool.preview, json.loads(request.arguments), context, outcomes)
        running.start()
        try:
            async with asyncio.timeout(PREVIEW_S):
                return await asyncio.shield(asyncio.wrap_future(running.result))
        except TimeoutError:
            self._let_go(running)
            return {"status": "error", "text": f"not ready within {PREVIEW_S:g} s", "hash": ""}
        except asyncio.CancelledError:
            self._let_go(running)
            raise

    def _config(self, request: ToolRequest) -> tuple[dict[str, JsonValue] | None, Outcome]:
        """The config with its variables' values, which the scrubber knows from now on."""
        given = Secrets()
        try:
            config = given.resolved(
                request.config, request.tool, self.operator.now().grants, os.environ
            )
        except ToolUnavailable as error:
            return None, {"status": "unavailable", "text": str(error)}
        for name, value in given.values.items():
            self.scrubber.add(name, value)
        return config, {}

    async def _end_of(self, running: RunningCall, request: contract.CallTool) -> Outcome:
        """The outcome of the call, or what is to be said when it does not come.

        Only a person's cancel stops a one-attempt call. That the server was away, has given
        the call up, or that the worker is to stop is no reason while it may still end well.
        """
        result: asyncio.Future[Any] = asyncio.wrap_future(running.result)
        over: asyncio.Future[Any] = asyncio.ensure_future(self.grace_over.wait())
        left_s = request.timeout_s
        deadline = running.started + left_s
        try:
            while True:
                try:
                    await asyncio.wait(
                        {result, over}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
                    )
                except asyncio.CancelledError:
                    if _person_cancelled():
                        return await self._cancelled(running, request)
                    if not request.one_attempt:
                        self._let_go(running)
                        raise
                    if _worker_stops() or self.grace_over.is_set():
                        self._watch(running, request)
                        raise
                    _uncancel()
                if result.done():
                    return running.result.result()
                if over.done():
                    self._watch(running, request)
                    raise ApplicationError("the worker stopped", type="WorkerShutdown")
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return self._timed_out(running, request)
        finally:
            over.cancel()

    async def _is_reachable(self) -> bool:
        try:
            await self.client.service_client.check_health(
                retry=False, timeout=timedelta(seconds=HEALTH_S)
            )
        except RPCError as error:
            return error.status not in _AWAY
        except (OSError, RuntimeError):
            return False
        return True

    async def _hold(self, running: RunningCall, request: contract.CallTool) -> None:
        """Keep an outcome while the server is away: the SDK would drop it after some seconds."""
        while not self.grace_over.is_set():
            try:
                if await self._is_reachable():
                    return
                self._watch(running, request)
                await asyncio.sleep(1.0)
            except asyncio.CancelledError:
                _uncancel()  # the outcome is known, whatever anybody wants now
                if _worker_stops() or self.grace_over.is_set():
                    return

    async def _cancelled(self, running: RunningCall, request: contract.CallTool) -> Outcome:
        """Stop a call, and give it up when it does not."""
        _uncancel()
        running.cancel()
        result = asyncio.wrap_future(running.result)
        await asyncio.wait({result}, timeout=GIVE_UP_S)
        if result.done():
            return running.result.result()
        self._list_as_running(running)
        self._watch(running, request)
        text = f"it was told to stop and was still running {GIVE_UP_S:g} s later"
        status = "unknown" if request.one_attempt else "cancelled"
        return {"status": status, "text": text, "still_running": True}

    def _let_go(self, running: RunningCall) -> None:
        """Stop a repeatable call that nobody waits for."""
        running.cancel()

        def look() -> None:
            if not running.result.done():
                self._list_as_running(running)

        asyncio.get_running_loop().call_later(GIVE_UP_S, look)

    def _list_as_running(self, running: RunningCall) -> None:
        call_id, name = running.context.call_id, running.tool.name
        self.still_running[call_id] = name
        logger.warning("%s of %s was told to stop and runs on", name, call_id)
        running.result.add_done_callback(lambda _: self._has_ended(running))

    def _has_ended(self, running: RunningCall) -> None:
        self.still_running.pop(running.context.call_id, None)
        logger.warning("%s of %s ended", running.tool.name, running.context.call_id)

    async def stop(self) -> None:
        """Stop what still runs, and stop watching; what it would say is asked of a person."""
        for task in list(self.late):
            task.cancel()
        if self.late:
            await asyncio.wait(list(self.late), timeout=5)
        left = list(self._running)
        for running in left:
            running.cancel()
        if left:
            ends = [asyncio.wrap_future(running.result) for running in left]
            await asyncio.wait(ends, timeout=LAST_WORDS_S)
        for running in left:
            running.context.children.kill()
        self.journal.close()

    def _timed_out(self, running: RunningCall, request: contract.CallTool) -> Outcome:
        text = f"no answer within {request.timeout_s:g} s"
        if request.one_attempt:
            self._watch(running, request)
            return {"status": "unknown", "text": text, "still_running": True}
        self._let_go(running)
        return {"status": "error", "text": f"The tool gave {text}."}

    def _watch(self, running: RunningCall, request: contract.CallTool) -> None:
        """Report the end of a call that the server has given up, whenever that comes."""
        if running.is_watched:
            return
        running.is_watched = True
        task = asyncio.create_task(self._report_late(running, request))
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def _report_late(self, running: RunningCall, request: contract.CallTool) -> None:
        outcome = await asyncio.wrap_future(running.result)
        if not request.one_attempt or outcome["status"] not in ("ok", "error"):
            # Nothing is known of what it did but that it runs no more.
            outcome = {"status": "ended", "text": ""}
        handle = self.client.get_workflow_handle(request.conversation)
        update_id = f"late:{request.n}.{request.entry}:{request.digest[:24]}"
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
                artifacts=outcome.get("artifacts", {}),
                receipt=outcome.get("receipt"),
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


def _person_cancelled() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def _worker_stops() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _journal_key(request: contract.CallTool) -> str:
    return f"{request.first_run_id}:{request.call_id}:{request.entry}"
