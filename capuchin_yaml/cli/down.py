"""`capuchin down`: end what `up` left running for this project."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

import click

from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import found_home
from capuchin_yaml.cli.up_lock import UpRecord, read_up
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import ServerUnavailable

LOOK_S = 0.1
END_S = 15.0
"""Beyond the grace time of the `up`, in which it must be gone."""


@click.command(cls=Verb)
@click.option("--now", is_flag=True, help="Do not wait for running calls.")
def command(now: bool) -> ExitCode:
    """Stop what `up --detach` left running.

    Running calls get their grace time first. Conversations wait for the next `up`.
    """
    return run_async(_down(output(), now))


async def _down(out: Output, now: bool) -> ExitCode:
    from capuchin_yaml.client.server import stop

    home = found_home()
    up = read_up(home)
    ended = False
    if up is not None and up.is_running:
        await _end(out, up, now)
        ended = True
    if await stop(home):
        ended = True
    if ended:
        out.answer("stopped; conversations go on with the next: capuchin up")
    else:
        out.tell("nothing runs for this project")
    return ExitCode.DONE


async def _end(out: Output, up: UpRecord, now: bool) -> None:
    out.tell(f"stopping process {up.pid}")
    _signal(up)
    if now:
        await asyncio.sleep(LOOK_S)
        _signal(up)
    loop = asyncio.get_running_loop()
    started = loop.time()
    told = False
    while up.is_running:
        await asyncio.sleep(LOOK_S)
        waited_s = loop.time() - started
        if waited_s > up.grace_s + END_S:
            raise ServerUnavailable(f"process {up.pid} does not end; kill it: kill -9 {up.pid}")
        if waited_s > 1.0 and not told:
            told = True
            out.tell("waiting for running calls (capuchin down --now does not wait)")


def _signal(up: UpRecord) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(up.pid, signal.SIGTERM)
