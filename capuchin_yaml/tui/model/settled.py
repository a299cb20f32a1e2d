"""Items that were decided, from the events of their conversations. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from capuchin_yaml.events import Event, ItemDecided, ItemOpened
from capuchin_yaml.items import Item, item_from_json


@dataclass(frozen=True, slots=True)
class Settled:
    """One decision; `item` is None when its opening was not read."""

    conversation: str
    agent: str
    decision: ItemDecided
    item: Item | None = None


def settled(conversation: str, agent: str, log: Iterable[Event]) -> list[Settled]:
    """Every decision of a log, oldest first."""
    opened: dict[str, Item] = {}
    out: list[Settled] = []
    for event in log:
        if isinstance(event, ItemOpened):
            try:
                item = item_from_json(event.item)
            except ValueError:
                continue
            opened[item.id] = item
        elif isinstance(event, ItemDecided):
            out.append(Settled(conversation, agent, event, opened.get(event.item_id)))
    return out
