"""`capuchin close`: the end of a conversation."""

from __future__ import annotations

from tests.cli.program import Project, wait_until


def test_close_withdraws_what_waits_and_refuses_what_is_sent(shop: Project) -> None:
    asked = shop.run("send", "notes", "note closed", "--json").json
    [item] = asked["items"]

    closed = shop.run("close", asked["conversation"], "--reason", "done with it", "--json")
    sent = shop.run("send", asked["conversation"], "hello")
    late = shop.run("inbox", "approve", item["id"], "--digest", item["digest"])

    assert (closed.code, closed.json["accepted"], closed.json["by"]) == (0, True, "ann")
    assert (sent.code, sent.out) == (1, "")
    assert late.code == 1
    wait_until(lambda: shop.run("show", asked["conversation"], "--json").json["status"] == "closed")


def test_close_twice_is_1(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]
    first = shop.run("close", conversation)

    again = shop.run("close", conversation)

    assert (first.code, again.code) == (0, 1)
