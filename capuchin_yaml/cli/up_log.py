"""`up` without a TUI: it logs until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine
from typing import Any

from capuchin_yaml.cli.face import Face, LogFace
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import start_logs_in
from capuchin_yaml.cli.roster import Roster
from capuchin_yaml.cli.stopping import stop_signals
from capuchin_yaml.cli.supervise import Plan, Running, Supervisor
from capuchin_yaml.cli.up import tell_elsewhere


class Stopper:
    """Turns the first signal into a stop and the second into a hurry."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._came = asyncio.Event()
        self.number: int | None = None

    def listen(self) -> None:
        """Take over the signals of this process."""
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self.stop, number)

    def stop(self, number: int | None = None) -> None:
        """Stop, or stop faster."""
        if self._came.is_set():
            self._supervisor.hurry.set()
            return
        self.number = number
        self._came.set()
        self._supervisor.face.stage("stopping; once more Ctrl-C does not wait for running calls")

    async def wait(self) -> None:
        """Return once a stop was asked for."""
        await self._came.wait()

    @property
    def exit_code(self) -> ExitCode:
        """130 after Ctrl-C; a supervisor's own signals are a clean end."""
        return ExitCode.INTERRUPTED if self.number == signal.SIGINT else ExitCode.DONE


async def up_with_log(out: Output, plan: Plan, report_fd: int | None = None) -> ExitCode:
    """Run until a signal comes; everything started is ended then."""
    face = LogFace(out, asks=out.talks_with_person and report_fd is None)
    supervisor = Supervisor(plan, face)
    stopper = Stopper(supervisor)
    stopper.listen()
    try:
        running = await _unless_stopped(stopper, supervisor.start())
        if running is None:
            return stopper.exit_code
        start_logs_in(plan.home, "up.log")
        _tell_running(out, face, running)
        if report_fd is None:
            tell_elsewhere(out, plan)
            out.tell("Ctrl-C stops everything")
        elif not _let_go_of_terminal(plan, report_fd):
            return ExitCode.REFUSED
        await _unless_stopped(stopper, supervisor.watch())
        return stopper.exit_code
    finally:
        await supervisor.stop()


async def _unless_stopped(
    stopper: Stopper, work: Coroutine[Any, Any, Running | None]
) -> Running | None:
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopper.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return None
        return working.result()
    finally:
        waiting.cancel()
        if not working.done():
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await working


def _tell_running(out: Output, face: Face, running: Running) -> None:
    tell_roster(face, running.roster)
    tell_web_ui(face, running)
    first = next(iter(running.roster))
    out.tell(f"ready at {running.server.target.address}; talk: capuchin chat {first}")


def tell_roster(face: Face, roster: Roster) -> None:
    """Say what runs, what it asks about, and where a stand-in answers."""
    from capuchin_yaml.cli.answering_model import answering_model
    from capuchin_yaml.models.registry import REHEARSAL

    for name, serving in roster.items():
        public = serving.for_others()
        face.news(f"{name} {public.version}, model {public.model}: {public.sentence}")
    rehearsed = [name for name, serving in roster.items() if serving.model == REHEARSAL]
    if rehearsed:
        reasons = {
            answering_model(s.spec.model, settings=s.spec.model_settings).notice
            for s in roster.values()
        } - {""}
        why = "; ".join(sorted(reasons)) or "no model is named"
        face.warn(
            f"rehearsal answers for {', '.join(rehearsed)}: no model is asked ({why}). "
            "For real answers set the key, or `model:` in the file, and start again"
        )


def tell_web_ui(face: Face, running: Running) -> None:
    """Say where Temporal's own Web UI is, and what that opens."""
    if running.server.ui_url is not None:
        face.warn(
            f"Temporal's Web UI is open at {running.server.ui_url}: whoever reaches this port, "
            "also a web page in a browser on this machine, can read and end conversations"
        )


def _let_go_of_terminal(plan: Plan, report_fd: int) -> bool:
    """Tell the waiting `up --detach` that all runs; False when it is gone, so nobody wants it."""
    try:
        os.write(report_fd, b"ready\n")
    except OSError:
        return False
    os.close(report_fd)
    log = os.open(
        plan.home.log_dir / "up-output.log",
        os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
    )
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(null)
    return True
