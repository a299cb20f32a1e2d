"""The shop's orders. Amounts are in cents of the configured currency."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """What a customer bought."""

    order_id: str
    customer: str
    items: tuple[str, ...]
    total_cents: int
    ordered_on: str
    status: str


ORDERS = {
    order.order_id: order
    for order in (
        Order("A-1001", "Ada Okafor", ("Desk lamp",), 4_200, "2026-10-02", "delivered"),
        Order("A-1002", "Ben Ruiz", ("Office chair", "Mat"), 25_900, "2026-10-14", "delivered"),
        Order("A-1003", "Chika Sato", ("Notebook",), 1_250, "2026-11-03", "in transit"),
        Order("B-2001", "Dana Levy", ("Standing desk",), 78_000, "2026-11-20", "delivered"),
    )
}
