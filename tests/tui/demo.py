"""The TUI on the fake gateway, for tests in a real terminal: `python -m tests.tui.demo [SCENE]`."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui import lookups
from capuchin_yaml.tui.gateway import AgentCard, Gateway
from capuchin_yaml.tui.running import run_tui
from capuchin_yaml.tui.screens.chat import ChatScreen
from tests.tui import worlds
from tests.tui.fake_gateway import FakeGateway

REPLY = """Order **A-1001** was late, so a refund is fair.

- ordered 3 November, delivered 21 November
- paid `42.00 USD`

```json
{"order_id": "A-1001", "paid_cents": 4200}
```
"""


def scene() -> FakeGateway:
    """Some conversations, one of them waiting."""
    fake = FakeGateway(now=datetime.now(UTC))
    fake.cards = (
        AgentCard(
            "billing",
            "1.2.0",
            "Looks up orders and refunds them.",
            policy="denylist: asks before billing.issue_refund; everything else runs",
        ),
        AgentCard(
            "sales",
            "0.3.0",
            "Answers questions about products.",
            variables={"company": VariableSpec(required=True)},
            injected=("tenant",),
        ),
        AgentCard("broken", problem="agents/broken.yaml:4:3: model has no key 'max_ouput_tokens'"),
    )
    old = fake.add("triage", title="Sort the mail of Monday")
    fake.pin(old)
    fake.turn(old, "Sort the mail of Monday")
    fake.say(old, "Done: 14 letters in 3 heaps.")
    fake.end(old)
    talk = fake.add("billing", id="demo.billing-a91f00", title="")
    fake.pin(talk, "rehearsal")
    fake.turn(talk, "I need a refund for order A-1001")
    fake.say(talk, "Looking the order up…")
    lookup = fake.call(
        talk, 1, "billing.lookup_order", '{"order_id":"A-1001"}', "allow", "lookup_order"
    )
    fake.run(talk, lookup, '{"order_id": "A-1001", "paid_cents": 4200, "late": true}')
    fake.say(talk, REPLY)
    fake.call(talk, 2)
    fake.open_item(talk, 2)
    return fake


def noise(ends: threading.Event) -> None:
    """Print by every way there is, again and again, while the screen is painted."""
    while not ends.wait(0.2):
        print("STRAY print")  # noqa: T201  # what this is about
        sys.stderr.write("STRAY stderr\n")
        os.write(1, b"STRAY fd1\n")
        os.write(2, b"STRAY fd2\n")
        warnings.warn("STRAY warning", stacklevel=1)
        logging.getLogger("x").warning("STRAY log")
        subprocess.run(["echo", "STRAY child"], check=False)


async def lose(fake: FakeGateway) -> None:
    """Lose the server after a while, and write down when."""
    mark = Path(os.environ["TUI_MARK"])
    # Why by chance: the loss falls anywhere between two heartbeats.
    await asyncio.sleep(3.0 + random.random())
    await asyncio.to_thread(mark.write_text, str(time.monotonic()))
    fake.is_up = False


def fault(self: ChatScreen) -> None:
    """Break the drawing once a conversation is on show."""
    if self.talk is not None:
        raise RuntimeError("a fault [/x] \x1b[31m")


WORLDS: dict[str, Callable[[], FakeGateway]] = {
    "long": worlds.long_world,
    "older": worlds.long_world,
    "stream": worlds.long_world,
    "many": partial(worlds.wide_world, worlds.MANY),
    "ten": partial(worlds.wide_world, worlds.ROWS),
    "events": worlds.log_world,
    "soak": partial(worlds.long_world, 10),
}


def works(which: str, fake: FakeGateway) -> list[Coroutine[Any, Any, None]]:
    """What goes on in a scene."""
    match which:
        case "loss":
            return [lose(fake)]
        case "stream":
            return [worlds.stream(fake)]
        case "ten":
            return [worlds.stream(fake), worlds.bustle(fake), worlds.sample_lag()]
        case "soak":
            return [worlds.soak(fake)]
        case _:
            return []


def main() -> int:
    """Run one scene."""
    which = sys.argv[1] if len(sys.argv) > 1 else "demo"
    beside: list[asyncio.Task[None]] = []
    ends = threading.Event()
    noisy = threading.Thread(target=noise, args=(ends,))

    async def connect() -> Gateway:
        if which == "noise":
            noisy.start()
        fake = WORLDS.get(which, scene)()
        beside.extend(asyncio.create_task(work) for work in works(which, fake))
        return fake

    if which == "events":
        # The whole log at once, as a reader has it who went back to its start.
        lookups.FIRST_EVENTS = worlds.EVENTS + 10
    if which == "fault":
        ChatScreen.draw = fault  # type: ignore[method-assign]  # what this scene is about
    log = Path(os.environ["TUI_LOG"]) if "TUI_LOG" in os.environ else None
    start = "demo.billing-a91f00" if which not in ("empty", "long") else None
    try:
        return run_tui(connect, start=start, log_file=log)
    finally:
        # Why: the interpreter aborts when a thread it ends holds the lock of stdout.
        ends.set()
        if noisy.ident is not None:
            noisy.join()


if __name__ == "__main__":
    sys.exit(main())
