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
from temporalio.exceptions import ActivityError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.desk import Desk
from capuchin_yaml.engine.entering import end_of, enter, extras, is_repeatable, why
from capuchin_yaml.engine.late_results import LateResults
from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.preview import request_fields, show
from capuchin_yaml.engine.questions import Questions
from capuchin_yaml.engine.roll_over import RollOver
from capuchin_yaml.engine.state import Call, Conversation, Turn
from capuchin_yaml.events import ToolEnded, ToolRequested, ToolStarted
from capuchin_yaml.messages import ResultStatus
from capuchin_yaml.spec import JsonValue

UNAVAILABLE_TRIES = 8
"""Times a tool that cannot be entered is scheduled again; about two minutes in all."""
CHANGED_TRIES = 5
"""Times a call is judged again because the worker would run something else."""

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
        self._questions = Questions(conversation, start, desk)
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
        call.rule = str(verdict.get("rule", ""))
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
                call.terms = dict(verdict["terms"])
                call.may_decide = list(verdict.get("may_decide", ()))
                call.may_then = list(verdict.get("may_then", ()))
            case "deny":
                self.end(call, "denied", f"A rule refused this call; it was not run: {call.reason}")
            case _:
                self.end(call, "invalid", f"The call was not run: {call.reason}")

    def ask(self, call: Call, votes: list[dict[str, JsonValue]] | None = None) -> None:
        """Ask a person about a call; a tool that can says first what it would do."""
        if call.has_preview:
            call.stage = "preview"
        else:
            self._questions.approval(call, votes)

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
            fields = request_fields(self._c, self._start, call, self._questions.tool(call))
            showing = asyncio.ensure_future(show(call, fields))
            self._activities[call.call_id] = showing
            try:
                await showing
            finally:
                self._activities.pop(call.call_id, None)
                self._busy -= 1
        if turn.cancelled_by is None:
            self._questions.approval(call)
        else:
            self.end(call, "cancelled", "The turn was cancelled before this call was decided.")

    async def _take_edit(self, turn: Turn, call: Call) -> None:
        """Judge what a person wrote instead; their edit is their approval of it.

        It is asked again, as a new revision, when its tool shows what it would do or when more
        people must approve; what cannot run is asked again as it was, with the reason.
        """
        await workflow.wait_condition(
            lambda: turn.cancelled_by is not None or not self._roll_over_due()
        )
        decision = self._desk.decision(call.item_id) or {}
        written, by = str(decision["arguments"]), str(decision["by"])
        earlier = (call.input, call.problem, call.arguments)
        call.input, call.problem, call.arguments = json.loads(written), None, ""
        self._busy += 1  # nothing may roll over while an edit is half taken
        try:
            [verdict] = await self._judge([call])
        finally:
            self._busy -= 1
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
        if call.stage == "done":
            return
        votes = self._questions.editors_vote(call, decision) if call.gated else []
        if call.gated and (call.has_preview or len(votes) < call.terms["quorum"]):
            # Why: nobody has seen what it would do now, or others must decide as well.
            self.ask(call, votes)
            return
        call.stage = "approved"

    def _take_approval(self, turn: Turn, call: Call, decision: dict[str, JsonValue]) -> None:
        match decision["choice"]:
            case "approve":
                call.stage = "approved"
            case "edit":
                call.stage = "edited"
            case "deny":
                said = _sentence(str(decision["reason"]))
                reason = f" The reason given: {said}" if said else ""
                self.end(
                    call,
                    "denied",
                    f"{decision['by']} refused this call. It was not run.{reason} "
                    "Do not ask for the same call again; tell the user instead.",
                )
            case "expired":
                if call.terms["on_timeout"] == "close":
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
        """End a call whose outcome stays unknown because its turn was cancelled."""
        self._questions.loose(call)
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
        # Why: who decided might not have been asked, had it been judged then as it is now.
        if call.gated and verdict["verdict"] == "ask":
            same = same and _who_decides(verdict["terms"]) == _who_decides(call.terms)
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
        tool = self._questions.tool(call)
        call.stage = "running"
        call.entries += 1
        self._log.add(
            ToolStarted,
            call_id=call.call_id,
            tool=call.tool,
            alias=call.alias,
            arguments=call.arguments,
        )
        activity = asyncio.ensure_future(enter(self._c, self._start, call, tool))
        self._activities[call.call_id] = activity
        try:
            await workflow.wait_condition(lambda: activity.done() or turn.cancelled_by is not None)
            await end_of(activity)
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
            self._stopped(turn, call, tool, why(error))
        else:
            await self._take_result(turn, call, tool, outcome)

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
                *extras(outcome),
            )

    async def _take_result(
        self, turn: Turn, call: Call, tool: dict[str, JsonValue], outcome: Any
    ) -> None:
        status = outcome.get("status") if isinstance(outcome, dict) else None
        if status is not None and outcome.get("still_running"):
            since = workflow.now().isoformat()
            self._c.still_running[call.call_id] = {
                "call_id": call.call_id,
                "tool": call.tool,
                "since": since,
            }
        match status:
            case "ok" | "error":
                call.duration_s = outcome.get("duration_s")
                call.artifacts, call.receipt = extras(outcome)
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
        elif is_repeatable(tool):
            if turn.cancelled_by is not None:
                self.end(call, "cancelled", "The turn was cancelled while this call was running.")
            else:
                self.end(call, "error", f"The tool gave no answer: {why}")
        elif turn.cancelled_by is not None:
            self._questions.outcome(
                call, f"the turn was cancelled while the call was running: {why}"
            )
            self._loosen(call)
        else:
            self._questions.outcome(call, why)

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


def _who_decides(terms: dict[str, JsonValue]) -> tuple[JsonValue, ...]:
    return tuple(terms[name] for name in ("approvers", "quorum", "exclude_requester"))


def _sentence(text: str) -> str:
    """The text with an end, so that the next sentence does not run into it."""
    text = text.strip()
    return text if not text or text[-1] in ".!?…:;" else f"{text}."
