"""One turn: model, verdicts, calls, and again, until the model has nothing more to ask.

Runs inside the workflow. Everything it must remember is in `Turn` and `Call`, so that a
turn can go on in another run between any two steps and while items wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.desk import Desk
from capuchin_yaml.engine.grant_book import GrantBook
from capuchin_yaml.engine.judging import Judging
from capuchin_yaml.engine.life import Life
from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.roll_over import RollOver
from capuchin_yaml.engine.state import Call, Conversation, Turn
from capuchin_yaml.engine.tool_calls import ToolCalls
from capuchin_yaml.events import (
    AssistantSaid,
    LimitReached,
    TurnEnded,
    UsageRecorded,
)
from capuchin_yaml.items import limit_digest
from capuchin_yaml.spec import JsonValue

MODEL_ATTEMPTS = 6
"""Model calls of one step, the first included; the provider's pause is kept between them."""
CUT_OFF_REPLIES = 3
"""Replies in a row that the provider cut off in the middle of a call."""


class TurnEnds(Exception):
    """Leaves the steps of a turn with its outcome."""

    def __init__(self, outcome: str, detail: str = "") -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.detail = detail


class TurnRunner:
    """Carries one turn to its end."""

    def __init__(
        self,
        conversation: Conversation,
        start: contract.StartConversation,
        log: Log,
        desk: Desk,
        life: Life,
        between_steps: Callable[[], Awaitable[None]],
        roll_over_due: RollOver,
    ) -> None:
        self._c = conversation
        self._start = start
        self._log = log
        self._desk = desk
        self._life = life
        self._between_steps = between_steps
        self._roll_over_due = roll_over_due
        self._model_task: asyncio.Task[Any] | None = None
        self._judging = Judging(conversation, start)
        self.grants = GrantBook(conversation, log)
        self.calls = ToolCalls(conversation, start, log, desk, self._judging.judge, roll_over_due)

    @property
    def _turn(self) -> Turn:
        assert self._c.turn is not None
        return self._c.turn

    @property
    def _spec(self) -> dict[str, JsonValue]:
        assert self._c.definition is not None
        return self._c.definition.spec

    @property
    def is_working(self) -> bool:
        """Whether a model call or a tool runs, or is about to."""
        turn = self._c.turn
        if turn is None or turn.phase == "limit":
            return False
        return turn.phase != "calls" or any(
            c.stage in ("new", "preview", "ready", "edited", "approved", "running")
            for c in turn.calls
        )

    def cancel(self) -> None:
        """Stop what runs now; the turn ends as soon as its calls have results."""
        if self._model_task is not None:
            self._model_task.cancel()
        self.calls.cancel()

    async def run(self) -> None:
        """Go on with the turn until it ends, and record how it ended."""
        try:
            while True:
                await self._between_steps()
                if self._turn.cancelled_by is not None and self._turn.phase == "model":
                    raise TurnEnds("cancelled")
                match self._turn.phase:
                    case "model":
                        await self._step()
                    case "judge":
                        await self._judge_reply()
                    case "gate":
                        self._gate()
                    case "limit":
                        await self._at_limit()
                    case _:
                        await self._run_calls()
        except TurnEnds as end:
            turn = self._turn
            detail = end.detail
            if end.outcome == "cancelled" and turn.cancelled_by:
                detail = f"cancelled by {turn.cancelled_by}"
            self._c.turn = None
            self._log.add(TurnEnded, turn=turn.number, outcome=end.outcome, detail=detail)

    # model

    async def _step(self) -> None:
        turn = self._turn
        if turn.step >= turn.steps_allowed:
            self._pause("max_steps", turn.steps_allowed)
            return
        reply = await self._call_model()
        if "paused" in reply:
            await self._hold(reply["paused"])
            return
        turn.step += 1
        self._take_reply(reply)

    async def _hold(self, paused: dict[str, JsonValue]) -> None:
        """Wait before the first step while the agent is paused; it may come back as another."""
        await self._life.until_resumed(paused)
        if self._turn.cancelled_by is None and await self._life.before_turn():
            self._turn.allow(self._spec["limits"])

    async def _call_model(self) -> dict[str, JsonValue]:
        definition = self._c.definition
        assert definition is not None
        request = contract.CallModel(
            conversation=self._c.id,
            run_id=workflow.info().run_id,
            definition_hash=definition.hash,
            entries_before=self._c.known_entries,
            digest_before=self._c.known_digest,
            first_entry=self._c.first_entry,
            new_entries=self._c.new_entries(),
            first_call=self._c.calls + 1,
            pin=definition.pin,
            pausable_in=self._start.project if self._turn.step == 0 else "",
        )
        self._model_task = asyncio.ensure_future(
            workflow.execute_activity(
                contract.CALL_MODEL,
                request,
                result_type=dict,
                start_to_close_timeout=timedelta(minutes=15),
                heartbeat_timeout=timedelta(seconds=5),
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=1),
                    maximum_interval=timedelta(seconds=30),
                    maximum_attempts=MODEL_ATTEMPTS,
                ),
                summary=f"{definition.model} step {self._turn.step + 1}",
            )
        )
        try:
            reply = await self._model_task
        except asyncio.CancelledError:
            raise TurnEnds("cancelled") from None
        except ActivityError as error:
            if self._turn.cancelled_by is not None:
                raise TurnEnds("cancelled") from None
            raise _model_failure(error) from None
        finally:
            self._model_task = None
        self._roll_over_due.measure()
        if not isinstance(reply, dict) or not ("entry" in reply or "paused" in reply):
            raise TurnEnds("model_unavailable", "the worker's answer did not carry the seal")
        return reply

    def _take_reply(self, reply: dict[str, JsonValue]) -> None:
        turn, entry = self._turn, reply["entry"]
        usage = reply["usage"]
        for name in self._c.usage:
            self._c.usage[name] += int(usage.get(name, 0))
        blocks = entry["blocks"]
        text = "\n".join(b["text"] for b in blocks if b["type"] == "text")
        self._log.add(
            AssistantSaid, turn=turn.number, step=turn.step, text=text, model=entry["model"]
        )
        self._log.add(
            UsageRecorded, model=entry["model"], **{k: usage.get(k, 0) for k in self._c.usage}
        )
        calls = [b for b in blocks if b["type"] == "call"]
        if blocks:
            self._c.add_entry(entry)
        self._c.mark_known()
        if not calls:
            match entry["stop_reason"]:
                case "max_tokens":
                    raise TurnEnds("answered", "the reply was cut off at the model's token limit")
                case "refusal":
                    raise TurnEnds("answered", "the model refused to answer")
                case _:
                    raise TurnEnds("answered", "" if text else "the model said nothing")
        turn.calls = [
            Call(
                n=self._c.calls + 1 + i,
                call_id=b["call_id"],
                alias=b["tool"],
                input=b["input"],
                problem=b.get("problem"),
            )
            for i, b in enumerate(calls)
        ]
        self._c.calls += len(calls)
        turn.phase = "judge"
        if entry["stop_reason"] == "tool_use":
            turn.cut_off = 0
        else:
            self._skip_cut_off(entry["stop_reason"])

    def _skip_cut_off(self, stop_reason: str) -> None:
        """A call in a reply that did not end by asking for it may be a fragment: it never runs."""
        turn = self._turn
        turn.cut_off += 1
        why = (
            "Your reply was cut off at the token limit before this call was complete."
            if stop_reason == "max_tokens"
            else f"Your reply did not end with this call ({stop_reason})."
        )
        for call in turn.calls:
            self.calls.end(call, "skipped", f"{why} It was not run. Ask again if it is needed.")
        turn.phase = "calls"

    # verdicts

    async def _judge_reply(self) -> None:
        turn = self._turn
        verdicts = await self._judging.judge(turn.calls, with_grants=True)
        if turn.phase != "judge":
            return
        for call, verdict in zip(turn.calls, verdicts, strict=True):
            self._c.hooks = bool(verdict.get("hooks", self._c.hooks))
            self.calls.apply(call, verdict)
            self.grants.use(call, verdict.get("grant"))
        runnable = [c for c in turn.calls if c.stage == "new"]
        turn.calls_made += len(runnable)
        for call in runnable:
            key = _same_call_key(call)
            turn.same[key] = turn.same.get(key, 0) + 1
        turn.phase = "gate"

    def _gate(self) -> None:
        """Pause at a limit, or put gated calls on the desk and let the others go."""
        turn = self._turn
        runnable = [c for c in turn.calls if c.stage == "new"]
        if turn.cancelled_by is not None:
            for call in runnable:
                self.calls.end(call, "cancelled", "The turn was cancelled before this call ran.")
            turn.phase = "calls"
            return
        if runnable and turn.calls_made > turn.calls_allowed:
            self._pause("max_tool_calls", turn.calls_allowed)
            return
        if any(turn.same[_same_call_key(c)] > turn.same_allowed for c in runnable):
            self._pause("same_call", turn.same_allowed)
            return
        for call in runnable:
            if call.gated:
                self.calls.ask(call)
            else:
                call.stage = "ready"
        turn.phase = "calls"

    # calls

    async def _run_calls(self) -> None:
        turn = self._turn
        await self.calls.run(turn)
        if any(c.stage != "done" for c in turn.calls):
            return  # asked to roll over first; the next run goes on from here
        self._append_results()
        if turn.cut_off >= CUT_OFF_REPLIES:
            raise TurnEnds(
                "stopped",
                f"the model's reply was cut off {turn.cut_off} times in the middle of a call",
            )

    def _append_results(self) -> None:
        """Every call of the reply gets its result, in the reply's order."""
        turn = self._turn
        for call in turn.calls:
            self._c.add_entry(
                {
                    "kind": "result",
                    "call_id": call.call_id,
                    "tool": call.alias,
                    "status": call.status,
                    "text": call.text,
                }
            )
        started = [call for call in turn.calls if call.was_started]
        self._c.tallies = self._judging.tallies_with(started)
        self._c.untrusted = self._c.untrusted or bool(started)
        turn.calls = []
        turn.phase = "model"

    # limits

    def _pause(self, limit: str, value: int) -> None:
        turn = self._turn
        self._c.limits_hit += 1
        item_id = f"{self._c.id}:l{self._c.limits_hit}"
        self._log.add(LimitReached, limit=limit, value=value)
        self._desk.open(
            {
                "id": item_id,
                "kind": "limit",
                "conversation": self._c.id,
                "digest": limit_digest(item_id, limit, value),
                "revision": 1,
                "title": f"{_LIMIT_WORDS[limit].format(value=value)}: go on, or stop this turn?",
                "requested_at": workflow.now().isoformat(),
                "due": None,
                "then": "wait",
                "definition_hash": self._c.definition.hash if self._c.definition else "",
                "reason": f"limits.{limit} is {self._spec['limits'][limit]}; {self._spent()}",
            }
        )
        turn.limit, turn.limit_item, turn.phase = limit, item_id, "limit"

    def _spent(self) -> str:
        """What the conversation has cost so far, in tokens."""
        used = self._c.usage
        asked = sum(n for name, n in used.items() if name != "output_tokens")
        return f"{asked:,} tokens in and {used['output_tokens']:,} out so far"

    async def _at_limit(self) -> None:
        """Wait for a person; go on raises the limit by itself once more, stop ends the turn."""
        turn = self._turn
        await workflow.wait_condition(
            lambda: not self._desk.is_open(turn.limit_item) or self._roll_over_due()
        )
        decision = self._desk.decision(turn.limit_item)
        if decision is None:
            return  # asked to roll over first; the next run waits on
        limit = turn.limit
        if decision["choice"] == "go_on":
            more = int(self._spec["limits"][limit])
            match limit:
                case "max_steps":
                    turn.steps_allowed += more
                    turn.phase = "model"
                case "max_tool_calls":
                    turn.calls_allowed = max(turn.calls_made, turn.calls_allowed) + more
                    turn.phase = "gate"
                case _:
                    turn.same_allowed = max(*turn.same.values(), turn.same_allowed) + more
                    turn.phase = "gate"
            return
        for call in turn.calls:
            if call.stage != "done":
                self.calls.end(call, "skipped", f"It was not run: the turn was stopped ({limit}).")
        self._append_results()
        if decision["choice"] == "withdrawn":
            raise TurnEnds("cancelled")
        allowed = {
            "max_steps": turn.steps_allowed,
            "max_tool_calls": turn.calls_allowed,
            "same_call": turn.same_allowed,
        }
        raise TurnEnds(
            "stopped", f"stopped by {decision['by']} at limits.{limit} ({allowed[limit]})"
        )


def _same_call_key(call: Call) -> str:
    return f"{call.tool}\0{call.arguments}"


_LIMIT_WORDS = {
    "max_steps": "The model was called {value} times for one message",
    "max_tool_calls": "The model asked for more than {value} tool calls for one message",
    "same_call": "The model asked for the very same call more than {value} times",
}


def _model_failure(error: ActivityError) -> TurnEnds:
    cause = error.cause
    if isinstance(cause, ApplicationError):
        if cause.type == contract.MODEL_REJECTED:
            return TurnEnds("model_rejected", cause.message)
        return TurnEnds("model_unavailable", cause.message)
    return TurnEnds("model_unavailable", f"no answer in time: {cause or error}")
