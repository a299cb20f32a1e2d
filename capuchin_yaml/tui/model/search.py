"""Which of many entries a few typed letters mean: every word must be in the text. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LIMIT = 200


@dataclass(frozen=True, slots=True)
class Choosable:
    """One entry of a chooser."""

    key: str
    name: str
    note: str = ""
    group: str = ""


def found(query: str, entries: Iterable[Choosable], limit: int = LIMIT) -> list[Choosable]:
    """The entries that hold every word of the query; those whose name begins with it first."""
    words = query.lower().split()
    if not words:
        return list(entries)[:limit]
    ranked: list[tuple[int, Choosable]] = []
    for entry in entries:
        name = entry.name.lower()
        text = f"{name} {entry.note} {entry.group}".lower()
        if any(w not in text for w in words):
            continue
        if name.startswith(words[0]):
            rank = 0
        elif all(w in name for w in words):
            rank = 1
        else:
            rank = 2
        ranked.append((rank, entry))
    ranked.sort(key=lambda pair: pair[0])
    return [entry for _, entry in ranked[:limit]]
