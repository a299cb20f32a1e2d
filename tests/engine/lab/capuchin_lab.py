"""A tool package with every kind of behaviour that the engine must cope with."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import sys
import threading
import time
import urllib.parse
from pathlib import Path

from capuchin_yaml.tools.api import (
    Artifact,
    ToolCancelled,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolUnavailable,
    preview_hash,
    tool,
)

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
def write_stubbornly(line: str, name: str, ctx: ToolContext) -> str:
    """Append a line once the gate of this name opens, also when it is told to stop.

    Args:
        line: The line.
        name: The gate.
    """
    entered(name).set()
    opened = False
    while not opened:
        with contextlib.suppress(ToolCancelled):
            opened = gate(name).wait(timeout=60)
    note(ctx, line)
    return f"wrote {line}"


@tool(effect="write")
def write_once_told(line: str, ctx: ToolContext) -> str:
    """Append a line once a file says so: a gate between processes.

    Args:
        line: The line; `go-LINE` opens, `begun-LINE` says that the tool waits.
    """
    (ctx.data_dir / f"begun-{line}").touch()
    while not (ctx.data_dir / f"go-{line}").exists():
        time.sleep(0.05)
    note(ctx, line)
    return f"wrote {line}"


@tool(effect="write")
def write_unless_cancelled(line: str, name: str, ctx: ToolContext) -> str:
    """Append a line after a minute, and say so when it was told to stop before.

    Args:
        line: The line.
        name: The gate that says that it has begun.
    """
    entered(name).set()
    try:
        if ctx.cancelled.wait(60):
            raise ToolFailed("nothing was written")
    except ToolCancelled:
        raise ToolFailed("nothing was written") from None
    note(ctx, line)
    return f"wrote {line}"


@tool(effect="write")
def spin(name: str, ctx: ToolContext) -> str:
    """Compute for a minute without ever looking up.

    Args:
        name: The gate that says that it has begun.
    """
    end = time.monotonic() + 60
    entered(name).set()
    try:
        while time.monotonic() < end:
            pass
    except ToolCancelled:
        note(ctx, "interrupted")
        raise
    return "done"


@tool(effect="read")
def sleep(name: str, ctx: ToolContext) -> str:
    """Start a program that sleeps for minutes, and its own child.

    Args:
        name: The gate that says that it has begun.
    """
    with Path(ctx.data_dir / f"pids-{ctx.call_id.rpartition(':')[2]}").open("w") as file:
        script = f"sleep 300 & echo $$ $! > {file.name}; wait"
        entered(name).set()
        ctx.run(["sh", "-c", script])
    return "slept"


@tool(effect="read")
def block(name: str, seconds: float) -> str:
    """Wait in the C library, where nothing interrupts.

    Args:
        name: The gate that says that it has begun.
        seconds: How long.
    """
    entered(name).set()
    time.sleep(seconds)
    return "woke"


@tool(effect="read")
async def nap(name: str, ctx: ToolContext) -> str:
    """Sleep on an async tool's loop, and note how that ended.

    Args:
        name: The gate that says that it has begun.
    """
    entered(name).set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        note(ctx, "cancelled")
        raise
    return "slept"


@tool(effect="read")
def report(pages: int) -> ToolResult:
    """Make a report with a receipt.

    Args:
        pages: How many.
    """
    return ToolResult(
        {"pages": pages},
        artifacts=[Artifact("report.txt", "text/plain", data="page\n" * pages)],
        receipt={"number": "R-7", "pages": pages},
    )


@tool(effect="read")
def half(why: str) -> ToolResult:
    """Say that it did not work, with a proof.

    Args:
        why: The reason.
    """
    return ToolResult(why, is_error=True, receipt={"proof": 1})


@tool(effect="read")
def leak(name: str, how: str, ctx: ToolContext) -> str:
    """Repeat a variable of the environment in every way a careless tool does.

    Args:
        name: The variable.
        how: return, raise, fail, beat or print.
    """
    value = os.environ[name]
    ctx.log.warning("logged %s", value)
    if how == "raise":
        raise ValueError("outer") from KeyError(f"401 for {value}")
    if how == "fail":
        raise ToolFailed(f"401: Authorization: Bearer {value}")
    if how == "beat":
        ctx.heartbeat({"said": value})
        entered(name).set()
        gate(name).wait(60)
    if how == "print":
        print(value, file=sys.stderr)  # noqa: T201 the mistake is the point
    encoded = base64.b64encode(f"user:{value}".encode()).decode()
    return f"Basic {encoded} {urllib.parse.quote(value)} {value}"


def show_line(line: str, ctx: ToolContext) -> str:
    """What `write_shown` would do."""
    del ctx
    if line == "broken":
        raise RuntimeError("no preview today")
    if line == "slow":
        time.sleep(60)
    return f"would write {line!r}" + "!" * (6000 if line == "long" else 0)


@tool(effect="write", preview=show_line)
def write_shown(line: str, ctx: ToolContext) -> str:
    """Append a line that a person saw beforehand.

    Args:
        line: The line.
    """
    if ctx.preview_hash is not None and ctx.preview_hash != preview_hash(show_line(line, ctx)):
        raise ToolFailed("it would be something else now")
    note(ctx, f"{line} {'shown' if ctx.preview_hash else 'unseen'}")
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
def write_in_time(line: str, ctx: ToolContext) -> str:
    """Append a line in the middle of a quarter of a second.

    Args:
        line: The line.
    """
    time.sleep(0.12)
    note(ctx, line)
    time.sleep(0.12)
    return f"wrote {line}"


@tool(effect="write", idempotent=True)
def write_once(line: str, ctx: ToolContext) -> str:
    """Append a line, or leave it when this very call has appended it before.

    Args:
        line: The line.
    """
    time.sleep(0.12)
    ledger = ctx.data_dir / "effects"
    if not ledger.exists() or ctx.idempotency_key not in ledger.read_text():
        note(ctx, line)
    time.sleep(0.12)
    return f"wrote {line}"


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
    write_stubbornly,
    write_once_told,
    write_unless_cancelled,
    write_shown,
    spin,
    sleep,
    block,
    nap,
    report,
    half,
    leak,
    write_and_break,
    refuse,
    flaky,
    away,
    big,
    odd,
    shy,
    wipe,
    write_in_time,
    write_once,
    die,
    pay,
    setting,
]
