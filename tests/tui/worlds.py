"""Large and busy worlds for the figures of the screen: long talks, many talks, growing replies."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.tui.fake_gateway import FakeGateway

TALK = "demo.billing-a91f00"
MESSAGES = 5_000
EVENTS = 100_000
MANY = 5_000
ROWS = 500
STREAMS = 10
CHARS_EACH = 40
STREAM_PAUSE_S = 0.1
"""So many characters at each pause: 400 a second, about 100 tokens."""
SOAK_EVENTS = 50_000
_REPLY_CHARS = 9_000
_WORDS = ("The order was **late** and the ", "parcel came back, so a `b` it ", "is fair.\n\n- one")


def long_world(messages: int = MESSAGES) -> FakeGateway:
    """One conversation of many messages."""
    fake = FakeGateway(now=datetime.now(UTC))
    talk = fake.add("billing", id=TALK, title="a long talk")
    fake.pin(talk)
    for n in range(messages // 2):
        fake.turn(talk, f"message {n}")
        fake.say(talk, f"**reply** {n}\n\n- one\n- two\n\n```\ncode = {n}\n```\n")
        fake.end(talk)
    return fake


def wide_world(talks: int) -> FakeGateway:
    """Many conversations beside a long one."""
    fake = long_world()
    for n in range(talks):
        fake.add("triage", id=f"demo.triage-{n:06}", title=f"letter {n}")
    return fake


def log_world() -> FakeGateway:
    """One conversation with a very long log."""
    return long_world(EVENTS * 2 // 3)


async def stream(fake: FakeGateway) -> None:
    """Let the agent write for ever, about 100 tokens a second; each piece carries its number."""
    mark = os.environ.get("TUI_MARK", os.devnull)
    talk = fake.talks[TALK]
    fake.turn(talk, "write")
    n = 0
    with open(mark, "a", buffering=1, encoding="ascii") as marks:  # noqa: ASYNC230  # short lines
        while True:
            text = ""
            while len(text) < _REPLY_CHARS:
                await asyncio.sleep(STREAM_PAUSE_S)
                n += 1
                text += f"{_WORDS[n % 3][: CHARS_EACH - 8]} t{n:05} "
                fake.stream(talk, text)
                marks.write(f"{n} {time.monotonic()}\n")
            fake.say(talk, text)


async def bustle(fake: FakeGateway) -> None:
    """Let ten conversations of a long list be busy, one of them on show."""
    busy = [fake.talks[f"demo.triage-{n:06}"] for n in range(STREAMS - 1)]
    while True:
        await asyncio.sleep(0.1)
        for talk in busy:
            fake.spend(talk, 10)
            talk.status = "thinking" if len(talk.log) % 7 else "idle"


async def sample_lag() -> None:
    """Write down how late the loop is, fifty times a second."""
    with open(os.environ["TUI_MARK"] + ".lag", "a", buffering=1) as out:  # noqa: ASYNC230  # short lines
        while True:
            due = time.monotonic() + 0.02
            await asyncio.sleep(0.02)
            out.write(f"{time.monotonic() - due:.6f}\n")


async def soak(fake: FakeGateway) -> None:
    """Hours of work in a minute: turns, replies, usage, one after the other."""
    mark = Path(os.environ["TUI_MARK"])
    talk = fake.talks[TALK]
    while len(talk.log) < SOAK_EVENTS:
        for _ in range(25):
            fake.turn(talk, f"message {len(talk.log)}")
            fake.say(talk, f"**reply** with a `word` {len(talk.log)}\n\n- one\n- two\n")
            fake.spend(talk, 100)
            fake.end(talk)
        await asyncio.to_thread(mark.write_text, str(len(talk.log)))
        await asyncio.sleep(0.1)
