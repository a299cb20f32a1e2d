"""Cancelling at any moment leaves a valid transcript and a usable talk."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError

from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk, lab


def agent(house: House, *tools: str, calls: list[dict[str, object]], **more: object) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": calls}},
        {"when": {"user": "slow"}, "reply": {"say": "late", "delay_s": 30}},
        default={"say": "hi"},
    )
    house.agent("cancelled", model, *tools, **more)  # type: ignore[arg-type]


async def goes_on(talk: Talk) -> None:
    """The scripted model refuses any transcript that a provider would refuse."""
    await talk.send("hi")
    state = await talk.idle()
    assert state["status"] == "idle"
    assert await talk.last_words() == "hi"


async def test_cancel_while_an_approval_waits(house: House) -> None:
    agent(
        house,
        "lab.write",
        calls=[{"tool": "write", "args": {"line": "x"}}],
        approval=ApprovalSpec(policy="all"),
    )
    talk = await house.talk("cancelled", "go")
    item = await talk.item()

    await talk.cancel()
    await talk.idle()
    late = await talk.decide(item, "approve")

    ended = (await talk.events())[-1]
    assert (ended["outcome"], ended["detail"]) == ("cancelled", "cancelled by ann")
    assert (late["accepted"], late["choice"]) == (False, "withdrawn")
    assert house.effects() == []
    await goes_on(talk)


async def test_cancel_while_a_repeatable_tool_runs(house: House) -> None:
    agent(house, "lab.wait", calls=[{"tool": "wait", "args": {"name": "cancel1"}}])
    talk = await house.talk("cancelled", "go")
    await asyncio.to_thread(lab.entered("cancel1").wait, 10)

    await talk.cancel()
    await talk.idle(timeout_s=5)
    lab.gate("cancel1").set()

    assert [e["status"] for e in await talk.entries() if e["kind"] == "result"] == ["cancelled"]
    await goes_on(talk)


async def test_cancel_while_a_one_attempt_tool_runs_keeps_the_question_open(house: House) -> None:
    agent(
        house,
        "lab.write_stubbornly",
        calls=[{"tool": "write_stubbornly", "args": {"line": "x", "name": "cancel2"}}],
    )
    talk = await house.talk("cancelled", "go")
    await asyncio.to_thread(lab.entered("cancel2").wait, 10)

    await talk.cancel()
    state = await talk.idle(timeout_s=5)
    lab.gate("cancel2").set()
    await talk.until(lambda s: not s["items"])
    await goes_on(talk)

    assert [i["kind"] for i in state["items"]] == ["outcome"]
    notes = [e["text"] for e in await talk.entries() if e["kind"] == "note"]
    assert "it did happen" in notes[0]
    assert house.effects() == ["x"]


async def test_cancel_while_the_model_thinks(house: House) -> None:
    agent(house, calls=[])
    talk = await house.talk("cancelled", "slow")
    await talk.until(lambda s: s["status"] == "thinking" and s["turn"] == 1)

    await talk.cancel()
    await talk.idle(timeout_s=5)

    await goes_on(talk)


async def test_cancel_when_nothing_runs_says_so(house: House) -> None:
    agent(house, calls=[])
    talk = await house.talk("cancelled", "hi")
    await talk.idle()

    answer = await talk.cancel()

    assert answer["accepted"] is False


async def test_close_ends_the_talk_and_refuses_what_comes_after(house: House) -> None:
    agent(
        house,
        "lab.write",
        calls=[{"tool": "write", "args": {"line": "x"}}],
        approval=ApprovalSpec(policy="all"),
    )
    talk = await house.talk("cancelled", "go")
    await talk.item()

    await talk.close()
    summary = await asyncio.wait_for(talk.handle.result(), 10)

    assert (summary["status"], summary["closed_by"]) == ("closed", "ann")
    assert (await talk.state())["status"] == "closed"
    assert (await talk.kinds())[-1] == "conversation_closed"
    with pytest.raises((WorkflowUpdateFailedError, RPCError), match=r"(?i)complet|closed"):
        await talk.send("still there?")
