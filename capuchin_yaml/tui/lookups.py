"""What screens ask of conversations beside what polls and watches tell: read once, then kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.items import Item
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tui.gateway import Gateway
from capuchin_yaml.tui.model.fleet import Fleet, KnownUsage
from capuchin_yaml.tui.model.settled import settled
from capuchin_yaml.tui.model.tokens import TokenCount

FIRST_EVENTS = 400
"""So many of a conversation's newest events are read first; older ones when they are wanted."""
DECIDED_TALKS = 20
"""So many conversations are asked for decisions that were made before."""


class What(StrEnum):
    """What changed on the desk."""

    LINK = "link"
    ROWS = "rows"
    INBOX = "inbox"
    OUTBOX = "outbox"
    AGENTS = "agents"
    USAGE = "usage"
    GRANTS = "grants"


class Lookups:
    """Answers go into the fleet, and `on_change` is told; what cannot be read stays as it was."""

    def __init__(
        self, fleet: Fleet, gateway: Callable[[], Gateway], on_change: Callable[[What], None]
    ) -> None:
        self.fleet = fleet
        self._gateway = gateway
        self._on_change = on_change
        self._schemas: dict[str, Mapping[str, Mapping[str, JsonValue]]] = {}

    async def usage(self) -> None:
        """Ask every listed conversation for its tokens; a later call, only those that changed."""
        rows = sorted(self.fleet.rows.values(), key=lambda r: r.updated_at, reverse=True)
        for row in rows:
            known = self.fleet.usage.get(row.id)
            if known is not None and known.as_of == row.updated_at:
                continue
            try:
                state = await self._gateway().state(row.id)
            except CapuchinError:
                continue
            self.fleet.usage[row.id] = KnownUsage(
                row.updated_at, TokenCount.of(state.usage), state.model
            )
            self._on_change(What.USAGE)

    async def decisions(self) -> None:
        """Read the newest decisions of the conversations that changed last."""
        rows = sorted(self.fleet.rows.values(), key=lambda r: r.updated_at, reverse=True)
        for row in rows[:DECIDED_TALKS]:
            talk = self.fleet.talks.get(row.id)
            known = self.fleet.past.get(row.id)
            if (talk is not None and talk.is_live) or (known and known[0] == row.updated_at):
                continue
            try:
                state = await self._gateway().state(row.id)
                since = max(state.events - FIRST_EVENTS, 0)
                found = await self._gateway().events(row.id, since, state.events)
            except CapuchinError:
                continue
            self.fleet.past[row.id] = (row.updated_at, tuple(settled(row.id, row.agent, found)))
            self._on_change(What.INBOX)

    async def schema(self, item: Item) -> Mapping[str, JsonValue] | None:
        """The JSON Schema of the arguments of an item's tool; None when it cannot be read."""
        if item.conversation not in self._schemas:
            try:
                self._schemas[item.conversation] = await self._gateway().schemas(item.conversation)
            except CapuchinError:
                return None
        return self._schemas[item.conversation].get(item.tool)

    async def grants(self) -> None:
        """Read what stands allowed beforehand in every open conversation of the list."""
        for row in [r for r in self.fleet.rows.values() if r.status not in ("closed", "failed")]:
            try:
                state = await self._gateway().state(row.id)
            except CapuchinError:
                continue
            self.fleet.grants[row.id] = state.grants
            self._on_change(What.GRANTS)
