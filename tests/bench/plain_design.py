"""The baseline: the plain way to run an agent on Temporal, our own port of it.

The whole transcript goes into every model activity, tools run one after another, the client asks
two queries every 200 ms, and everything else is left as the SDK and the stock server have it.
Where the plain design leaves a choice, the cheaper one is taken: a message is a signal, the
transcript query answers only what is new, and the first poll may come at any moment of its 200 ms.

Run as `python -m tests.bench.plain_design ADDRESS QUEUE`, it is the worker, until stdin closes.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
import uuid
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

POLL_EVERY_S = 0.2

Entry = dict[str, Any]


@workflow.defn(name="PlainAgent")
class PlainAgent:
    """A conversation that keeps its transcript in workflow state."""

    def __init__(self) -> None:
        self._transcript: list[Entry] = []
        self._waiting: list[str] = []
        self._answered = 0

    @workflow.run
    async def run(self, system: str) -> None:
        """Answer messages for ever."""
        while True:
            await workflow.wait_condition(lambda: bool(self._waiting))
            self._transcript.append({"role": "user", "text": self._waiting.pop(0)})
            await self._turn(system)
            self._answered += 1

    async def _turn(self, system: str) -> None:
        while True:
            reply = await workflow.execute_activity(
                call_model,
                args=[system, self._transcript],
                start_to_close_timeout=timedelta(minutes=5),
            )
            self._transcript.append(reply)
            if not reply["calls"]:
                return
            for call in reply["calls"]:
                text = await workflow.execute_activity(
                    call_tool, call, start_to_close_timeout=timedelta(minutes=5)
                )
                self._transcript.append({"role": "tool", "id": call["id"], "text": text})

    @workflow.signal
    def send(self, text: str) -> None:
        """Take a message."""
        self._waiting.append(text)

    @workflow.query
    def status(self) -> dict[str, Any]:
        """How many messages were answered, and whether one is being answered."""
        return {"answered": self._answered, "entries": len(self._transcript)}

    @workflow.query
    def transcript(self, since: int) -> list[Entry]:
        """The entries from this one on."""
        return self._transcript[since:]


@activity.defn
async def call_model(system: str, transcript: list[Entry]) -> Entry:
    """A model that takes no time: asks for the tool once, then says what the tool gave."""
    last = transcript[-1]
    if last["role"] == "user":
        call = {"id": f"call_{len(transcript)}", "name": "echo", "args": {"text": last["text"]}}
        return {"role": "assistant", "text": "", "calls": [call]}
    return {"role": "assistant", "text": last["text"], "calls": []}


@activity.defn
async def call_tool(call: dict[str, Any]) -> str:
    """A tool that takes no time."""
    return str(call["args"]["text"])


class PlainTalk:
    """One plain conversation and the client that polls it."""

    def __init__(self, handle: WorkflowHandle[Any, Any], poll_every_s: float) -> None:
        self.handle = handle
        self._poll_every_s = poll_every_s
        self._phase = random.Random(7)
        self._turns = 0
        self._seen = 0

    @classmethod
    async def start(
        cls, client: Client, queue: str, *, poll_every_s: float = POLL_EVERY_S
    ) -> PlainTalk:
        """Start a conversation on this queue."""
        handle = await client.start_workflow(
            "PlainAgent", "You are a bench.", id=f"plain-{uuid.uuid4().hex[:12]}", task_queue=queue
        )
        return cls(handle, poll_every_s)

    async def turn(self, text: str) -> float:
        """Send a message; return the seconds until the polling client has its answer."""
        began = time.perf_counter()
        next_poll = began + self._phase.uniform(0, self._poll_every_s)
        await self.handle.signal("send", text)
        self._turns += 1
        while True:
            await asyncio.sleep(max(next_poll - time.perf_counter(), 0))
            next_poll += self._poll_every_s
            status = await self.handle.query("status", result_type=dict)
            new = await self.handle.query("transcript", self._seen, result_type=list)
            self._seen += len(new)
            if status["answered"] >= self._turns:
                return time.perf_counter() - began


async def serve(client: Client, queue: str) -> Worker:
    """Return a worker for plain conversations, with the SDK's own options."""
    return Worker(
        client, task_queue=queue, workflows=[PlainAgent], activities=[call_model, call_tool]
    )


async def _main(address: str, queue: str) -> None:
    async with await serve(await Client.connect(address), queue):
        print("polling", flush=True)  # noqa: T201 whoever started it waits for this line
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
