"""What an approval may allow beyond itself, and what a person may change before it runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from capuchin_yaml.engine import contract
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk

ALL = ApprovalSpec(policy="all")


async def writing(house: House, text: str = "write one", **agent: Any) -> Talk:
    """A conversation whose model writes what it is told."""
    model = house.script(
        {
            "when": {"user": r"write (\w+)"},
            "reply": {"calls": [{"tool": "write", "args": {"line": "$1"}}]},
        },
        {"when": {"user": "shy"}, "reply": {"calls": [{"tool": "shy", "args": {"text": "x"}}]}},
        default={"say": "done"},
    )
    house.agent("writing", model, "lab.write", "lab.shy", **{"approval": ALL, **agent})
    return await house.talk("writing", text)


async def test_a_grant_for_a_tool_lets_so_many_calls_through_and_then_asks(house: House) -> None:
    talk = await writing(house)
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "times": 2})
    await talk.idle()
    for word in ("two", "three"):
        await talk.send(f"write {word}")
        await talk.idle()
    await talk.send("write four")
    item = await talk.item()

    used = [e for e in await talk.events() if e["kind"] == "grant_used"]
    assert [u["left"] for u in used] == [1, 0]
    assert house.effects() == ["one", "two", "three"]
    assert item["arguments"] == '{"line":"four"}'
    assert (await talk.state())["grants"] == []


async def test_a_grant_for_this_very_call_fits_no_other(house: House) -> None:
    talk = await writing(house)
    await talk.decide(await talk.item(), "approve", grant={"scope": "call", "times": 5})
    await talk.idle()
    await talk.send("write one")
    await talk.idle()
    await talk.send("write other")
    item = await talk.item()

    assert house.effects() == ["one", "one"]
    assert item["arguments"] == '{"line":"other"}'


async def test_a_revoked_grant_asks_again(house: House) -> None:
    talk = await writing(house)
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "times": 5})
    await talk.idle()
    [grant] = (await talk.state())["grants"]
    request = contract.Revoke(**talk.fields(grant=grant["id"]))
    answer = await talk.update(contract.REVOKE, request)
    again = await talk.update(contract.REVOKE, contract.Revoke(**talk.fields(grant=grant["id"])))
    await talk.send("write two")
    await talk.item()

    assert (answer["accepted"], again["accepted"]) == (True, False)
    assert house.effects() == ["one"]


async def test_a_grant_never_answers_the_wish_of_the_tools_author(house: House) -> None:
    talk = await writing(house, "shy")
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "times": 5})
    await talk.idle()
    await talk.send("shy")
    item = await talk.item()

    assert "author" in item["reason"]
    assert (await talk.state())["grants"][0]["left"] == 5


async def test_a_grant_does_not_reach_another_conversation(house: House) -> None:
    talk = await writing(house)
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "times": 5})
    await talk.idle()

    other = await house.talk("writing", "write two")

    assert await other.item()


@pytest.mark.parametrize(
    "grant",
    [
        {"scope": "tool"},
        {"scope": "everything", "times": 1},
        {"scope": "tool", "times": 0},
        {"scope": "tool", "times": True},
        {"scope": "tool", "times": 10_000},
        {"scope": "tool", "until": "soon"},
        {"scope": "tool", "times": 1, "more": float("nan")},
        {"scope": "tool", "until": "2020-01-01T00:00:00+00:00"},
    ],
)
async def test_a_grant_without_a_sound_end_is_refused(house: House, grant: Any) -> None:
    talk = await writing(house)
    item = await talk.item()

    with pytest.raises(WorkflowUpdateFailedError):
        await talk.decide(item, "approve", grant=grant)

    assert (await talk.state())["waiting"] == 1


async def test_a_grant_until_a_time_is_taken(house: House) -> None:
    talk = await writing(house)
    until = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "until": until})
    await talk.idle()
    await talk.send("write two")
    await talk.idle()

    assert house.effects() == ["one", "two"]


async def test_an_edit_runs_what_the_person_wrote_and_keeps_both_versions(house: House) -> None:
    talk = await writing(house)
    item = await talk.item()
    answer = await talk.decide(item, "edit", arguments=json.dumps({"line": "better"}))
    await talk.idle()

    events = await talk.events()
    decided = next(e for e in events if e["kind"] == "item_decided")
    started = next(e for e in events if e["kind"] == "tool_started")
    result = next(e for e in await talk.entries() if e["kind"] == "result")
    assert answer["accepted"] is True
    assert house.effects() == ["better"]
    assert (item["arguments"], decided["arguments"]) == ('{"line":"one"}', '{"line": "better"}')
    assert started["arguments"] == '{"line":"better"}'
    assert result["text"].startswith('(ann changed the arguments to {"line":"better"})')


async def test_an_edit_that_cannot_run_is_asked_again_as_it_was(house: House) -> None:
    talk = await writing(house)
    first = await talk.item()
    await talk.decide(first, "edit", arguments=json.dumps({"lines": 5}))
    state = await talk.until(lambda s: any(i["revision"] == 2 for i in s["items"]))
    [second] = state["items"]
    await talk.decide(second, "approve")
    await talk.idle()

    assert "that ann wrote cannot run" in second["reason"]
    assert second["arguments"] == first["arguments"]
    assert house.effects() == ["one"]


@pytest.mark.parametrize("written", ["", "{", "[]", "5", "null"])
async def test_an_edit_that_is_no_json_object_is_refused(house: House, written: str) -> None:
    talk = await writing(house)
    item = await talk.item()

    with pytest.raises(WorkflowUpdateFailedError):
        await talk.decide(item, "edit", arguments=written)

    assert (await talk.state())["items"] == [item]


async def test_a_claim_is_shown_and_binds_nobody(house: House) -> None:
    talk = await writing(house)
    item = await talk.item()
    await talk.update(contract.CLAIM, contract.Claim(**talk.fields(item=item["id"], by="bob")))
    claimed = await talk.item()
    answer = await talk.decide(item, "approve", by="ann")
    await talk.idle()

    assert claimed["claimed_by"] == "bob"
    assert answer["accepted"] is True
