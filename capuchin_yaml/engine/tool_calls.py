"""The calls of one reply: several at once, gated ones beside them, a barrier at the end.

Runs inside the workflow. A call's stage is data (`Call.stage`), so a group goes on in
another run exactly where it was.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.desk import Desk
from capuchin_yaml.engine.late_results import LateResults
from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.preview import request_fields, show
from capuchin_yaml.engine.roll_over import RollOver
from capuchin_yaml.engine.state import Call, Conversation, Turn
from capuchin_yaml.events import ToolEnded, ToolRequested, ToolStarted
from capuchin_yaml.items import shown_digest
from capuchin_yaml.messages import ResultStatus
from capuchin_yaml.spec import JsonValue

REPEATABLE_ATTEMPTS = 4
REPEATABLE_HEARTBEAT_S = 5.0
ONE_ATTEMPT_HEARTBEAT_S = 60.0
"""Longest silence of a worker before its call is given up; a call with one attempt outlives a
server that is away, so that nobody has to be asked."""
UNAVAILABLE_TRIES = 8
"""Times a tool that cannot be entered is scheduled again; about two minutes in all."""
CHANGED_TRIES = 5
"""Times a call is judged again because the worker would run something else."""
CANCEL_GRACE_S = 3.0
"""Time a cancelled one-attempt call has to say how it ended, before its turn ends without it."""

Judge = Callable[[list[Call]], Awaitable[list[dict[str, JsonValue]]]]


class ToolCalls:
    """Drives the calls of the running turn."""

    def __init__(
        self,
        conversation: Conversation,
        start: contract.StartConversation,
        log: Log,
        desk: Desk,
        judge: Judge,
        roll_over_due: RollOver,
    ) -> None:
        self._c = conversation
        self._start = start
        self._log = log
        self._desk = desk
        self._judge = judge
        self._roll_over_due = roll_over_due
        self.late = LateResults(conversation, desk)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._activities: dict[str, asyncio.Task[Any]] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self._busy = 0

    async def run(self, turn: Turn) -> None:
        """Drive all calls; returns when all are done, or a roll-over is due and nothing runs."""
        for call in turn.calls:
            if call.stage != "done" and call.call_id not in self._tasks:
                self._tasks[call.call_id] = asyncio.ensure_future(self._drive(turn, call))
        await workflow.wait_condition(
            lambda: (
                all(c.stage == "done" for c in turn.calls)
                or (self._roll_over_due() and not self._busy)
                or any(t.done() and t.exception() for t in self._tasks.values())
            )
        )
        for task in self._tasks.values():
            if task.done():
                task.result()  # a fault in our own code must fail the task, never hang the turn
        if all(c.stage == "done" for c in turn.calls):
            self._tasks.clear()

    def cancel(self) -> None:
        """Withdraw what waits and cancel what runs."""
        for call in self._c.turn.calls if self._c.turn else ():
            if call.stage == "asked" and self._desk.is_open(call.item_id):
                self._desk.decide(call.item_id, "withdrawn")
            elif call.stage == "unknown" and self._desk.is_open(call.item_id):
                self._loosen(call)
        for task in self._activities.values():
            task.cancel()

    # verdicts and items

    def apply(self, call: Call, verdict: dict[str, JsonValue]) -> None:
        """Take the judge's word on a call; one that may not run has its result at once."""
        call.tool = str(verdict["tool"])
        call.reason = str(verdict["reason"])
        call.arguments = str(verdict["arguments"])
        call.digest = str(verdict["digest"])
        call.distribution = str(verdict["distribution"])
        call.has_preview = bool(verdict.get("preview"))
        call.preview = call.preview_hash = ""
        self._log.add(
            ToolRequested,
            call_id=call.call_id,
            tool=call.tool,
            alias=call.alias,
            arguments=call.arguments,
            verdict=verdict["verdict"],
            reason=call.reason,
        )
        match verdict["verdict"]:
            case "allow":
                call.gated = False
            case "ask":
                call.gated = True
            case "deny":
                self.end(call, "denied", f"A rule refused this call; it was not run: {call.reason}")
            case _:
                self.end(call, "invalid", f"The call was not run: {call.reason}")

    def ask(self, call: Call) -> None:
        """Ask a person about a call; a tool that can says first what it would do."""
        if call.has_preview:
            call.stage = "preview"
        else:
            self._open_approval(call)

    def _open_approval(self, call: Call) -> None:
        """Put the approval of a call on the desk."""
        tool, definition = self._tool(call), self._c.definition
        assert definition is not None
        approval = definition.spec["approval"]
        now = workflow.now()
        timeout_s = approval["timeout_s"]
        due = None if timeout_s is None else (now + timedelta(seconds=timeout_s)).isoformat()
        call.item_id = _item_id(self._c.id, "a", call.n, call.revision)
        call.stage = "asked"
        self._desk.open(
            {
                "id": call.item_id,
                "kind": "approval",
                "conversation": self._c.id,
                "digest": shown_digest(call.digest, call.preview_hash),
                "call_digest": call.digest,
                "preview": call.preview,
                "revision": call.revision,
                "title": f"run {call.tool}",
                "requested_at": now.isoformat(),
                "due": due,
                "then": approval["on_timeout"] if due else "wait",
                **self._call_fields(call, tool),
            }
        )

    def _ask_outcome(self, call: Call, why: str) -> None:
        call.outcome_revision += 1
        call.item_id = _item_id(self._c.id, "o", call.n, call.outcome_revision)
        call.stage = "unknown"
        self._desk.open(
            {
                "id": call.item_id,
                "kind": "outcome",
                "conversation": self._c.id,
                "digest": call.digest,
                "revision": call.outcome_revision,
                "title": f"did {call.tool} happen?",
                "requested_at": workflow.now().isoformat(),
                "due": None,
                "then": "wait",
                **self._call_fields(call, self._tool(call)),
                "reason": why,
            }
        )

    def _call_fields(self, call: Call, tool: dict[str, JsonValue]) -> dict[str, JsonValue]:
        assert self._c.definition is not None
        return {
            "call_id": call.call_id,
            "tool": call.tool,
            "alias": call.alias,
            "effect": tool["effect"],
            "distribution": call.distribution,
            "arguments": call.arguments,
            "config": tool["config"],
            "injected": dict(self._start.injected),
            "definition_hash": self._c.definition.hash,
            "reason": call.reason,
            "requested_by": call.requested_by or "the model",
            "before": call.before,
        }

    # stages

    async def _drive(self, turn: Turn, call: Call) -> None:
        while call.stage != "done":
            match call.stage:
                case "preview":
                    await self._preview(turn, call)
                case "asked":
                    self._take_approval(turn, call, await self._desk.wait(call.item_id))
                case "unknown":
                    decision = await self._desk.wait(call.item_id)
                    if call.stage == "unknown":  # else its turn was cancelled meanwhile
                        self._take_outcome(call, decision)
                case "edited":
                    await self._take_edit(turn, call)
                case _:
                    await self._run(turn, call)

    async def _preview(self, turn: Turn, call: Call) -> None:
        """Let the tool say what the call would do, then ask a person."""
        await workflow.wait_condition(
            lambda: turn.cancelled_by is not None or not self._roll_over_due()
        )
        if turn.cancelled_by is None:
            self._busy += 1
            fields = request_fields(self._c, self._start, call, self._tool(call))
            showing = asyncio.ensure_future(show(call, fields))
            self._activities[call.call_id] = showing
            try:
                await showing
            finally:
                self._activities.pop(call.call_id, None)
                self._busy -= 1
        if turn.cancelled_by is None:
            self._open_approval(call)
        else:
            self.end(call, "cancelled", "The turn was cancelled before this call was decided.")

    async def _take_edit(self, turn: Turn, call: Call) -> None:
        """Judge what a person wrote instead; their edit is their approval of it.

        What cannot run is asked again as it was, with the reason.
        """
        decision = self._desk.decision(call.item_id) or {}
        written, by = str(decision["arguments"]), str(decision["by"])
        earlier = (call.input, call.problem, call.arguments)
        call.input, call.problem, call.arguments = json.loads(written), None, ""
        [verdict] = await self._judge([call])
        if turn.cancelled_by is not None:
            self.end(call, "cancelled", "The turn was cancelled before this call ran.")
            return
        call.revision += 1
        if verdict["verdict"] == "invalid":
            call.input, call.problem, call.arguments = earlier
            call.reason = f"the arguments that {by} wrote cannot run: {verdict['reason']}"
            self.ask(call)
            return
        call.before = call.before or earlier[2]
        call.requested_by = by
        self.apply(call, verdict)
        if call.stage != "done":
            call.stage = "approved"

    def _take_approval(self, turn: Turn, call: Call, decision: dict[str, JsonValue]) -> None:
        match decision["choice"]:
            case "approve":
                call.stage = "approved"
            case "edit":
                call.stage = "edited"
            case "deny":
                reason = f" The reason given: {decision['reason']}" if decision["reason"] else ""
                self.end(
                    call,
                    "denied",
                    f"{decision['by']} refused this call. It was not run.{reason} "
                    "Do not ask for the same call again; tell the user instead.",
                )
            case "expired":
                assert self._c.definition is not None
                if self._c.definition.spec["approval"]["on_timeout"] == "close":
                    self._c.closing = self._c.closing or {
                        "by": "",
                        "reason": "an approval was not decided in time",
                    }
                    turn.cancelled_by = turn.cancelled_by or "the clock"
                self.end(
                    call,
                    "expired",
                    "Nobody decided about this call in time. It was not run; nobody refused it.",
                )
                if turn.cancelled_by is not None:
                    self.cancel()
            case _:
                self.end(
                    call,
                    "cancelled",
                    "The turn was cancelled before this call was decided. It was not run.",
                )

    def _take_outcome(self, call: Call, decision: dict[str, JsonValue]) -> None:
        text = str(decision.get("result", ""))
        match decision["choice"]:
            case "happened":
                self.end(call, "ok", text or "It happened; the result is not known.")
            case "rerun":
                call.stage = "approved"
            case _:
                self.end(call, "error", text or "The call failed.")

    def _loosen(self, call: Call) -> None:
        """End a call whose outcome stays unknown because its turn was cancelled.

        The question stays on the desk; its answer reaches the model before the next message.
        """
        if call.stage != "unknown":
            self._ask_outcome(call, "the turn was cancelled while the call was running")
        self._c.loose_calls[call.item_id] = {
            "call_id": call.call_id,
            "tool": call.tool,
            "arguments": call.arguments,
        }
        self.end(
            call,
            "unknown",
            "The turn was cancelled while this call was running. "
            "It may or may not have happened; a person will find out.",
        )

    async def _run(self, turn: Turn, call: Call) -> None:
        assert self._c.definition is not None
        most = int(self._c.definition.spec["limits"]["max_parallel_calls"])

        def may_go() -> bool:
            return turn.cancelled_by is not None or (
                not self._roll_over_due() and self._busy < most
            )

        while not may_go():  # whoever woke up first may have taken the free place
            await workflow.wait_condition(may_go)
        if turn.cancelled_by is not None:
            self.end(call, "cancelled", "The turn was cancelled before this call ran.")
            return
        self._busy += 1
        try:
            if call.stage != "ready" and not await self._still_allowed(turn, call):
                return
            await self._run_once(turn, call)
        finally:
            self._busy -= 1

    async def _still_allowed(self, turn: Turn, call: Call) -> bool:
        """Judge a decided call again, just before it runs: it may only have become stricter."""
        [verdict] = await self._judge([call])
        if turn.cancelled_by is not None:
            return True
        same = verdict["digest"] == call.digest and verdict["arguments"] == call.arguments
        if verdict["verdict"] in ("allow", "ask") and same:
            return True
        was_gated = call.gated
        self.apply(call, verdict)
        if call.stage == "done":
            return False
        if not was_gated and not call.gated:
            return True
        call.revision += 1
        if call.revision > CHANGED_TRIES:
            self.end(
                call, "skipped", "The tool keeps changing while this call waits. It was not run."
            )
            return False
        self.ask(call)
        return False

    async def _run_once(self, turn: Turn, call: Call) -> None:
        if turn.cancelled_by is not None:
            self.end(call, "cancelled", "The turn was cancelled before this call ran.")
            return
        tool = self._tool(call)
        call.stage = "running"
        call.entries += 1
        self._log.add(
            ToolStarted,
            call_id=call.call_id,
            tool=call.tool,
            alias=call.alias,
            arguments=call.arguments,
        )
        activity = asyncio.ensure_future(self._execute(call, tool))
        self._activities[call.call_id] = activity
        try:
            await workflow.wait_condition(lambda: activity.done() or turn.cancelled_by is not None)
            await self._ended(activity)
            self._roll_over_due.measure()
        finally:
            self._activities.pop(call.call_id, None)
        if not activity.done():
            self._given_up.add(asyncio.ensure_future(self._settle_later(call, activity)))
            self._stopped(turn, call, tool, "its worker did not say how it ended")
            return
        try:
            outcome = activity.result()
        except asyncio.CancelledError:
            self._stopped(turn, call, tool, "its worker did not say how it ended")
        except ActivityError as error:
            self._stopped(turn, call, tool, _why(error))
        else:
            await self._take_result(turn, call, tool, outcome)

    async def _ended(self, activity: asyncio.Task[Any]) -> None:
        """Give a cancelled call a little time to say how it ended."""
        if activity.done():
            return
        try:
            await workflow.wait_condition(activity.done, timeout=timedelta(seconds=CANCEL_GRACE_S))
        except TimeoutError:
            return

    async def _settle_later(self, call: Call, activity: asyncio.Task[Any]) -> None:
        """Use the result of a call that was given up, should it come all the same."""
        await workflow.wait_condition(activity.done)
        outcome = None if activity.cancelled() or activity.exception() else activity.result()
        if isinstance(outcome, dict) and outcome.get("status") in ("ok", "error"):
            self.late.take(
                call.call_id,
                call.digest,
                outcome["status"],
                str(outcome["text"]),
                *_extras(outcome),
            )

    async def _execute(self, call: Call, tool: dict[str, JsonValue]) -> Any:
        repeatable = tool["idempotent"] or tool["effect"] == "read"
        return await workflow.execute_activity(
            contract.CALL_TOOL,
            contract.CallTool(
                **request_fields(self._c, self._start, call, tool),
                timeout_s=tool["timeout_s"],
                one_attempt=not repeatable,
                entry=call.entries,
                preview_hash=call.preview_hash,
            ),
            result_type=dict,
            # Why: the wrapper ends the call at timeout_s itself; this is for a worker that cannot.
            start_to_close_timeout=timedelta(seconds=tool["timeout_s"] + 15),
            heartbeat_timeout=timedelta(
                seconds=REPEATABLE_HEARTBEAT_S if repeatable else ONE_ATTEMPT_HEARTBEAT_S
            ),
            # Why: what a call says of its end must not be lost to a cancel.
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=1),
                maximum_interval=timedelta(seconds=20),
                maximum_attempts=REPEATABLE_ATTEMPTS if repeatable else 1,
            ),
            summary=f"{call.tool} {call.call_id}",
        )

    async def _take_result(
        self, turn: Turn, call: Call, tool: dict[str, JsonValue], outcome: Any
    ) -> None:
        status = outcome.get("status") if isinstance(outcome, dict) else None
        match status:
            case "ok" | "error":
                call.duration_s = outcome.get("duration_s")
                call.artifacts, call.receipt = _extras(outcome)
                self.end(call, status, str(outcome["text"]))
            case "cancelled":
                call.duration_s = outcome.get("duration_s")
                self.end(call, status, f"The turn was cancelled: {outcome['text']}.")
            case "unavailable":
                call.unavailable += 1
                if call.unavailable > UNAVAILABLE_TRIES:
                    self.end(call, "error", f"The tool is not available: {outcome['text']}")
                    return
                call.stage = "ready"
                await self._pause(turn, min(2.0**call.unavailable / 2, 30.0))
            case "changed":
                # The worker would run another version or definition than was judged.
                call.stage = "approved"
                call.unavailable += 1
                if call.unavailable > UNAVAILABLE_TRIES:
                    self.end(call, "error", f"The tool is not available: {outcome['text']}")
                    return
                if await self._still_allowed(turn, call) and call.stage == "approved":
                    # Our own verdict and that worker differ: workers of two releases are running.
                    await self._pause(turn, 2.0)
            case "unknown":
                self._stopped(turn, call, tool, str(outcome["text"]))
            case _:
                self._stopped(turn, call, tool, "the worker's answer did not carry the seal")

    async def _pause(self, turn: Turn, seconds: float) -> None:
        try:
            await workflow.wait_condition(
                lambda: turn.cancelled_by is not None, timeout=timedelta(seconds=seconds)
            )
        except TimeoutError:
            return

    def _stopped(self, turn: Turn, call: Call, tool: dict[str, JsonValue], why: str) -> None:
        """The activity ended without a word from the tool."""
        if call.late is not None:
            self.end(call, str(call.late["status"]), str(call.late["text"]))
        elif tool["idempotent"] or tool["effect"] == "read":
            if turn.cancelled_by is not None:
                self.end(call, "cancelled", "The turn was cancelled while this call was running.")
            else:
                self.end(call, "error", f"The tool gave no answer: {why}")
        elif turn.cancelled_by is not None:
            self._ask_outcome(call, f"the turn was cancelled while the call was running: {why}")
            self._loosen(call)
        else:
            self._ask_outcome(call, why)

    def end(self, call: Call, status: str, text: str) -> None:
        """Give a call its one result."""
        ended: ResultStatus = status  # type: ignore[assignment]  # every caller passes one of them
        if call.before and call.before != call.arguments:
            text = f"({call.requested_by} changed the arguments to {call.arguments})\n{text}"
        call.stage, call.status, call.text = "done", ended, text if text.strip() else "(no output)"
        self._log.add(
            ToolEnded,
            call_id=call.call_id,
            tool=call.tool or call.alias,
            alias=call.alias,
            status=ended,
            text=call.text,
            duration_s=call.duration_s,
            artifacts=call.artifacts,
            receipt=call.receipt,
        )

    def take_late(self, call_id: str, digest: str, status: str, text: str) -> bool:
        """Settle a call by what its worker reports after the server had given it up."""
        result = {"status": "ok" if status == "ok" else "error", "text": text}
        for item_id, loose in list(self._c.loose_calls.items()):
            if loose["call_id"] == call_id and self._c.items[item_id]["digest"] == digest:
                self.settle_loose(
                    item_id,
                    "happened" if status == "ok" else "failed",
                    text,
                    by="",
                    client="worker",
                )
                return True
        for call in self._c.turn.calls if self._c.turn else ():
            if call.call_id != call_id or call.digest != digest:
                continue
            if call.stage == "unknown" and self._desk.is_open(call.item_id):
                choice = "happened" if status == "ok" else "failed"
                decision = self._desk.decide(call.item_id, choice, client="worker")
                decision |= {"result": text, "status": result["status"]}
                return True
            if call.stage == "running":
                call.late = dict(result)
                return True
        return False

    def settle_loose(
        self, item_id: str, choice: str, text: str, *, by: str, client: str, reason: str = ""
    ) -> dict[str, JsonValue]:
        """Take the answer about a call of an ended turn, and keep it for the model."""
        loose = self._c.loose_calls.pop(item_id)
        decision = self._desk.decide(item_id, choice, by=by, client=client, reason=reason)
        words = {
            "happened": f"it did happen. Its result: {text}" if text else "it did happen.",
            "failed": f"it failed. {text}".strip(),
            "rerun": "it did not happen, and may be asked for again.",
        }[choice]
        self._c.notes.append(
            f"About your earlier call {loose['tool']} with {loose['arguments']}: {words}"
        )
        return decision

    def _tool(self, call: Call) -> dict[str, JsonValue]:
        assert self._c.definition is not None
        for tool in self._c.definition.spec["tools"]:
            if tool["alias"] == call.alias:
                found: dict[str, JsonValue] = tool
                return found
        raise ApplicationError(f"no tool {call.alias!r} in the pinned definition")


def _item_id(conversation: str, letter: str, n: int, revision: int) -> str:
    return f"{conversation}:{letter}{n}" + (f".{revision}" if revision > 1 else "")


def _extras(outcome: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], Any]:
    """Artifacts and receipt of an outcome."""
    return outcome.get("artifacts") or {}, outcome.get("receipt")


def _why(error: ActivityError) -> str:
    cause = error.cause
    message = getattr(cause, "message", None) or str(cause or error)
    return str(message)[:500]
