"""A call in its thread always ends with one outcome, whenever it is told to stop."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from pathlib import Path

from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.tool_outcome import OutcomeMaker
from capuchin_yaml.engine.tool_thread import RunningCall
from capuchin_yaml.tools.api import Tool, ToolCancelled, ToolContext, ToolFailed, tool

MAKER = OutcomeMaker(Scrubber(), None)


def call(found: Tool, tmp_path: Path) -> RunningCall:
    context = ToolContext(
        idempotency_key="k",
        conversation_id="c",
        call_id="c:1",
        attempt=1,
        data_dir=tmp_path / "data",
    )
    running = RunningCall(found, {}, context, MAKER)
    running.start()
    return running


def test_a_cancel_in_the_same_instant_as_the_end_loses_nothing(tmp_path: Path) -> None:
    pause = random.Random(7)

    @tool(effect="read")
    def quick() -> str:
        """End at once."""
        return "".join(str(i) for i in range(50))

    statuses = set()
    for _ in range(400):
        running = call(quick, tmp_path)
        end = time.perf_counter() + pause.random() * 0.0006
        while time.perf_counter() < end:
            pass
        running.cancel()
        outcome = running.result.result(timeout=10)
        statuses.add(outcome["status"])

    assert statuses <= {"ok", "cancelled", "unavailable"}
    assert "ok" in statuses


def test_nothing_is_raised_in_a_thread_that_has_left_its_tool(tmp_path: Path) -> None:
    @tool(effect="read")
    def quick() -> str:
        """End at once."""
        return "done"

    running = call(quick, tmp_path)
    assert running.result.result(timeout=10)["status"] == "ok"
    running.cancel()
    running.cancel()

    assert sum(range(100_000)) == 4_999_950_000


def test_a_repeatable_call_that_is_stopped_is_cancelled_and_another_is_unknown(
    tmp_path: Path,
) -> None:
    inside = threading.Event()

    def loop() -> str:
        """Go round."""
        inside.set()
        while True:
            time.sleep(0.001)

    for found, status in ((tool(effect="read")(loop), "cancelled"), (tool(loop), "unknown")):
        inside.clear()
        running = call(found, tmp_path)
        inside.wait(10)
        running.cancel()

        assert running.result.result(timeout=10)["status"] == status


def test_a_tool_may_say_that_nothing_happened(tmp_path: Path) -> None:
    inside = threading.Event()

    @tool
    def wait(ctx: ToolContext) -> str:
        """Wait."""
        inside.set()
        try:
            ctx.cancelled.wait()
            time.sleep(0.01)
        except ToolCancelled as stop:
            raise ToolFailed("nothing was sent") from stop
        raise ToolFailed("nothing was sent")

    running = call(wait, tmp_path)
    inside.wait(10)
    running.cancel()

    assert running.result.result(timeout=10) == {"status": "error", "text": "nothing was sent"}


def test_an_async_tool_that_blocks_its_loop_is_interrupted_too(tmp_path: Path) -> None:
    inside = threading.Event()

    @tool(effect="read")
    async def stall() -> str:
        """Block."""
        inside.set()
        while True:
            time.sleep(0.01)  # noqa: ASYNC251 the mistake is the point

    running = call(stall, tmp_path)
    inside.wait(10)
    running.cancel()

    assert running.result.result(timeout=10)["status"] == "cancelled"


def test_an_async_tool_can_clean_up(tmp_path: Path) -> None:
    inside, cleaned = threading.Event(), threading.Event()

    @tool(effect="read")
    async def nap() -> str:
        """Sleep."""
        inside.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()
        return "slept"

    running = call(nap, tmp_path)
    inside.wait(10)
    running.cancel()

    assert running.result.result(timeout=10)["status"] == "cancelled"
    assert cleaned.is_set()


def test_a_result_that_cannot_be_read_is_still_an_end(tmp_path: Path) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    @tool
    def give() -> object:
        """Give something odd."""
        return Broken()

    outcome = call(give, tmp_path).result.result(timeout=10)

    assert outcome["status"] == "ok"
    assert "its result cannot be shown" in outcome["text"]
