"""Calls that ended after they had been given up, and calls whose turn ended before them.

Runs inside the workflow.
"""

from __future__ import annotations

from capuchin_yaml.engine.desk import Desk
from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.spec import JsonValue


class LateResults:
    """Settles unknown outcomes by what a worker, or a person, says later."""

    def __init__(self, conversation: Conversation, desk: Desk) -> None:
        self._c = conversation
        self._desk = desk

    def take(
        self,
        call_id: str,
        digest: str,
        status: str,
        text: str,
        artifacts: dict[str, JsonValue] | None = None,
        receipt: dict[str, JsonValue] | None = None,
    ) -> bool:
        """Settle a call by its worker's report; False when nobody waits for it."""
        was_running = self._c.still_running.pop(call_id, None) is not None
        if status == "ended":
            return was_running
        choice = "happened" if status == "ok" else "failed"
        for item_id, loose in list(self._c.loose_calls.items()):
            if loose["call_id"] == call_id and self._c.items[item_id]["digest"] == digest:
                self.settle_loose(item_id, choice, text, by="", client="worker", receipt=receipt)
                return True
        result = {"status": "ok" if status == "ok" else "error", "text": text}
        for call in self._c.turn.calls if self._c.turn else ():
            if call.call_id != call_id or call.digest != digest:
                continue
            if call.stage in ("unknown", "running"):
                call.artifacts, call.receipt = artifacts or {}, receipt
            if call.stage == "unknown" and self._desk.is_open(call.item_id):
                decision = self._desk.decide(call.item_id, choice, client="worker")
                decision |= {"result": text, "status": result["status"]}
                return True
            if call.stage == "running":
                call.late = dict(result)
                return True
        return False

    def settle_loose(
        self,
        item_id: str,
        choice: str,
        text: str,
        *,
        by: str,
        client: str,
        reason: str = "",
        proven: bool = False,
        receipt: dict[str, JsonValue] | None = None,
    ) -> None:
        """Take the answer about a call of an ended turn, and keep it for the model."""
        loose = self._c.loose_calls.pop(item_id)
        self._desk.decide(
            item_id,
            choice,
            by=by,
            client=client,
            reason=reason,
            proven=proven,
            receipt=receipt,
        )
        words: dict[str, JsonValue] = {
            "happened": f"it did happen. Its result: {text}" if text else "it did happen.",
            "failed": f"it failed. {text}".strip(),
            "rerun": "it did not happen, and may be asked for again.",
        }
        self._c.notes.append(
            f"About your earlier call {loose['tool']} with {loose['arguments']}: {words[choice]}"
        )
