"""The grants of a conversation: given with an approval, used up, taken back.

Runs inside the workflow; `policy.grants` says which calls a grant lets through.
"""

from __future__ import annotations

from temporalio import workflow

from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.state import Call, Conversation
from capuchin_yaml.events import GrantRevoked, GrantUsed
from capuchin_yaml.spec import JsonValue


class GrantBook:
    """What persons allowed beforehand in one conversation."""

    def __init__(self, conversation: Conversation, log: Log) -> None:
        self._c = conversation
        self._log = log

    def give(self, item: dict[str, JsonValue], grant: dict[str, JsonValue], by: str) -> None:
        """Keep what an approval allows beforehand."""
        self._c.grants_given += 1
        self._c.grants.append(
            {
                "id": f"{self._c.id}:g{self._c.grants_given}",
                "scope": grant["scope"],
                "tool": item["tool"],
                "digest": item["call_digest"],
                "arguments": item["arguments"] if grant["scope"] == "call" else "",
                "left": grant.get("times"),
                "until": grant.get("until"),
                "approvers": list(item["approvers"]),
                "by": by,
                "at": workflow.now().isoformat(),
            }
        )

    def use(self, call: Call, grant_id: JsonValue) -> None:
        """Take one use of the grant that let a call through."""
        grant = next((g for g in self._c.grants if g["id"] == grant_id), None)
        if grant is None or call.stage == "done":
            return
        if grant["left"] is not None:
            grant["left"] -= 1
        self._log.add(GrantUsed, grant_id=grant["id"], call_id=call.call_id, left=grant["left"])
        self._c.grants = [g for g in self._c.grants if g["left"] is None or g["left"] > 0]

    def revoke(self, grant_id: str, by: str) -> bool:
        """Take a grant back; False when there is none of this id."""
        kept = [g for g in self._c.grants if g["id"] != grant_id]
        if len(kept) == len(self._c.grants):
            return False
        self._c.grants = kept
        self._log.add(GrantRevoked, grant_id=grant_id, by=by)
        return True
