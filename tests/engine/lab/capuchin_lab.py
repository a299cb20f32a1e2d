"""A tool package with every kind of behaviour that the engine must cope with."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

from capuchin_yaml.tools.api import ToolContext, ToolFailed, ToolUnavailable, tool

GATES: dict[str, threading.Event] = {}
"""Tests open a gate to let a waiting tool go on."""
ENTERED: dict[str, threading.Event] = {}


def gate(name: str) -> threading.Event:
    """The gate of this name."""
    return GATES.setdefault(name, threading.Event())


def entered(name: str) -> threading.Event:
    """Set once a tool waits at the gate."""
    return ENTERED.setdefault(name, threading.Event())


def note(ctx: ToolContext, line: str) -> None:
    """Append one line to the ledger of effects."""
    with Path(ctx.data_dir / "effects").open("a") as file:
        file.write(f"{ctx.idempotency_key} {line}\n")


@tool(effect="read")
def echo(text: str, ctx: ToolContext) -> str:
    """Give the text back.

    Args:
        text: What to give back.
    """
    return text


@tool(effect="read")
async def wait(name: str) -> str:
    """Wait until the gate of this name opens.

    Args:
        name: The gate.
    """
    entered(name).set()
    await asyncio.to_thread(gate(name).wait, 60)
    return f"{name} opened"


@tool(effect="read")
async def stall(seconds: float) -> str:
    """Block an async tool's loop, as a careless author would.

    Args:
        seconds: How long.
    """
    time.sleep(seconds)  # noqa: ASYNC251 the mistake is the point
    return "stalled"


@tool(effect="write")
def write(line: str, ctx: ToolContext) -> str:
    """Append a line to the ledger of effects.

    Args:
        line: The line.
    """
    note(ctx, line)
    return f"wrote {line}"


@tool(effect="write")
def pay(cents: int, ctx: ToolContext) -> str:
    """Write an amount to the ledger of effects.

    Args:
        cents: The amount.
    """
    note(ctx, f"paid {cents}")
    return f"paid {cents}"


@tool(effect="read")
def setting(ctx: ToolContext) -> str:
    """Say what stands in the config, as a careless tool would."""
    database = str(ctx.config["database"])
    return f"{len(database)} characters: {database}"


@tool(effect="write")
def write_slowly(line: str, name: str, ctx: ToolContext) -> str:
    """Append a line once the gate of this name opens.

    Args:
        line: The line.
        name: The gate.
    """
    entered(name).set()
    if not gate(name).wait(timeout=60):
        raise RuntimeError("the gate stayed shut")
    note(ctx, line)
    return f"wrote {line}"


@tool(effect="write")
def write_and_break(line: str, ctx: ToolContext) -> str:
    """Append a line and then fall over, so that nobody knows.

    Args:
        line: The line.
    """
    note(ctx, line)
    raise KeyError("fell over after the effect")


@tool(effect="write")
def refuse(why: str) -> str:
    """Say that nothing was done.

    Args:
        why: The reason.
    """
    raise ToolFailed(why)


@tool(effect="write", idempotent=True)
def flaky(times: int, ctx: ToolContext) -> str:
    """Lose the connection until this attempt.

    Args:
        times: Attempts that fail.
    """
    if ctx.attempt <= times:
        raise ConnectionError("connection lost")
    note(ctx, f"attempt {ctx.attempt}")
    return f"attempt {ctx.attempt}"


@tool(effect="write")
def away(ctx: ToolContext) -> str:
    """Not be there the first two times."""
    marker = ctx.data_dir / f"away-{ctx.call_id.rpartition(':')[2]}"
    seen = int(marker.read_text()) if marker.exists() else 0
    marker.write_text(str(seen + 1))
    if seen < 2:
        raise ToolUnavailable("the office is closed")
    note(ctx, "came back")
    return "came back"


@tool(effect="read")
def big(kilobytes: int) -> str:
    """Return a long text.

    Args:
        kilobytes: How long.
    """
    return "head" + "x" * (kilobytes * 1024) + "tail"


@tool(effect="read")
def odd(kind: str) -> object:
    """Return something that is no JSON.

    Args:
        kind: nan, surrogate or blank.
    """
    return {"nan": float("nan"), "surrogate": "\ud800", "blank": "   "}[kind]


@tool(effect="read", needs_approval=True)
def shy(text: str) -> str:
    """Read something that its author wants a person to allow.

    Args:
        text: Any.
    """
    return text


@tool(effect="destructive")
def wipe(target: str, ctx: ToolContext) -> str:
    """Destroy the target.

    Args:
        target: What.
    """
    note(ctx, f"wiped {target}")
    return "wiped"


@tool(effect="write")
def die(ctx: ToolContext) -> str:
    """Take the whole process down after the effect."""
    note(ctx, "died")
    os._exit(9)


tools = [
    echo,
    wait,
    stall,
    write,
    write_slowly,
    write_and_break,
    refuse,
    flaky,
    away,
    big,
    odd,
    shy,
    wipe,
    die,
    pay,
    setting,
]
