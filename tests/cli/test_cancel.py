"""`capuchin cancel`: the running turn ends, the conversation stays."""

from __future__ import annotations

from tests.cli.program import Project


def test_cancel_ends_the_turn_and_the_conversation_goes_on(shop: Project) -> None:
    conversation = shop.run("send", "notes", "note cancelled", "--json").json["conversation"]

    ran = shop.run("cancel", conversation, "--json")

    assert ran.code == 0
    assert (ran.json["v"], ran.json["accepted"], ran.json["turn"]) == (1, True, 1)
    assert shop.run("send", conversation, "hello", "--json").json["reply"] == "You said hello"


def test_cancel_without_a_running_turn_is_1(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]

    ran = shop.run("cancel", conversation)

    assert (ran.code, ran.out) == (1, "")
    assert "no turn is running" in ran.err
