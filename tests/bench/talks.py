"""One conversation of ours as a client lives with it, and what a conversation's history holds."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from temporalio.client import Client

from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.events import TurnEnded


class OurTalk:
    """A conversation and a client that watches it all the time, as the TUI does."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._ended: dict[int, asyncio.Future[float]] = {}
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def start(cls, fleet: Capuchin, agent: str = "bench") -> OurTalk:
        """Start a conversation without a message."""
        return cls(await fleet.start(agent, None, by="bench"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)

    async def turn(self, text: str) -> float:
        """Send a message; return the seconds until the watching client knows its turn ended."""
        began = time.perf_counter()
        answer = await self.conversation.send(text, by="bench")
        assert answer.turn is not None
        ended = self._turn(answer.turn)
        either: set[asyncio.Future[Any]] = {ended, self._watching}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            self._watching.result()
            raise RuntimeError("the watch ended before the turn did")
        return ended.result() - began

    def _turn(self, number: int) -> asyncio.Future[float]:
        if number not in self._ended:
            self._ended[number] = asyncio.get_running_loop().create_future()
        return self._ended[number]

    async def _watch(self) -> None:
        async with aclosing(self.conversation.watch()) as watch:
            async for event in watch:
                if isinstance(event, TurnEnded):
                    assert event.outcome == "answered", event
                    self._turn(event.turn).set_result(time.perf_counter())


@dataclass(frozen=True, slots=True)
class Size:
    """What a conversation's history holds, over all of its runs."""

    events: int
    size_bytes: int
    runs: int
    is_open: bool

    def __sub__(self, other: Size) -> Size:
        return Size(
            self.events - other.events,
            self.size_bytes - other.size_bytes,
            self.runs - other.runs,
            self.is_open,
        )


class HistoryMeter:
    """Adds up the histories of a conversation; ask it at least once a run."""

    def __init__(self, client: Client, conversation: str) -> None:
        self._client = client
        self._conversation = conversation
        self._runs: list[str] = []

    async def read(self) -> Size:
        """The whole chain as it is now."""
        newest = await self._client.get_workflow_handle(self._conversation).describe()
        if newest.run_id not in self._runs:
            self._runs.append(str(newest.run_id))
        events = size_bytes = 0
        for run_id in self._runs:
            handle = self._client.get_workflow_handle(self._conversation, run_id=run_id)
            info = (await handle.describe()).raw_description.workflow_execution_info
            events += info.history_length
            size_bytes += info.history_size_bytes
        return Size(events, size_bytes, len(self._runs), newest.close_time is None)
