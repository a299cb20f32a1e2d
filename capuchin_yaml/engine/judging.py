"""Verdicts on calls: asked of a worker, and an ask under the strictest terms when that fails.

Runs inside the workflow.
"""

from __future__ import annotations

import json
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.asking_gate import AskingGate
from capuchin_yaml.engine.state import Call, Conversation
from capuchin_yaml.items import call_digest, strictest_terms
from capuchin_yaml.spec import AgentSpec, JsonValue, canonical_json
from capuchin_yaml.tally import tally_from_json


class Judging:
    """Has the calls of one conversation judged."""

    def __init__(self, conversation: Conversation, start: contract.StartConversation) -> None:
        self._c = conversation
        self._start = start
        self._gate = AskingGate(conversation, start)

    async def judge(
        self, calls: list[Call], *, with_grants: bool = False
    ) -> list[dict[str, JsonValue]]:
        """Verdicts on these calls, in order; a judge that fails means ask.

        Grants answer only when a call is judged for the first time, so that none is used twice.
        """
        definition = self._c.definition
        assert definition is not None
        asked = [
            {
                "call_id": c.call_id,
                "tool": c.alias,
                "input": json.loads(c.arguments) if c.arguments else c.input,
                "problem": c.problem,
            }
            for c in calls
        ]
        try:
            verdicts = await workflow.execute_local_activity(
                contract.JUDGE,
                contract.Judge(
                    conversation=self._c.id,
                    run_id=workflow.info().run_id,
                    spec=definition.spec,
                    definition_hash=definition.hash,
                    injected=dict(self._start.injected),
                    calls=tuple(asked),
                    grants=tuple(self._c.grants) if with_grants else (),
                    variables=dict(self._start.variables),
                    tallies=self._tallies_before(calls),
                    untrusted=self._c.untrusted,
                    now=workflow.now().isoformat(),
                ),
                result_type=list,
                start_to_close_timeout=timedelta(seconds=1),
                schedule_to_close_timeout=timedelta(seconds=5),
                retry_policy=RetryPolicy(maximum_attempts=2),
            )
        except FailureError:  # a local activity's own, not wrapped in ActivityError
            verdicts = None
        if not isinstance(verdicts, list) or len(verdicts) != len(calls):
            # Why the gate all the same: only a worker knows whether there is one.
            anyway = [self._ask_anyway(c) for c in calls]
            verdicts = [{**v, "gate": v["verdict"] == "ask"} for v in anyway]
        return await self._gate.tightened(calls, verdicts)

    def _tallies_before(self, calls: list[Call]) -> dict[str, JsonValue]:
        """What rules may count: earlier calls of the reply, those that wait as if they ran."""
        judged = {c.n for c in calls}
        first = min(judged, default=0)
        # Later ones too that ran while these waited: an edit must not make room for both.
        in_turn = self._c.turn.calls if self._c.turn else ()
        others = [c for c in in_turn if c.arguments and c.n not in judged]
        counted = [c for c in others if c.was_started or (c.n < first and c.stage != "done")]
        return self.tallies_with(counted)

    def tallies_with(self, calls: list[Call]) -> dict[str, dict[str, JsonValue]]:
        """The tallies so far, with these calls counted as if they ran."""
        assert self._c.definition is not None
        tallies = dict(self._c.tallies)
        tools = self._c.definition.spec["tools"]
        schemas = {t["identity"]: t["input_schema"] for t in tools}
        for call in calls:
            tally = tally_from_json(tallies.get(call.tool))
            arguments = json.loads(call.arguments)
            tallies[call.tool] = tally.with_call(schemas.get(call.tool, {}), arguments).to_json()
        return tallies

    def _ask_anyway(self, call: Call) -> dict[str, JsonValue]:
        definition = self._c.definition
        assert definition is not None
        tool = next((t for t in definition.spec["tools"] if t["alias"] == call.alias), None)
        if tool is None or call.problem:
            reason = call.problem or f"there is no tool named {call.alias!r}"
            return {
                "call_id": call.call_id,
                "verdict": "invalid",
                "reason": reason,
                "tool": call.alias,
                "arguments": "",
                "digest": "",
                "distribution": "",
                "terms": None,
            }
        arguments = call.arguments or canonical_json(call.input)
        return {
            "call_id": call.call_id,
            "tool": tool["identity"],
            "verdict": "ask",
            "reason": "the policy could not be evaluated, so a person decides",
            "arguments": arguments,
            "digest": call_digest(tool, arguments, self._start.injected, definition.hash),
            "distribution": f"{tool['distribution']} {tool['distribution_version']}",
            "decided_by": "judge",
            "terms": strictest_terms(AgentSpec.from_json(definition.spec).approval),
        }
