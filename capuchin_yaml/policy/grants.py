"""Grants: what a person allowed beforehand, in one conversation only.

A grant answers nothing but an ask of the agent's own word. It is for one very call (`call`: the
same digest, so the same tool, version, arguments, config and definition) or for one tool
(`tool`: its identity), a number of times or until a time. It answers only what the same people
could decide alone: never a call that needs several, or another group. A rule across
conversations is not a grant; it belongs in the agent's file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from capuchin_yaml.spec import JsonValue


class Grants:
    """The grants of a conversation, used up in call order while one reply is judged."""

    def __init__(self, grants: Sequence[Mapping[str, JsonValue]], now: str) -> None:
        self._grants = [dict(g) for g in grants]
        self._now = now

    def use(self, tool: str, digest: str, terms: Mapping[str, JsonValue]) -> str | None:
        """The id of the oldest grant that lets this call through, one use of it taken; or None."""
        for grant in self._grants:
            if self._fits(grant, tool, digest, terms):
                if grant.get("left") is not None:
                    grant["left"] -= 1
                return str(grant["id"])
        return None

    def _fits(
        self,
        grant: Mapping[str, JsonValue],
        tool: str,
        digest: str,
        terms: Mapping[str, JsonValue],
    ) -> bool:
        # Why: who could decide the call that the grant was given with may not decide this one.
        if (
            list(grant.get("approvers", ())) != terms["approvers"]
            or terms["quorum"] > 1
            or terms["exclude_requester"]
        ):
            return False
        if grant.get("left") is not None and grant["left"] <= 0:
            return False
        until = grant.get("until")
        if until and datetime.fromisoformat(self._now) >= datetime.fromisoformat(str(until)):
            return False
        match grant.get("scope"):
            case "call":
                return grant.get("digest") == digest
            case "tool":
                return grant.get("tool") == tool
            case _:
                return False
