"""Grants: what a person allowed beforehand, in one conversation only.

A grant answers nothing but an ask of the agent's own word. It is for one very call (`call`: the
same digest, so the same tool, version, arguments, config and definition) or for one tool
(`tool`: its identity), a number of times or until a time. A rule across conversations is not a
grant; it belongs in the agent's file.
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

    def use(self, tool: str, digest: str) -> str | None:
        """The id of the oldest grant that lets this call through, one use of it taken; or None."""
        for grant in self._grants:
            if self._fits(grant, tool, digest):
                if grant.get("left") is not None:
                    grant["left"] -= 1
                return str(grant["id"])
        return None

    def _fits(self, grant: Mapping[str, JsonValue], tool: str, digest: str) -> bool:
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
