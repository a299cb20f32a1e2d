"""Tool code stops when a person says so; what does not stop is given up and named."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client

from tests.engine.house import House, Talk, lab, open_house
from tests.tools.processes import is_gone, written


async def started(house: House, name: str, tool: str, **args: object) -> Talk:
    """A talk whose one call is inside its tool; the tool says so at the gate `name`."""
    model = house.script(
        {
            "when": {"user": "go"},
            "reply": {"calls": [{"tool": tool, "args": {"name": name, **args}}]},
        },
        default={"say": "hi"},
    )
    house.agent("stopped", model, f"lab.{tool}", timeout_s=120)
    talk = await house.talk("stopped", "go")
    assert await asyncio.to_thread(lab.entered(name).wait, 20)
    return talk


async def ended(talk: Talk) -> dict[str, object]:
    """The one `tool_ended` event."""
    [event] = [e for e in await talk.events() if e["kind"] == "tool_ended"]
    return event


async def all_gone(pids: list[int]) -> bool:
    """Whether these processes end soon."""
    return all([await asyncio.to_thread(is_gone, pid) for pid in pids])


async def goes_on(talk: Talk) -> None:
    await talk.send("hi")
    await talk.idle()
    assert await talk.last_words() == "hi"


async def test_a_sync_tool_is_interrupted_where_it_is(house: House) -> None:
    talk = await started(house, "spin1", "spin")
    await talk.cancel()
    item = await talk.item("outcome", timeout_s=10)
    await talk.idle(timeout_s=10)

    assert house.effects() == ["interrupted"]
    assert "stopped while it was running" in item["reason"]
    await goes_on(talk)


async def test_an_async_tool_is_cancelled(house: House) -> None:
    talk = await started(house, "nap1", "nap")
    await talk.cancel()
    await talk.idle(timeout_s=10)

    assert house.effects() == ["cancelled"]
    assert (await ended(talk))["status"] == "cancelled"
    await goes_on(talk)


async def test_a_one_attempt_tool_that_says_it_did_nothing_is_believed(house: House) -> None:
    talk = await started(house, "polite1", "write_unless_cancelled", line="x")
    await talk.cancel()
    state = await talk.idle(timeout_s=10)

    assert state["items"] == []
    assert (await ended(talk))["text"] == "nothing was written"
    assert house.effects() == []
    await goes_on(talk)


async def test_programs_of_cancelled_calls_are_gone_and_the_chat_goes_on(house: House) -> None:
    calls = [{"tool": "sleep", "args": {"name": f"sleep{i}"}} for i in range(4)]
    model = house.script({"when": {"user": "go"}, "reply": {"calls": calls}}, default={"say": "hi"})
    house.agent("sleepers", model, "lab.sleep", timeout_s=120)
    talk = await house.talk("sleepers", "go")
    folder = house.settings.data_dir / "lab"
    files = [folder / f"pids-{n}" for n in range(1, 5)]
    pids = [pid for f in files for pid in await asyncio.to_thread(written, f, 2)]
    began = time.monotonic()
    await talk.cancel()
    await talk.idle(timeout_s=10)

    assert time.monotonic() - began < 8
    assert len(pids) == 8
    assert await all_gone(pids)
    await goes_on(talk)


async def test_code_that_cannot_be_interrupted_is_given_up_and_named(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    talk = await started(house, "block1", "block", seconds=6)
    with caplog.at_level(logging.WARNING):
        began = time.monotonic()
        await talk.cancel()
        await talk.idle(timeout_s=10)
        took_s = time.monotonic() - began

    assert took_s < 5
    assert (await ended(talk))["status"] == "cancelled"
    assert "was still running 2 s later" in str((await ended(talk))["text"])
    assert f"block of {talk.id}:1 was told to stop and runs on" in caplog.text
    await goes_on(talk)


async def test_a_call_that_was_given_up_is_listed_until_it_ends(house: House) -> None:
    talk = await started(house, "block3", "block", seconds=6)
    await talk.cancel()
    state = await talk.idle(timeout_s=10)
    [listed] = state["still_running"]
    later = await talk.until(lambda s: not s["still_running"], timeout_s=20)

    assert (listed["call_id"], listed["tool"]) == (f"{talk.id}:1", "lab.block")
    assert later["status"] == "idle"


async def test_given_up_calls_leave_their_places_to_others(
    temporal: Client, tmp_path: Path
) -> None:
    async with open_house(temporal, tmp_path, concurrent_activities=2) as house:
        for i in range(3):
            talk = await started(house, f"block2-{i}", "block", seconds=8)
            await talk.cancel()
            await talk.idle(timeout_s=10)
            await goes_on(talk)


async def test_other_talks_go_on_beside_a_tool_that_computes(house: House) -> None:
    busy = await started(house, "spin2", "spin")
    began = time.monotonic()
    other = await house.talk("stopped", "hi")
    await other.idle(timeout_s=20)
    took_s = time.monotonic() - began
    async with asyncio.timeout(20):
        while not (await _pending(busy)).HasField("last_heartbeat_time"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await busy.cancel()

    assert await other.last_words() == "hi"
    assert took_s < 10


async def _pending(talk: Talk) -> PendingActivityInfo:
    [activity] = (await talk.handle.describe()).raw_description.pending_activities
    return activity


async def test_programs_end_with_the_worker(house: House) -> None:
    await started(house, "sleep-end", "sleep")
    pids = await asyncio.to_thread(written, house.settings.data_dir / "lab" / "pids-1", 2)
    await house.stop_worker()

    assert await all_gone(pids)


async def test_a_repeatable_tool_past_its_time_is_stopped(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "nap", "args": {"name": "nap2"}}]}},
        default={"say": "hi"},
    )
    house.agent("late", model, "lab.nap", timeout_s=0.5)
    talk = await house.talk("late", "go")
    await talk.idle()

    assert (await ended(talk))["text"] == "The tool gave no answer within 0.5 s."
    assert house.effects() == ["cancelled"]


async def test_a_result_may_carry_artifacts_and_a_receipt(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "report", "args": {"pages": 3}}]}},
        default={"say": "done"},
    )
    house.agent("reporter", model, "lab.report")
    talk = await house.talk("reporter", "go")
    await talk.idle()
    event = await ended(talk)
    entries = await talk.entries()

    assert event["receipt"] == {"number": "R-7", "pages": 3}
    assert str(event["text"]).startswith('{"pages": 3}\n[artifact report.txt, text/plain, 15 bytes')
    assert "R-7" not in str(entries)


async def test_a_result_may_say_that_it_is_an_error(house: House) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "half", "args": {"why": "no"}}]}},
        default={"say": "done"},
    )
    house.agent("halves", model, "lab.half")
    talk = await house.talk("halves", "go")
    await talk.idle()
    event = await ended(talk)

    assert (event["status"], event["text"], event["receipt"]) == ("error", "no", {"proof": 1})
