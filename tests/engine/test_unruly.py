"""Models that make things up, people who do not wait, and decisions in the last moment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capuchin_yaml.spec import ApprovalSpec, Limits, PolicyName
from tests.engine.house import House, Talk

MADE_UP = ("reed_file", "", "READ_FILE")


@pytest.mark.parametrize(
    ("policy", "listed"),
    [
        ("auto", ()),
        ("all", ()),
        ("allowlist", ("lab.echo", "lab.write")),
        ("denylist", ("lab.write",)),
    ],
)
async def test_made_up_tools_are_never_asked_about_and_end_at_the_limit(
    policy: PolicyName, listed: tuple[str, ...], house: House
) -> None:
    """Case: a made-up tool name crashes the loop, asks a person, or goes on for ever."""
    calls = [{"tool": name, "args": {}} for name in MADE_UP]
    house.agent(
        "dreamer",
        house.script(default={"calls": calls}),
        "lab.echo",
        "lab.write",
        approval=ApprovalSpec(policy=policy, tools=listed),
        limits=Limits(max_steps=3),
    )

    talk = await house.talk("dreamer", "go")
    item = await talk.item("limit")
    results = [e for e in await talk.entries() if e["kind"] == "result"]
    opened = [e["item"]["kind"] for e in await talk.events() if e["kind"] == "item_opened"]
    await talk.decide(item, "stop")
    state = await talk.idle()

    assert len(results) == 3 * len(MADE_UP)
    assert {r["status"] for r in results} == {"invalid"}
    assert all("echo" in r["text"] and "write" in r["text"] for r in results)
    assert opened == ["limit"]
    assert state["status"] == "idle"
    assert await talk.failed_tasks() == 0


async def test_messages_behind_a_pending_approval_are_each_answered_after_it(house: House) -> None:
    """Case: a message during an open call is lost, slips between call and result, or approves."""
    model = house.script(
        {"when": {"user": "first"}, "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]}},
        {"when": {"result": "wrote"}, "reply": {"say": "first done"}},
        {"when": {"user": "(approve it|yes please)"}, "reply": {"say": "heard: $1"}},
    )
    house.agent("patient", model, "lab.write", approval=ApprovalSpec(policy="all"))

    talk = await house.talk("patient", "first")
    item = await talk.item()
    queued = [await talk.send("approve it"), await talk.send("yes please")]
    waiting = await talk.state()
    effects_before = house.effects()
    await talk.decide(item, "approve")
    await talk.idle()

    said = [
        e["text"] for e in await talk.events() if e["kind"] == "assistant_message" and e["text"]
    ]
    assert [answer["queued"] for answer in queued] == [True, True]
    assert (waiting["status"], [i["id"] for i in waiting["items"]]) == ("waiting", [item["id"]])
    assert effects_before == []
    assert house.effects() == ["x"]
    assert said == ["first done", "heard: approve it", "heard: yes please"]
    kinds = [entry["kind"] for entry in await talk.entries()]
    assert kinds[kinds.index("assistant") + 1] == "result"


async def test_two_approvals_in_a_row_each_appear(house: House) -> None:
    """Case: the second approval of one turn is never shown."""
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "a"}}]}},
        {
            "when": {"result": "wrote a"},
            "reply": {"calls": [{"tool": "write", "args": {"line": "b"}}]},
        },
        default={"say": "done"},
    )
    house.agent("serial", model, "lab.write", approval=ApprovalSpec(policy="all"))

    talk = await house.talk("serial", "go")
    first = await talk.item()
    await talk.decide(first, "approve")
    await talk.until(lambda s: any(i["id"] != first["id"] for i in s["items"]))
    second = await talk.item()
    await talk.decide(second, "approve")
    await talk.idle()

    assert first["id"] != second["id"]
    assert first["digest"] != second["digest"]
    assert house.effects() == ["a", "b"]


@pytest.mark.parametrize("choice", ["approve", "deny"])
async def test_late_is_late_for_either_answer(choice: str, house: House) -> None:
    """Case: a deny after the time was up is kept as the person's word, or an approve acts."""
    talk = await gated(house, timeout_s=0.4)
    item = await talk.item()
    await talk.idle()

    late = await talk.decide(item, choice, reason="too late?")

    decided = [e for e in await talk.events() if e["kind"] == "item_decided"]
    assert (late["accepted"], late["choice"]) == (False, "expired")
    assert [(e["choice"], e["by"]) for e in decided] == [("expired", "")]
    assert house.effects() == []


async def test_a_decision_in_the_moment_the_time_is_up_counts_once_or_not_at_all(
    house: House,
) -> None:
    """Case: time-out and person in the same second are both carried out."""

    async def race(pause_s: float) -> tuple[Any, list[str], list[str]]:
        talk = await gated(house, timeout_s=0.6)
        item = await talk.item()
        await asyncio.sleep(pause_s)
        answer = await talk.decide(item, "approve")
        await talk.idle()
        events = await talk.events()
        choices = [e["choice"] for e in events if e["kind"] == "item_decided"]
        results = [e["status"] for e in events if e["kind"] == "tool_ended"]
        return answer, choices, results

    rounds = await asyncio.gather(*(race(0.4 + n * 0.03) for n in range(12)))

    for answer, choices, results in rounds:
        assert len(choices) == 1
        approved = choices == ["approve"]
        assert answer["accepted"] is approved
        assert results == ["ok" if approved else "expired"]
    assert len(house.effects()) == sum(choices == ["approve"] for _, choices, _ in rounds)


async def gated(house: House, *, timeout_s: float) -> Any:
    """A conversation that waits this long for a person."""
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]}},
        default={"say": "done"},
    )
    approval = ApprovalSpec(policy="all", timeout_s=timeout_s)
    house.agent("hasty", model, "lab.write", approval=approval)
    return await house.talk("hasty", "go")


@pytest.mark.parametrize("reason", ["", "not on a Friday"])
async def test_a_refused_call_that_is_asked_for_for_ever_is_stopped_with_a_reason(
    reason: str, house: House
) -> None:
    """Case: a refusal looks like a failure that may pass, so the model never stops asking."""
    model = house.script(default={"calls": [{"tool": "write", "args": {"line": "x"}}]})
    house.agent(
        "insistent",
        model,
        "lab.write",
        approval=ApprovalSpec(policy="all"),
        limits=Limits(max_steps=20),
    )

    talk = await house.talk("insistent", "go")
    denied = 0
    while (item := await any_item(talk, after=denied))["kind"] == "approval":
        await talk.decide(item, "deny", reason=reason)
        denied += 1
        assert denied <= 20
    results = [e for e in await talk.entries() if e["kind"] == "result"]
    await talk.decide(item, "stop")
    state = await talk.idle()
    ended = (await talk.events())[-1]

    assert denied == Limits().same_call
    assert {r["status"] for r in results} == {"denied"}
    assert all("ann refused this call" in r["text"] and reason in r["text"] for r in results)
    assert "very same call" in item["title"]
    assert (ended["outcome"], "same_call" in ended["detail"]) == ("stopped", True)
    assert state["usage"]["output_tokens"] > 0
    assert house.effects() == []


async def any_item(talk: Talk, *, after: int) -> dict[str, Any]:
    """The one open item, once this many were decided."""

    async def is_there(state: Any) -> bool:
        decided = (await talk.kinds()).count("item_decided")
        return bool(state["items"]) and decided >= after

    found: dict[str, Any] = (await talk.until(is_there))["items"][0]
    return found


async def test_two_calls_in_turn_for_ever_end_at_a_limit_and_a_person_may_go_on(
    house: House,
) -> None:
    """Case: a guard against one call repeated does not see two that alternate."""
    model = house.script(
        {"when": {"result": "ping"}, "reply": {"calls": [{"tool": "echo", "args": {"text": "o"}}]}},
        default={"calls": [{"tool": "echo", "args": {"text": "ping"}}]},
    )
    house.agent("pingpong", model, "lab.echo", limits=Limits(max_steps=6, same_call=10))

    talk = await house.talk("pingpong", "go")
    first = await talk.item("limit")
    ran = (await talk.kinds()).count("tool_started")
    await talk.decide(first, "go_on")
    await talk.until(lambda s: any(i["id"] != first["id"] for i in s["items"]))
    second = await talk.item("limit")
    ran_more = (await talk.kinds()).count("tool_started")
    used = (await talk.state())["usage"]
    await talk.decide(second, "stop")
    await talk.idle()

    assert (ran, ran_more) == (6, 12)
    asked = sum(used.values()) - used["output_tokens"]
    assert asked > 0
    assert second["reason"] == (
        f"limits.max_steps is 6; {asked:,} tokens in and {used['output_tokens']:,} out so far"
    )
    assert used["input_tokens"] > 0
    assert (await talk.events())[-1]["outcome"] == "stopped"
