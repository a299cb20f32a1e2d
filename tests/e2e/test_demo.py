"""The demo talk: looks up unasked, waits before it refunds, does what a person decided."""

from __future__ import annotations

from typing import Any

from tests.cli.program import Project
from tests.e2e.demo import WISH, refunds, wait_idle


def asked_refund(demo: Project) -> tuple[str, dict[str, Any]]:
    """A conversation that waits for a person, and its one item."""
    sent = demo.run("send", "billing", WISH, "--json")
    assert (sent.code, sent.json["status"]) == (4, "waiting"), sent.err
    [item] = sent.json["items"]
    return sent.json["conversation"], item


def calls(demo: Project, conversation: str) -> list[tuple[str, str]]:
    """Tool and verdict of every call so far."""
    events = demo.run("show", conversation, "--json").json["events"]
    return [(e["tool"], e["verdict"]) for e in events if e["kind"] == "tool_requested"]


def test_the_order_is_looked_up_unasked_and_the_refund_waits_and_runs_once(demo: Project) -> None:
    before = refunds(demo)
    conversation, item = asked_refund(demo)

    assert calls(demo, conversation) == [
        ("billing.lookup_order", "allow"),
        ("billing.issue_refund", "ask"),
    ]
    assert item["args"] == {"order_id": "A-1001", "amount_cents": 4200, "reason": WISH}
    assert refunds(demo) == before

    decided = demo.run("inbox", "approve", item["id"], "--digest", item["digest"])
    wait_idle(demo, conversation)

    assert decided.code == 0
    assert refunds(demo) == [*before, ("A-1001", 4200)]
    again = demo.run("inbox", "approve", item["id"], "--digest", item["digest"])
    assert (again.code, refunds(demo)) == (1, [*before, ("A-1001", 4200)])
    assert "ann" in again.err


def test_a_denied_refund_is_apologised_for_with_the_reason(demo: Project) -> None:
    before = refunds(demo)
    sent = demo.run("send", "billing", "Please refund order A-1002", "--json").json
    [item] = sent["items"]

    reason = "it was paid by voucher"
    demo.run("inbox", "deny", item["id"], "--digest", item["digest"], "--reason", reason)
    wait_idle(demo, sent["conversation"])

    shown = demo.run("show", sent["conversation"])
    assert "orry" in shown.out.splitlines()[-1]
    assert reason in shown.out.splitlines()[-1]
    assert refunds(demo) == before
