"""Pages of events and entries, bounded in bytes: the server refuses answers over 2 MB."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import RawValue

from capuchin_yaml.engine.contract import INLINE, PAGE_BYTES
from capuchin_yaml.engine.state import size_bytes
from capuchin_yaml.spec import JsonValue


def page(
    held: Sequence[dict[str, JsonValue]], first: int, start: int, name: str
) -> dict[str, JsonValue]:
    """Return `{<name>, next, total, first}` from `start` on, at least one value when there is one.

    `first` is the oldest offset held; a page never starts before it.
    """
    at = max(int(start), first)
    taken: list[dict[str, JsonValue]] = []
    room = PAGE_BYTES
    for value in held[at - first :]:
        room -= size_bytes(value)
        if taken and room < 0:
            break
        taken.append(value)
    return {name: taken, "next": at + len(taken), "total": first + len(held), "first": first}


def inline(answer: dict[str, JsonValue]) -> RawValue:
    """The answer as a payload that never goes to external storage.

    Why: an answer is no history; a stored one would leave a file for good at every look.
    """
    payload = workflow.payload_converter().to_payload(answer)
    payload.metadata[INLINE] = b"1"
    return RawValue(payload)
