"""The billing package refunds once, whatever happens around it."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from capuchin_billing.ledger import Ledger, OverRefund, Refund

from capuchin_yaml.errors import ToolFailed, ToolUnavailable
from capuchin_yaml.testing import check_package, run_tool
from capuchin_yaml.tools.registry import Registry

REFUND = {"order_id": "A-1001", "amount_cents": 4200, "reason": "Broken lamp"}


def rows(folder: Path) -> list[tuple[object, ...]]:
    """All rows of the ledger in `folder`."""
    db = sqlite3.connect(folder / "ledger.db")
    try:
        return db.execute("SELECT * FROM refunds ORDER BY created_at, idempotency_key").fetchall()
    finally:
        db.close()


def refund(folder: Path, key: str, amount_cents: int = 100) -> str:
    """Record one refund of an order over 1000 cents; runs in threads and processes."""
    row = Refund(key, "A-1001", amount_cents, "USD", "test", "c", "2026-11-30T00:00:00+00:00")
    try:
        return Ledger(folder).record(row, total_cents=1000).idempotency_key
    except OverRefund:
        return "over"


def test_the_package_is_sound() -> None:
    package = check_package("billing")

    assert package.distribution == "capuchin-billing"
    assert {t.name: (t.effect, t.idempotent) for t in package.tools.values()} == {
        "lookup_order": ("read", False),
        "issue_refund": ("write", False),
    }


def test_an_order_is_looked_up(tmp_path: Path) -> None:
    run = run_tool("billing.lookup_order", {"order_id": "A-1001"}, data_dir=tmp_path)

    assert '"total_cents": 4200, "refunded_cents": 0, "currency": "USD"' in run.text
    assert not (tmp_path / "ledger.db").exists()


def test_a_refund_is_one_row_with_all_it_was_for(tmp_path: Path) -> None:
    run = run_tool(
        "billing.issue_refund",
        REFUND,
        data_dir=tmp_path,
        config={"currency": "EUR"},
        idempotency_key="key",
        conversation_id="billing-1",
    )

    (row,) = rows(tmp_path)
    assert row[:6] == ("key", "A-1001", 4200, "EUR", "Broken lamp", "billing-1")
    assert '"status": "refunded"' in run.text


def test_the_same_call_twice_is_one_row_and_one_answer(tmp_path: Path) -> None:
    first = run_tool("billing.issue_refund", REFUND, data_dir=tmp_path)
    again = run_tool("billing.issue_refund", REFUND, data_dir=tmp_path, attempt=2)

    assert again.text == first.text
    assert len(rows(tmp_path)) == 1


def test_a_refund_shows_in_the_next_look_up(tmp_path: Path) -> None:
    run_tool("billing.issue_refund", {**REFUND, "amount_cents": 200}, data_dir=tmp_path)

    run = run_tool("billing.lookup_order", {"order_id": "A-1001"}, data_dir=tmp_path)

    assert '"refunded_cents": 200' in run.text


def test_no_more_than_the_order_is_refunded(tmp_path: Path) -> None:
    run_tool("billing.issue_refund", {**REFUND, "amount_cents": 4000}, data_dir=tmp_path)

    with pytest.raises(
        ToolFailed, match="nothing was refunded: 200 cents of order A-1001 are left"
    ):
        run_tool("billing.issue_refund", REFUND, data_dir=tmp_path, idempotency_key="other")

    assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"order_id": "A-9999"}, "there is no order A-9999"),
        ({"order_id": "nonsense"}, "order_id"),
        ({"amount_cents": 0}, "amount_cents"),
        ({"amount_cents": -5}, "amount_cents"),
        ({"amount_cents": 10**12}, "amount_cents"),
        ({"reason": ""}, "reason"),
        ({"currency": "EUR"}, "currency"),
    ],
)
def test_a_senseless_refund_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(ToolFailed, match=said):
        run_tool("billing.issue_refund", {**REFUND, **change}, data_dir=tmp_path)

    assert not (tmp_path / "ledger.db").exists()


def test_a_ledger_without_a_place_leaves_nothing_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ToolUnavailable, match="the ledger's folder cannot be used"):
        run_tool("billing.issue_refund", REFUND, data_dir=tmp_path / "file" / "data")


def test_the_ledger_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    run_tool("billing.issue_refund", REFUND, data_dir=tmp_path)

    assert (tmp_path / "ledger.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_one_key_from_many_sides_at_once_is_one_row(tmp_path: Path, kind: str) -> None:
    pool: Executor
    if kind == "threads":
        pool = ThreadPoolExecutor(8)
    else:
        pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))

    with pool:
        same = list(pool.map(refund, [tmp_path] * 20, ["same"] * 20))
        # 1000 cents in all, 100 are gone: nine of these fit
        many = list(pool.map(refund, [tmp_path] * 20, [f"key-{n}" for n in range(20)]))

    assert same == ["same"] * 20
    assert many.count("over") == 11
    assert len(rows(tmp_path)) == 10


def test_the_tool_names_a_model_sees_come_from_the_entry_point() -> None:
    assert Registry.installed().distribution("billing")[0] == "capuchin-billing"
