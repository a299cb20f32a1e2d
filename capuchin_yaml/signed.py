"""What a signed decision says, in one canonical text that signer and verifier both make."""

from __future__ import annotations

from capuchin_yaml.spec import JsonValue, canonical_json

NAMESPACE = "capuchin-decision"
"""The SSH signature namespace: a signature made for anything else counts for nothing here."""


def statement(
    *,
    conversation: str,
    item: str,
    digest: str,
    choice: str,
    by: str,
    at: str,
    arguments: str = "",
    result: str = "",
    reason: str = "",
    grant: JsonValue = None,
) -> str:
    """The text that a signature covers; the item's id names its revision.

    `at` is when the decision was sent, UTC, ISO 8601.
    """
    return canonical_json(
        {
            "v": 1,
            "what": NAMESPACE,
            "conversation": conversation,
            "item": item,
            "revision": revision_of(item),
            "digest": digest,
            "choice": choice,
            "arguments": arguments,
            "result": result,
            "reason": reason,
            "grant": grant,
            "by": by,
            "at": at,
        }
    )


def revision_of(item: str) -> int:
    """The revision that an item's id names; 1 when it names none."""
    _, dot, revision = item.rpartition(":")[2].partition(".")
    return int(revision) if dot and revision.isdigit() else 1
