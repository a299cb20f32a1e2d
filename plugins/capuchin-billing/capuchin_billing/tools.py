"""The two tools a billing agent has."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from capuchin_billing.ledger import Ledger, OverRefund, Refund
from capuchin_billing.orders import ORDERS, Order
from capuchin_yaml.tools.api import ToolContext, ToolFailed, ToolPackage, ToolUnavailable, tool

OrderId = Annotated[str, Field(pattern=r"^[A-Z]-[0-9]{4}$", examples=["A-1001"])]


@dataclass(frozen=True)
class Config:
    """What an agent's file may set."""

    currency: Annotated[
        str, Field(pattern="^[A-Z]{3}$", description="Currency of all amounts.")
    ] = "USD"


@tool(effect="read", version="1")
def lookup_order(order_id: OrderId, ctx: ToolContext) -> dict[str, object]:
    """Look up an order: customer, items, total, status and what was refunded so far.

    Args:
        order_id: The order's number, such as A-1001.
    """
    order = _order(order_id)
    return {
        "order_id": order.order_id,
        "customer": order.customer,
        "items": order.items,
        "total_cents": order.total_cents,
        "refunded_cents": _ledger(ctx).refunded_cents(order_id),
        "currency": _currency(ctx),
        "ordered_on": order.ordered_on,
        "status": order.status,
    }


# Not declared idempotent: money is never moved twice on the word of a retry; when a call's
# outcome is unknown, a person looks. The unique key of the ledger is the second guard.
@tool(effect="write", version="1")
def issue_refund(
    order_id: OrderId,
    amount_cents: Annotated[int, Field(ge=1, le=10_000_000)],
    reason: Annotated[str, Field(min_length=1, max_length=500)],
    ctx: ToolContext,
) -> dict[str, object]:
    """Refund an order, as a whole or in part. Look the order up first.

    Args:
        order_id: The order's number, such as A-1001.
        amount_cents: How much to refund, in cents.
        reason: Why, in the customer's words.
    """
    order = _order(order_id)
    refund = Refund(
        idempotency_key=ctx.idempotency_key,
        order_id=order_id,
        amount_cents=amount_cents,
        currency=_currency(ctx),
        reason=reason,
        conversation_id=ctx.conversation_id,
        created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    try:
        row = _ledger(ctx).record(refund, order.total_cents)
    except OverRefund as error:
        raise ToolFailed(
            f"nothing was refunded: {error.left_cents} cents of order {order_id} are left, "
            f"{amount_cents} were asked for"
        ) from error
    return {
        "status": "refunded",
        "order_id": row.order_id,
        "amount_cents": row.amount_cents,
        "currency": row.currency,
        "created_at": row.created_at,
    }


package = ToolPackage([lookup_order, issue_refund], config=Config)


def _order(order_id: str) -> Order:
    if order_id not in ORDERS:
        raise ToolFailed(f"there is no order {order_id}; ask the customer for the number")
    return ORDERS[order_id]


def _ledger(ctx: ToolContext) -> Ledger:
    try:
        return Ledger(ctx.data_dir)
    except OSError as error:  # nothing has happened yet, so the call may be made again
        raise ToolUnavailable(f"the ledger's folder cannot be used: {error}") from error


def _currency(ctx: ToolContext) -> str:
    return str(ctx.config.get("currency", Config.currency))
