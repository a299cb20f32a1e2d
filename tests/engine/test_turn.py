"""A turn from message to idle."""

from __future__ import annotations

import asyncio
import threading
import time
from importlib.metadata import entry_points
from typing import Any

from capuchin_yaml.spec import ApprovalSpec, Limits
from capuchin_yaml.tools.registry import LoadedPackage, Registry
from tests.engine.house import House, Talk, lab

ALL = ApprovalSpec(policy="all")


def _call(tool: str, **args: object) -> dict[str, object]:
    return {"tool": tool, "args": args}


async def test_a_message_is_answered(house: House) -> None:
    house.agent("plain", house.script(default={"say": "good day"}))

    talk = await house.talk("plain", "hello")
    await talk.idle()

    assert await talk.kinds() == [
        "definition_pinned",
        "turn_started",
        "assistant_message",
        "usage_recorded",
        "turn_ended",
    ]
    assert await talk.last_words() == "good day"


async def test_events_have_gapless_offsets(house: House) -> None:
    house.agent("plain", house.script(default={"say": "good day"}))

    talk = await house.talk("plain", "hello")
    await talk.idle()
    await talk.send("again")
    await talk.idle()

    offsets = [e["offset"] for e in await talk.events()]
    assert offsets == list(range(len(offsets)))


async def test_a_turn_with_a_tool_costs_at_most_24_history_events(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [_call("echo", text="x")]}},
        {"when": {"result": "x"}, "reply": {"say": "done"}},
    )
    house.agent("counted", model, "lab.echo")
    talk = await house.talk("counted", "go")
    await talk.idle()
    costs = []
    for _ in range(3):  # a busy machine may add a task that timed out to one of them
        before = len((await talk.handle.fetch_history()).events)
        await talk.send("go")
        await talk.idle()
        costs.append(len((await talk.handle.fetch_history()).events) - before)

    assert min(costs) <= 24


async def test_results_come_in_call_order_whatever_ends_first(house: House) -> None:
    model = house.script(
        {
            "when": {"user": "go"},
            "reply": {"calls": [_call("wait", name="order"), _call("echo", text="second")]},
        },
        default={"say": "done"},
    )
    house.agent("parallel", model, "lab.wait", "lab.echo")

    talk = await house.talk("parallel", "go")
    await talk.until(lambda s: _ended(talk, 1))
    lab.gate("order").set()
    await talk.idle()

    results = [e["text"] for e in await talk.entries() if e["kind"] == "result"]
    assert results == ["order opened", "second"]


async def _ended(talk: Talk, count: int) -> bool:
    return (await talk.kinds()).count("tool_ended") >= count


async def test_messages_during_a_turn_queue_and_are_each_answered(house: House) -> None:
    model = house.script(
        {"when": {"user": "first"}, "reply": {"calls": [_call("wait", name="queue")]}},
        {"when": {"result": "opened"}, "reply": {"say": "first done"}},
        {"when": {"user": "(second|third)"}, "reply": {"say": "answer to $1"}},
    )
    house.agent("busy", model, "lab.wait")

    talk = await house.talk("busy", "first")
    await talk.until(lambda s: s["status"] == "thinking")
    second, third = await talk.send("second"), await talk.send("third")
    lab.gate("queue").set()
    await talk.idle()

    said = [e["text"] for e in await talk.events() if e["kind"] == "assistant_message"]
    assert (second["queued"], third["turn"]) == (True, 3)
    assert said[-3:] == ["first done", "answer to second", "answer to third"]


async def test_an_unknown_tool_gets_an_error_that_lists_the_real_ones(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [_call("reed_file"), _call("ECHO", text="x")]}},
        default={"say": "sorry"},
    )
    house.agent("confused", model, "lab.echo", approval=ALL)

    talk = await house.talk("confused", "go")
    await talk.idle()

    results = [e for e in await talk.entries() if e["kind"] == "result"]
    assert [r["status"] for r in results] == ["invalid", "invalid"]
    assert "the tools are: echo" in results[0]["text"]
    assert "item_opened" not in await talk.kinds()


async def test_arguments_that_do_not_fit_never_reach_a_person_or_the_tool(house: House) -> None:
    inputs: tuple[Any, ...] = (
        "",
        '{"text": "x"}',
        [],
        None,
        5,
        {"text": 5},
        {},
        {"text": "a", "more": 1},
    )
    hostile = [{"tool": "echo", "args": value} for value in inputs]
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": hostile}}, default={"say": "sorry"}
    )
    house.agent("hostile", model, "lab.echo", approval=ALL)

    talk = await house.talk("hostile", "go")
    await talk.idle()

    results = [e for e in await talk.entries() if e["kind"] == "result"]
    assert {r["status"] for r in results} == {"invalid"}
    assert "text" in results[5]["text"]
    assert "more" in results[7]["text"]
    assert await talk.failed_tasks() == 0
    await talk.send("still there?")
    await talk.idle()
    assert await talk.last_words() == "sorry"


async def test_a_reply_that_was_cut_off_runs_nothing_and_ends_with_a_reason(house: House) -> None:
    model = house.script(default={"calls": [_call("write", line="x")], "stop_reason": "max_tokens"})
    house.agent("cut", model, "lab.write", approval=ALL)

    talk = await house.talk("cut", "go")
    await talk.idle()

    ended = (await talk.events())[-1]
    assert house.effects() == []
    assert "item_opened" not in await talk.kinds()
    assert ended["outcome"] == "stopped"
    assert "cut off" in ended["detail"]


async def test_a_blank_reply_ends_the_turn_and_the_talk_goes_on(house: House) -> None:
    model = house.script({"when": {"user": "blank"}, "reply": {"say": "  "}}, default={"say": "ok"})
    house.agent("blank", model)

    talk = await house.talk("blank", "blank")
    await talk.idle()
    await talk.send("again")
    await talk.idle()

    assert await talk.last_words() == "ok"


async def test_a_provider_that_refuses_ends_the_turn_and_not_the_talk(house: House) -> None:
    model = house.script(
        {"when": {"user": "bad"}, "reply": {"fail": {"status": 400}}}, default={"say": "ok"}
    )
    house.agent("refused", model)

    talk = await house.talk("refused", "bad")
    state = await talk.idle()
    ended = (await talk.events())[-1]
    await talk.send("good")
    await talk.idle()

    assert state["status"] == "idle"
    assert ended["outcome"] == "model_rejected"
    assert await talk.last_words() == "ok"


async def test_a_provider_that_is_busy_is_asked_again(house: House) -> None:
    model = house.script(
        {
            "when": {"user": "go"},
            "reply": {"say": "here now", "fail": {"status": 529, "times": 2, "retry_after_s": 0.1}},
        }
    )
    house.agent("overloaded", model)

    talk = await house.talk("overloaded", "go")
    await talk.idle()

    assert await talk.last_words() == "here now"


async def test_an_agent_the_worker_does_not_have_fails_with_its_reason(house: House) -> None:
    house.agent("known", house.script(default={"say": "x"}))

    talk = await house.talk("unknown", "hello")
    state = await talk.idle()

    assert state["status"] == "failed"
    assert "known" in state["detail"]


async def test_ten_conversations_do_not_wait_for_one_slow_tool(house: House) -> None:
    model = house.script(
        {"when": {"user": "slow"}, "reply": {"calls": [_call("stall", seconds=5)]}},
        {"when": {"user": "quick"}, "reply": {"calls": [_call("echo", text="q")]}},
        default={"say": "done"},
    )
    house.agent("crowd", model, "lab.stall", "lab.echo")

    slow = await house.talk("crowd", "slow")
    await slow.until(lambda s: _started(slow))
    quick = await asyncio.gather(*(house.talk("crowd", "quick") for _ in range(9)))
    await asyncio.gather(*(t.idle() for t in quick))

    assert (await slow.state())["status"] == "thinking"
    await slow.idle()


async def _started(talk: Talk) -> bool:
    return "tool_started" in await talk.kinds()


async def test_at_most_max_parallel_calls_run_at_once(house: House) -> None:
    calls = [_call("wait", name=f"par{i}") for i in range(4)]
    model = house.script({"when": {"user": "go"}, "reply": {"calls": calls}}, default={"say": "d"})
    house.agent("narrow", model, "lab.wait", limits=Limits(max_parallel_calls=2))

    talk = await house.talk("narrow", "go")
    await asyncio.to_thread(lab.entered("par1").wait, 10)
    started = (await talk.kinds()).count("tool_started")
    for i in range(4):
        lab.gate(f"par{i}").set()
    await talk.idle()

    assert started == 2
    assert (await talk.kinds()).count("tool_ended") == 4


class SlowRegistry(Registry):
    """Packages that take longer to import than a verdict may."""

    def __init__(self) -> None:
        super().__init__(entry_points(group="capuchin.tools"))
        self.whole: list[str] = []

    def package(self, entry: str) -> LoadedPackage:
        if entry not in self.whole and threading.current_thread().name.startswith("judge"):
            deadline = time.monotonic() + 1.6
            while time.monotonic() < deadline:
                time.sleep(0.01)
            self.whole.append(entry)
        return super().package(entry)


async def test_a_verdict_that_takes_too_long_does_not_break_the_import_under_it(
    house: House,
) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [_call("echo", text="x")]}},
        {"when": {"result": "x"}, "reply": {"say": "done"}},
    )
    house.agent("slow", model, "lab.echo")
    await house.stop_worker()
    house.registry = slow = SlowRegistry()
    await house.start_worker()

    talk = await house.talk("slow", "go")
    state = await talk.until(lambda s: bool(s["items"]) or s["status"] == "idle")
    for item in state["items"]:  # a verdict that is late asks
        await talk.decide(item, "approve")
    await talk.idle()

    assert set(slow.whole) == {"lab"}
    assert await talk.last_words() == "done"
