"""What is asked of a person about a call: may it run, and did it happen.

Runs inside the workflow.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.desk import Desk
from capuchin_yaml.engine.state import Call, Conversation
from capuchin_yaml.items import shown_digest
from capuchin_yaml.spec import JsonValue


class Questions:
    """Puts approvals and unknown outcomes on the desk."""

    def __init__(
        self, conversation: Conversation, start: contract.StartConversation, desk: Desk
    ) -> None:
        self._c = conversation
        self._start = start
        self._desk = desk

    def approval(self, call: Call, votes: list[dict[str, JsonValue]] | None = None) -> None:
        """Ask whether a call may run; `votes` are approvals that count already."""
        now, terms = workflow.now(), call.terms
        call.item_id = _item_id(self._c.id, "a", call.n, call.revision)
        call.stage = "asked"
        due, remind_s = _after(terms["timeout_s"]), terms["remind_s"]
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
                "then": terms["on_timeout"] if due else "wait",
                "timeout_s": terms["timeout_s"],
                "remind_s": remind_s,
                "remind_at": _after(remind_s),
                "approvers": list(terms["approvers"]),
                "may_decide": list(call.may_decide),
                "may_then": list(call.may_then),
                "escalate_to": terms["escalate_to"] or "",
                "escalated": "",
                "quorum": terms["quorum"],
                "exclude": self._excluded(call),
                "votes": list(votes or ()),
                **self._call_fields(call, self.tool(call)),
            }
        )

    def editors_vote(
        self, call: Call, decision: dict[str, JsonValue]
    ) -> list[dict[str, JsonValue]]:
        """The approval that an edit is: none from who may not approve what they asked for,
        or from who is in none of the groups that decide it now."""
        by = decision["by"]
        outside = bool(call.terms["approvers"]) and by not in call.may_decide
        if outside or by in self._excluded(call):
            return []
        kept = ("by", "at", "client", "proven", "reason")
        return [{**{name: decision[name] for name in kept}, "waited_s": 0.0}]

    def _excluded(self, call: Call) -> list[str]:
        """Who asked for this call, where such people may not approve it."""
        if not call.terms["exclude_requester"]:
            return []
        turn = self._c.turn
        return sorted({turn.by if turn else "", call.requested_by} - {""})

    def outcome(self, call: Call, why: str) -> None:
        """Ask whether a call happened of which no worker can tell."""
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
                **self._call_fields(call, self.tool(call)),
                "reason": why,
                "rule": "",
            }
        )

    def loose(self, call: Call) -> None:
        """Keep the question about a call whose turn was cancelled.

        Its answer reaches the model before the next message.
        """
        if call.stage != "unknown":
            self.outcome(call, "the turn was cancelled while the call was running")
        self._c.loose_calls[call.item_id] = {
            "call_id": call.call_id,
            "tool": call.tool,
            "arguments": call.arguments,
        }

    def tool(self, call: Call) -> dict[str, JsonValue]:
        """The tool of a call as it was pinned.

        Raises:
            ApplicationError: the definition has none of this name.
        """
        assert self._c.definition is not None
        for tool in self._c.definition.spec["tools"]:
            if tool["alias"] == call.alias:
                found: dict[str, JsonValue] = tool
                return found
        raise ApplicationError(f"no tool {call.alias!r} in the pinned definition")

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
            "rule": call.rule,
            "requested_by": call.requested_by or "the model",
            "before": call.before,
        }


def _after(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return (workflow.now() + timedelta(seconds=seconds)).isoformat()


def _item_id(conversation: str, letter: str, n: int, revision: int) -> str:
    return f"{conversation}:{letter}{n}" + (f".{revision}" if revision > 1 else "")
