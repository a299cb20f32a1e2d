"""Calls put to the operator's gate, beside each other, after every other source has spoken.

Runs inside the workflow. The gate can only tighten; its answer is history before the call runs.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.state import Call, Conversation
from capuchin_yaml.spec import JsonValue

GATE_S = 70.0
"""Longest wait for one answer; the operator's own time is at most a minute."""
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class AskingGate:
    """Tightens verdicts by what the operator's policy service says."""

    def __init__(self, conversation: Conversation, start: contract.StartConversation) -> None:
        self._c = conversation
        self._start = start

    async def tightened(
        self, calls: list[Call], verdicts: list[dict[str, JsonValue]]
    ) -> list[dict[str, JsonValue]]:
        """The verdicts after the gate was asked about those that it is about."""
        if not any(verdict.get("gate") for verdict in verdicts):
            return verdicts
        turn = self._c.turn
        asked = [
            asyncio.ensure_future(self._one(call, verdict)) if verdict.get("gate") else None
            for call, verdict in zip(calls, verdicts, strict=True)
        ]
        waiting = [task for task in asked if task is not None]
        await workflow.wait_condition(
            lambda: (
                all(task.done() for task in waiting)
                or (turn is not None and turn.cancelled_by is not None)
            )
        )
        for task in waiting:
            task.cancel()
        return [
            verdict if task is None else _with(verdict, _answer_of(task))
            for task, verdict in zip(asked, verdicts, strict=True)
        ]

    async def _one(self, call: Call, verdict: dict[str, JsonValue]) -> Any:
        assert self._c.definition is not None
        call.gate_asked += 1
        spec = self._c.definition.spec
        tool = next(t for t in spec["tools"] if t["alias"] == call.alias)
        question = f"{call.call_id}\0{verdict['digest']}\0{call.gate_asked}"
        info = workflow.info()
        key = hashlib.sha256(f"{info.first_execution_run_id}\0{question}".encode()).hexdigest()
        try:
            return await workflow.execute_activity(
                contract.ASK_GATE,
                contract.AskGate(
                    conversation=self._c.id,
                    run_id=info.run_id,
                    key=key,
                    agent=self._c.agent,
                    call_id=call.call_id,
                    tool=str(verdict["tool"]),
                    alias=call.alias,
                    effect=tool["effect"],
                    distribution=str(verdict["distribution"]),
                    arguments=str(verdict["arguments"]),
                    digest=str(verdict["digest"]),
                    definition_hash=self._c.definition.hash,
                    injected=dict(self._start.injected),
                    config=tool["config"],
                    verdict=str(verdict["verdict"]),
                    requested_by=call.requested_by or "the model",
                ),
                result_type=dict,
                start_to_close_timeout=timedelta(seconds=GATE_S),
                schedule_to_close_timeout=timedelta(seconds=3 * GATE_S),
                retry_policy=RetryPolicy(maximum_attempts=3),
                summary=f"gate {call.call_id}",
            )
        except ActivityError as error:
            return {"answer": "ask", "reason": f"the operator's gate: {error.cause or error}"}


def _answer_of(task: asyncio.Future[Any]) -> dict[str, JsonValue]:
    said = task.result() if task.done() and not task.cancelled() else None
    if isinstance(said, dict) and said.get("answer") in _STRICTNESS:
        return said
    return {"answer": "ask", "reason": "the operator's gate was not heard"}


def _with(verdict: dict[str, JsonValue], said: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The stricter of the two; an ask of the gate has the terms of the agent's block."""
    if said["answer"] == "allow":
        return verdict
    before, after = _STRICTNESS[verdict["verdict"]], _STRICTNESS[said["answer"]]
    if after < before:
        return verdict
    reasons = [str(verdict["reason"])] if after == before else []
    return {
        **verdict,
        "verdict": said["answer"],
        "decided_by": verdict["decided_by"] if after == before else "gate",
        "reason": "; ".join([*reasons, str(said["reason"])]),
        "rule": verdict.get("rule", "") if after == before else "",
        "grant": None if after > before else verdict.get("grant"),
    }
