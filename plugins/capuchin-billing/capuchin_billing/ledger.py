"""The ledger of refunds: one SQLite file, one row for each refund that was made."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TABLE = """
CREATE TABLE IF NOT EXISTS refunds (
    idempotency_key TEXT PRIMARY KEY,
    order_id        TEXT NOT NULL,
    amount_cents    INTEGER NOT NULL CHECK (amount_cents > 0),
    currency        TEXT NOT NULL,
    reason          TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    created_at      TEXT NOT NULL
)
"""


class OverRefund(Exception):
    """A refund would take more than is left of the order; `left_cents` says what is."""

    def __init__(self, left_cents: int) -> None:
        super().__init__(f"{left_cents} cents are left")
        self.left_cents = left_cents


@dataclass(frozen=True, slots=True)
class Refund:
    """One row of the ledger."""

    idempotency_key: str
    order_id: str
    amount_cents: int
    currency: str
    reason: str
    conversation_id: str
    created_at: str
    """UTC, ISO 8601."""


class Ledger:
    """The refunds in `ledger.db` of a folder; safe for several threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.db"

    def refunded_cents(self, order_id: str) -> int:
        """Sum of the refunds of an order; 0 when there is no ledger yet."""
        if not self.path.exists():
            return 0
        with self._writing() as db:
            return _refunded_cents(db, order_id)

    def record(self, refund: Refund, total_cents: int) -> Refund:
        """Add a refund and return its row; the row of the same key if there is one already.

        Raises:
            OverRefund: the refunds of the order would be over `total_cents`; nothing is added.
        """
        with self._writing() as db:
            found = db.execute(
                "SELECT idempotency_key, order_id, amount_cents, currency, reason,"
                " conversation_id, created_at FROM refunds WHERE idempotency_key = ?",
                (refund.idempotency_key,),
            ).fetchone()
            if found is not None:
                return Refund(*found)
            left_cents = total_cents - _refunded_cents(db, refund.order_id)
            if refund.amount_cents > left_cents:
                raise OverRefund(left_cents)
            db.execute(
                "INSERT INTO refunds VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    refund.idempotency_key,
                    refund.order_id,
                    refund.amount_cents,
                    refund.currency,
                    refund.reason,
                    refund.conversation_id,
                    refund.created_at,
                ),
            )
            return refund

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start; committed unless it raises."""
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            # Why: the row is the effect; once the tool has answered, a power cut must not undo it.
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            try:
                db.execute(_TABLE)
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        finally:
            db.close()


def _refunded_cents(db: sqlite3.Connection, order_id: str) -> int:
    query = "SELECT COALESCE(SUM(amount_cents), 0) FROM refunds WHERE order_id = ?"
    (total,) = db.execute(query, (order_id,)).fetchone()
    return int(total)
