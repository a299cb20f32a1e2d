"""A tool says what a call would do before a person is asked, and hears what was shown."""

from __future__ import annotations

import pytest

from capuchin_yaml.items import shown_digest
from capuchin_yaml.spec import ApprovalSpec
from capuchin_yaml.tools.api import preview_hash
from tests.engine.house import House, Talk, lab

ALL = ApprovalSpec(policy="all")


async def asked(house: House, line: str, approval: ApprovalSpec = ALL) -> Talk:
    model = house.script(
        {
            "when": {"user": "go"},
            "reply": {"calls": [{"tool": "write_shown", "args": {"line": line}}]},
        },
        default={"say": "done"},
    )
    house.agent("shower", model, "lab.write_shown", approval=approval)
    return await house.talk("shower", "go")


async def test_the_item_shows_the_preview_and_the_tool_gets_its_hash(house: House) -> None:
    talk = await asked(house, "one")
    item = await talk.item()
    before = house.effects()
    await talk.decide(item, "approve")
    await talk.idle()

    assert item["preview"] == "would write 'one'"
    assert before == []
    assert house.effects() == ["one shown"]


async def test_the_digest_of_the_item_covers_the_preview(house: House) -> None:
    talk = await asked(house, "one")
    item = await talk.item()

    assert item["digest"] == shown_digest(item["call_digest"], preview_hash("would write 'one'"))
    assert item["digest"] != item["call_digest"]


async def test_without_a_question_nothing_is_previewed(house: House) -> None:
    talk = await asked(house, "one", ApprovalSpec(policy="auto"))
    await talk.idle()

    assert house.effects() == ["one unseen"]


async def test_a_preview_that_fails_is_said_to_be_missing(house: House) -> None:
    talk = await asked(house, "broken")
    item = await talk.item()
    await talk.decide(item, "approve")
    await talk.idle()

    assert item["preview"] == "(no preview could be made: RuntimeError: no preview today)"
    assert item["digest"] == item["call_digest"]
    assert house.effects() == ["broken unseen"]


async def test_a_long_preview_is_cut_with_a_mark(house: House) -> None:
    item = await (await asked(house, "long")).item()

    assert len(item["preview"]) < 5000
    assert item["preview"].endswith("more bytes]")


async def test_a_tool_that_would_do_something_else_now_can_refuse(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = await asked(house, "one")
    item = await talk.item()
    monkeypatch.setattr(lab, "show_line", lambda line, ctx: "something else")
    await talk.decide(item, "approve")
    await talk.idle()
    [ended] = [e for e in await talk.events() if e["kind"] == "tool_ended"]

    assert (ended["status"], ended["text"]) == ("error", "it would be something else now")
    assert house.effects() == []


async def test_a_preview_that_takes_too_long_does_not_keep_the_question(house: House) -> None:
    item = await (await asked(house, "slow")).item(timeout_s=30)

    assert item["preview"] == "(no preview could be made: not ready within 10 s)"


async def test_cancel_while_a_preview_is_made(house: House) -> None:
    talk = await asked(house, "slow")
    await talk.until(lambda s: s["turn"] == 1 and s["status"] == "thinking")
    await talk.cancel()
    state = await talk.idle(timeout_s=10)

    assert state["items"] == []
    assert house.effects() == []
