"""What a signed decision says, in one canonical text that signer and verifier both make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from capuchin_yaml.spec import JsonValue, canonical_json

NAMESPACE = "capuchin-decision"
"""The SSH signature namespace: a signature made for anything else counts for nothing here."""


class Decision(Protocol):
    """The parts of a decision that a signature covers."""

    @property
    def conversation(self) -> str: ...
    @property
    def item(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def choice(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def result(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def grant(self) -> Mapping[str, JsonValue] | None: ...
    @property
    def by(self) -> str: ...
    @property
    def sent_at(self) -> str: ...


def statement_of(decision: Decision) -> str:
    """The text that a signature of this decision covers; the item's id names its revision."""
    return canonical_json(
        {
            "v": 1,
            "what": NAMESPACE,
            "conversation": decision.conversation,
            "item": decision.item,
            "revision": revision_of(decision.item),
            "digest": decision.digest,
            "choice": decision.choice,
            "arguments": decision.arguments,
            "result": decision.result,
            "reason": decision.reason,
            "grant": dict(decision.grant) if decision.grant else None,
            "by": decision.by,
            "at": decision.sent_at,
        }
    )


def revision_of(item: str) -> int:
    """The revision that an item's id names; 1 when it names none."""
    _, dot, revision = item.rpartition(":")[2].partition(".")
    is_number = revision.isascii() and revision.isdigit() and len(revision) < 10
    return int(revision) if dot and is_number else 1
