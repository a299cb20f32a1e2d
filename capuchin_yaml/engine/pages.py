"""Pages of events and entries, bounded in bytes: the server refuses answers over 2 MB."""

from __future__ import annotations

from collections.abc import Sequence

from capuchin_yaml.engine.contract import PAGE_BYTES
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
