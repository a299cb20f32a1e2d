"""Items: asked once, decided once, bound to what was shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from capuchin_yaml.spec import ApprovalSpec, Limits
from tests.engine.house import House, Talk

ALL = ApprovalSpec(policy="all")
WRITE = {"calls": [{"tool": "write", "args": {"line": "one"}}]}


def refund(house: House, approval: ApprovalSpec = ALL, **agent: Any) -> str:
    """An agent that writes one line when told to, and says what became of it."""
    model = house.script(
        {"when": {"user": "go"}, "reply": WRITE},
        {"when": {"result": "wrote"}, "reply": {"say": "done"}},
        {"when": {"result": "Nobody decided"}, "reply": {"say": "sorry, too late"}},
        {"when": {"result": "refused"}, "reply": {"say": "sorry, refused"}},
        default={"say": "ok"},
    )
    house.agent("refund", model, "lab.write", approval=approval, **agent)
    return "refund"


async def test_nothing_runs_before_approve_and_once_after_it(house: House) -> None:
    talk = await house.talk(refund(house), "go")
    item = await talk.item()
    before = house.effects()

    answer = await talk.decide(item, "approve")
    await talk.idle()

    assert before == []
    assert answer["accepted"] is True
    assert house.effects() == ["one"]


async def test_the_item_shows_all_that_the_digest_binds(house: House) -> None:
    refund(house, injected=["tenant"])

    talk = await house.talk("refund", "go", injected={"tenant": "7"})
    item = await talk.item()

    assert item["tool"] == "lab.write"
    assert item["alias"] == "write"
    assert item["distribution"] == "capuchin-lab 1.0.0"
    assert item["arguments"] == '{"line":"one"}'
    assert item["injected"] == {"tenant": "7"}
    assert item["then"] == "wait"
    assert len(item["digest"]) == 64


async def test_deny_tells_the_model_who_and_why_and_the_talk_goes_on(house: House) -> None:
    talk = await house.talk(refund(house), "go")

    await talk.decide(await talk.item(), "deny", reason="too much")
    state = await talk.idle()

    result = next(e for e in await talk.entries() if e["kind"] == "result")
    assert result["status"] == "denied"
    assert "ann refused" in result["text"]
    assert "too much" in result["text"]
    assert house.effects() == []
    assert await talk.last_words() == "sorry, refused"
    assert state["status"] == "idle"


async def test_what_was_denied_once_is_asked_again_later(house: House) -> None:
    talk = await house.talk(refund(house), "go")
    await talk.decide(await talk.item(), "deny")
    await talk.idle()

    await talk.send("go")
    item = await talk.item()

    assert item["id"].endswith(":a2")


async def test_nobody_in_time_means_it_did_not_run(house: House) -> None:
    approval = ApprovalSpec(policy="all", timeout_s=0.5)

    talk = await house.talk(refund(house, approval), "go")
    item = await talk.item()
    await talk.idle()
    late = await talk.decide(item, "approve")

    decided = next(e for e in await talk.events() if e["kind"] == "item_decided")
    assert (decided["choice"], decided["by"]) == ("expired", "")
    assert (late["accepted"], late["choice"]) == (False, "expired")
    assert house.effects() == []
    assert await talk.last_words() == "sorry, too late"


async def test_on_timeout_wait_goes_on_waiting(house: House) -> None:
    approval = ApprovalSpec(policy="all", timeout_s=0.2, on_timeout="wait")

    talk = await house.talk(refund(house, approval), "go")
    item = await talk.item()
    await asyncio.sleep(0.6)
    answer = await talk.decide(item, "approve")
    await talk.idle()

    assert answer["accepted"] is True
    assert house.effects() == ["one"]


async def test_on_timeout_close_closes_the_conversation(house: House) -> None:
    approval = ApprovalSpec(policy="all", timeout_s=0.3, on_timeout="close")

    talk = await house.talk(refund(house, approval), "go")
    summary = await asyncio.wait_for(talk.handle.result(), 20)

    assert summary["status"] == "closed"
    assert house.effects() == []
    assert (await talk.state())["status"] == "closed"


async def test_fifty_rounds_of_two_deciders_run_at_most_once(house: House) -> None:
    refund(house)
    talk = await house.talk("refund", "hello")
    await talk.idle()
    approved = 0

    for round_ in range(50):
        await talk.send("go")
        item = await talk.item()
        second = "approve" if round_ % 2 else "deny"
        one, two = await asyncio.gather(
            talk.decide(item, "approve", by="ann"), talk.decide(item, second, by="bob")
        )
        await talk.idle()
        winner, loser = (one, two) if one["accepted"] else (two, one)
        assert [one["accepted"], two["accepted"]].count(True) == 1
        assert (loser["by"], loser["choice"]) == (winner["by"], winner["choice"])
        approved += winner["choice"] == "approve"
        assert len(house.effects()) == approved

    assert len(set(house.keys())) == approved


async def test_the_same_request_twice_gets_the_same_answer(house: House) -> None:
    talk = await house.talk(refund(house), "go")
    item = await talk.item()

    first = await talk.decide(item, "approve", id="same")
    second = await talk.decide(item, "approve", id="same")

    assert first == second
    assert first["accepted"] is True


async def test_a_decision_about_something_else_than_was_shown_is_refused(house: House) -> None:
    talk = await house.talk(refund(house), "go")
    item = await talk.item()

    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await talk.decide({**item, "digest": "0" * 64}, "approve")
    with pytest.raises(WorkflowUpdateFailedError):
        await talk.decide({**item, "id": f"{talk.id}:a99"}, "approve")
    with pytest.raises(WorkflowUpdateFailedError):
        await talk.decide(item, "go_on")

    assert "look at it again" in str(refused.value.cause)
    assert house.effects() == []
    assert await talk.failed_tasks() == 0


async def test_two_calls_alike_have_two_approvals(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [*WRITE["calls"], *WRITE["calls"]]}},
        default={"say": "done"},
    )
    house.agent("twice", model, "lab.write", approval=ALL)

    talk = await house.talk("twice", "go")
    state = await talk.until(lambda s: len(s["items"]) == 2)
    first, second = state["items"]
    await talk.decide(first, "approve")
    await talk.until(lambda s: _ended(talk))
    effects = house.effects()
    await talk.decide(second, "deny")
    await talk.idle()

    assert first["digest"] == second["digest"]
    assert effects == ["one"]
    assert house.effects() == ["one"]


async def test_an_ungated_call_does_not_wait_for_a_gated_one(house: House) -> None:
    calls = [*WRITE["calls"], {"tool": "echo", "args": {"text": "x"}}]
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": calls}}, default={"say": "done"}
    )
    house.agent("mixed", model, "lab.write", "lab.echo", approval=ApprovalSpec())

    talk = await house.talk("mixed", "go")
    item = await talk.item()
    state = await talk.until(lambda s: _ended(talk))
    await talk.decide(item, "approve")
    await talk.idle()

    assert state["status"] == "waiting"


async def _ended(talk: Talk) -> bool:
    return "tool_ended" in await talk.kinds()


async def test_the_authors_wish_asks_even_under_auto(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "shy", "args": {"text": "x"}}]}},
        default={"say": "done"},
    )
    house.agent("shy", model, "lab.shy", approval=ApprovalSpec(policy="auto"))

    talk = await house.talk("shy", "go")
    item = await talk.item()

    assert "author" in item["reason"]


async def test_a_pending_approval_does_not_hold_up_another_conversation(house: House) -> None:
    agent = refund(house)
    waiting = await house.talk(agent, "go")
    await waiting.item()

    other = await house.talk(agent, "hello")
    await other.idle()

    assert await other.last_words() == "ok"


async def test_a_limit_pauses_and_can_go_on(house: House) -> None:
    model = house.script(
        {"when": {"replies": 3}, "reply": {"say": "enough"}},
        default={"calls": [{"tool": "echo", "args": {"text": "x"}}]},
    )
    house.agent("looping", model, "lab.echo", limits=Limits(max_steps=2))

    talk = await house.talk("looping", "go")
    item = await talk.item("limit")
    await talk.decide(item, "go_on")
    await talk.idle()

    assert item["reason"].startswith("limits.max_steps is 2; ")
    assert await talk.last_words() == "enough"


async def test_the_same_call_for_ever_is_stopped_by_a_limit(house: House) -> None:
    model = house.script(default={"calls": [{"tool": "echo", "args": {"text": "x"}}]})
    house.agent("stuck", model, "lab.echo", limits=Limits(same_call=3, max_steps=50))

    talk = await house.talk("stuck", "go")
    item = await talk.item("limit")
    ran = (await talk.kinds()).count("tool_started")
    await talk.decide(item, "stop")
    state = await talk.idle()
    ended = (await talk.events())[-1]
    await talk.send("and now?")
    await talk.item("limit")

    assert ran == 3
    assert state["status"] == "idle"
    assert ended["outcome"] == "stopped"
    assert "same_call" in ended["detail"]


async def test_too_many_calls_for_one_message_pause_before_they_run(house: House) -> None:
    calls = [{"tool": "write", "args": {"line": str(i)}} for i in range(4)]
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": calls}}, default={"say": "done"}
    )
    house.agent("many", model, "lab.write", limits=Limits(max_tool_calls=3))

    talk = await house.talk("many", "go")
    item = await talk.item("limit")
    before = house.effects()
    await talk.decide(item, "stop")
    await talk.idle()

    assert before == house.effects() == []
    results = [e["status"] for e in await talk.entries() if e["kind"] == "result"]
    assert results == ["skipped"] * 4


async def test_lists_show_that_a_talk_waits_and_when_it_no_longer_does(house: House) -> None:
    talk = await house.talk(refund(house), "go")
    item = await talk.item()

    async def listed(status: str) -> Any:
        query = f"CapuchinProject = '{house.project}' AND CapuchinStatus = '{status}'"
        async with asyncio.timeout(20):
            while True:
                async for row in house.client.list_workflows(query):
                    return await row.memo()
                await asyncio.sleep(0.1)

    memo = await listed("waiting")
    await talk.decide(item, "approve")
    await talk.idle()
    after = await listed("open")

    [row] = memo["CapuchinInbox"]["items"]
    assert (row["id"], row["digest"]) == (item["id"], item["digest"])
    assert row["arguments"] == '{"line":"one"}'
    assert after["CapuchinInbox"]["items"] == []
