"""`capuchin rename`: the title of a conversation."""

from __future__ import annotations

from tests.cli.program import Project, wait_until


def test_a_title_is_kept_and_listed(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]

    renamed = shop.run("rename", conversation, "Refund  of A-1001", "--json")
    blank = shop.run("rename", conversation, " ")
    unknown = shop.run("rename", "nobody", "x")

    assert renamed.code == 0
    assert renamed.json == {
        "v": 1,
        "conversation": conversation,
        "title": "Refund of A-1001",
        "by": "ann",
    }
    assert (blank.code, unknown.code) == (1, 1)
    wait_until(lambda: "Refund of A-1001" in [t["title"] for t in shop.run("list", "--json").json])
    assert "renamed by ann: Refund of A-1001" in shop.run("show", conversation).out
