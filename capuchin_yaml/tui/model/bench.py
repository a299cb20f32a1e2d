"""How a person arranges what waits: order, filter, marks, and what was put off. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from capuchin_yaml.tui.gateway import InboxRow

Order: TypeAlias = Literal["deadline", "longest wait", "newest", "agent"]
ORDERS: tuple[Order, ...] = ("deadline", "longest wait", "newest", "agent")
PUT_OFF_S = 900.0
"""How long `not now` lasts; another revision of the item ends it at once."""


@dataclass(slots=True)
class Bench:
    """It hides nothing: what was put off stands last, and a filter says that it is one."""

    order: Order = "deadline"
    needle: str = ""
    marks: set[str] = field(default_factory=set)
    _put_off: dict[tuple[str, int], float] = field(default_factory=dict)

    def arranged(self, waiting: Sequence[InboxRow], now: float) -> list[InboxRow]:
        """The rows as they are listed; `waiting` has the nearest deadline first."""
        words = self.needle.lower().split()
        rows = [r for r in waiting if all(w in _text(r) for w in words)]
        match self.order:
            case "longest wait":
                rows.sort(key=lambda r: r.requested_at)
            case "newest":
                rows.sort(key=lambda r: r.requested_at, reverse=True)
            case "agent":
                rows.sort(key=lambda r: (r.agent, r.tool))
            case _:
                pass
        rows.sort(key=lambda r: self.is_put_off(r, now))
        return rows

    def keep(self, waiting: Sequence[InboxRow]) -> None:
        """Forget marks of what waits no more."""
        self.marks &= {r.id for r in waiting}

    def toggle(self, item_id: str) -> None:
        """Mark an item, or take its mark away."""
        self.marks ^= {item_id}

    def invert(self, rows: Sequence[InboxRow]) -> None:
        """Mark the listed rows that have no mark, and only those."""
        self.marks = {r.id for r in rows} - self.marks

    def next_order(self) -> Order:
        """Change the order, and return the new one."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        return self.order

    def put_off(self, row: InboxRow, now: float) -> bool:
        """Put an item off, or back; whether it is put off now."""
        key = (row.id, row.revision)
        if self.is_put_off(row, now):
            del self._put_off[key]
            return False
        self._put_off[key] = now + PUT_OFF_S
        return True

    def is_put_off(self, row: InboxRow, now: float) -> bool:
        """Whether a person said `not now` to this revision a short while ago."""
        return now < self._put_off.get((row.id, row.revision), float("-inf"))


def identical(row_digest: str, waiting: Sequence[InboxRow]) -> list[InboxRow]:
    """The approvals that would run the very same call: tool, release, arguments, everything."""
    return [r for r in waiting if r.kind == "approval" and row_digest and r.digest == row_digest]


def _text(row: InboxRow) -> str:
    parts = (row.agent, row.tool, row.alias, row.title, row.arguments, row.kind, row.conversation)
    return " ".join(parts).lower()
