"""An effect happens once, or is honestly said to be unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path

from temporalio.client import Client

from capuchin_yaml.engine.storage import FolderStore
from tests.engine.house import House, lab, open_house


def writer(house: House, tool: str, timeout_s: float = 60.0, **args: object) -> str:
    """An agent that makes one call when told to."""
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": tool, "args": args}]}},
        default={"say": "done"},
    )
    house.agent("writer", model, f"lab.{tool}", timeout_s=timeout_s)
    return "writer"


async def result(talk: object) -> dict[str, str]:
    entries = await talk.entries()  # type: ignore[attr-defined]
    found: dict[str, str] = [e for e in entries if e["kind"] == "result"][-1]
    return found


async def test_a_tool_that_breaks_after_its_effect_is_asked_about(house: House) -> None:
    talk = await house.talk(writer(house, "write_and_break", line="one"), "go")
    item = await talk.item("outcome")
    await talk.decide(item, "happened", result="it is there")
    await talk.idle()

    assert "KeyError" in item["reason"]
    assert house.effects() == ["one"]
    assert (await result(talk))["text"] == "it is there"


async def test_an_unknown_call_can_be_run_again_with_the_same_key(house: House) -> None:
    talk = await house.talk(writer(house, "write_and_break", line="one"), "go")
    await talk.decide(await talk.item("outcome"), "rerun")
    again = await talk.until(lambda s: any(i["revision"] == 2 for i in s["items"]))
    await talk.decide(again["items"][0], "failed")
    await talk.idle()

    first, second = house.keys()
    assert first == second
    assert (await result(talk))["status"] == "error"


async def test_a_tool_that_says_it_failed_is_never_asked_about(house: House) -> None:
    talk = await house.talk(writer(house, "refuse", why="no money"), "go")
    await talk.idle()

    assert await result(talk) | {"call_id": ""} == {
        "kind": "result",
        "call_id": "",
        "tool": "refuse",
        "status": "error",
        "text": "no money",
    }


async def test_a_repeatable_tool_is_tried_again(house: House) -> None:
    talk = await house.talk(writer(house, "flaky", times=1), "go")
    await talk.idle()

    assert (await result(talk))["text"] == "attempt 2"
    assert house.effects() == ["attempt 2"]


async def test_a_tool_that_was_never_entered_is_scheduled_again(house: House) -> None:
    talk = await house.talk(writer(house, "away"), "go")
    await talk.idle()

    assert (await result(talk))["text"] == "came back"
    assert house.effects() == ["came back"]


async def test_a_one_attempt_tool_past_its_time_settles_itself_when_it_ends(house: House) -> None:
    talk = await house.talk(
        writer(house, "write_slowly", timeout_s=0.4, line="one", name="late"), "go"
    )
    item = await talk.item("outcome")
    lab.gate("late").set()
    await talk.idle()

    decided = [e for e in await talk.events() if e["kind"] == "item_decided"]
    assert "within 0.4 s" in item["reason"]
    assert (decided[0]["choice"], decided[0]["client"]) == ("happened", "worker")
    assert (await result(talk))["text"] == "wrote one"
    assert house.effects() == ["one"]


async def test_a_large_result_is_cut_with_a_visible_mark(house: House) -> None:
    talk = await house.talk(writer(house, "big", kilobytes=200), "go")
    await talk.idle()

    text = (await result(talk))["text"]
    assert text.startswith("head")
    assert text.endswith("tail")
    assert "left out" in text
    assert len(text) < 70_000


async def test_a_large_result_is_kept_whole_in_the_store(temporal: Client, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    async with open_house(temporal, tmp_path, store=store) as house:
        talk = await house.talk(writer(house, "big", kilobytes=200), "go")
        await talk.idle()

        text = (await result(talk))["text"]
        digest = text.partition("sha256 ")[2][:64]
        assert len(store.get(digest)) == 200 * 1024 + 8


async def test_results_that_are_no_json_are_told_and_do_not_break_the_turn(house: House) -> None:
    for kind in ("nan", "surrogate", "blank"):
        talk = await house.talk(writer(house, "odd", kind=kind), "go")
        await talk.idle()

        assert (await result(talk))["text"].strip()
        assert await talk.failed_tasks() == 0


async def test_a_graceful_stop_lets_a_running_tool_finish(house: House) -> None:
    talk = await house.talk(writer(house, "write_slowly", line="one", name="grace"), "go")
    await asyncio.to_thread(lab.entered("grace").wait, 10)
    stopping = asyncio.create_task(house.stop_worker())
    lab.gate("grace").set()
    await stopping
    await house.start_worker()
    await talk.idle()

    assert house.effects() == ["one"]
    assert (await result(talk))["text"] == "wrote one"


async def test_past_the_grace_time_the_outcome_is_asked_about(house: House) -> None:
    talk = await house.talk(writer(house, "write_slowly", line="one", name="stop"), "go")
    await asyncio.to_thread(lab.entered("stop").wait, 10)
    await house.stop_worker()
    await house.start_worker()
    item = await talk.item("outcome")

    assert item["tool"] == "lab.write_slowly"
    assert house.effects() == []
    lab.gate("stop").set()


async def test_looking_at_a_long_talk_leaves_nothing_in_the_store(
    temporal: Client, tmp_path: Path
) -> None:
    store = FolderStore(tmp_path / "store")
    async with open_house(temporal, tmp_path, store=store) as house:
        house.agent("wordy", house.script(default={"say": "y" * 40_000}))
        talk = await house.talk("wordy", "x" * 40_000)
        await talk.idle()
        await talk.send("more")
        await talk.idle()
        before = sorted(store.folder.rglob("*")) if store.folder.exists() else []

        assert len(await talk.events()) > 5
        assert len(await talk.entries()) == 4
        after = sorted(store.folder.rglob("*")) if store.folder.exists() else []
        assert before == after
