"""The operator's gate: one call put to their policy service, and what its answer means."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from temporalio import activity

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import check_origin
from capuchin_yaml.engine.outside import Answer, NoAnswer, post
from capuchin_yaml.spec import JsonValue

ANSWERS = ("allow", "ask", "deny")
MAX_REASON = 500


@dataclass(slots=True)
class GateActivities:
    """What the workflow asks about calls."""

    operator: LiveOperatorConfig = field(default_factory=LiveOperatorConfig)

    @activity.defn(name=contract.ASK_GATE, no_thread_cancel_exception=True)
    def ask_gate(self, request: contract.AskGate) -> dict[str, JsonValue]:
        """What the gate says of a call, `{answer, reason}`; what is no answer is `ask`."""
        check_origin(request, contract.AskGate)
        config = self.operator.now()
        gate = config.gate
        if gate is None:
            if config.floor.problem:
                return _asks(f"the operator's config cannot be used: {config.floor.problem}")
            return {"answer": "allow", "reason": ""}
        if not gate.is_about(request.agent):
            return {"answer": "allow", "reason": ""}
        try:
            secret = gate.secret.read() if gate.secret is not None else None
            answer = post(
                gate.url,
                _question(request),
                timeout_s=gate.timeout_s,
                secret=secret,
                headers={"Idempotency-Key": request.key},
            )
        except (NoAnswer, ValueError) as error:
            return _asks(str(error))
        return read_answer(answer)


def _question(request: contract.AskGate) -> dict[str, JsonValue]:
    return {
        "v": 1,
        "key": request.key,
        "agent": request.agent,
        "conversation": request.conversation,
        "call_id": request.call_id,
        "tool": request.tool,
        "alias": request.alias,
        "effect": request.effect,
        "distribution": request.distribution,
        "arguments": json.loads(request.arguments),
        "digest": request.digest,
        "definition_hash": request.definition_hash,
        "injected": dict(request.injected),
        "config": dict(request.config),
        "verdict": request.verdict,
        "requested_by": request.requested_by,
    }


def read_answer(answer: Answer) -> dict[str, JsonValue]:
    """The answer as `{answer, reason}`; anything that is not well-formed asks a person."""
    if answer.status != 200:
        return _asks(f"it answered with status {answer.status}")
    try:
        value = json.loads(answer.body.decode("utf-8"))
    except (ValueError, RecursionError):
        return _asks("its answer is no JSON")
    if not isinstance(value, dict) or value.get("answer") not in ANSWERS:
        return _asks("its answer is neither allow, ask nor deny")
    reason = value.get("reason", "")
    if not isinstance(reason, str) or len(reason) > MAX_REASON or not _is_text(reason):
        return _asks(f"its reason is no text of at most {MAX_REASON} characters")
    said = reason.strip() or f"the operator's gate says {value['answer']}"
    return {"answer": value["answer"], "reason": said if value["answer"] != "allow" else ""}


def _asks(why: str) -> dict[str, JsonValue]:
    return {"answer": "ask", "reason": f"the operator's gate: {why}"}


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
