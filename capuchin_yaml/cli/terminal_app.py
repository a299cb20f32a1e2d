"""The TUI on this terminal: over a server that runs, or over an `up` that runs beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from capuchin_yaml.cli.logs import start_logs
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.stopping import stop_signals
from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.notices import NoticeBoard, Option
from capuchin_yaml.tui.running import tell_fault
from capuchin_yaml.tui.terminal import sole_terminal

if TYPE_CHECKING:
    from capuchin_yaml.cli.supervise import Plan, Running, Supervisor
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.tui.gateway import AgentCard, Gateway

logger = logging.getLogger("capuchin_yaml.up")
_ANSWERS = (
    Option("u", "use", "use it for new conversations"),
    Option("k", "keep", "keep the version before"),
)


class BoardFace:
    """What `up` says and asks, as notices of the TUI."""

    def __init__(self, board: NoticeBoard) -> None:
        self._board = board

    def stage(self, text: str) -> None:
        """A plain notice."""
        logger.info("%s", text)
        self._board.push(text)

    def news(self, text: str) -> None:
        """A plain notice."""
        logger.info("%s", text)
        self._board.push(text)

    def warn(self, text: str) -> None:
        """A marked notice."""
        logger.warning("%s", text)
        self._board.push(text, "warn")

    async def agrees(self, title: str, body: str) -> bool | None:
        """An item of the inbox that waits until somebody answers it."""
        answer = self._board.ask(title, body, _ANSWERS)
        return await asyncio.wrap_future(answer) == "use"


class UpBeside:
    """A supervisor on a loop and thread of its own, so that the screen never waits for it."""

    def __init__(self, plan: Plan, board: NoticeBoard) -> None:
        self._plan = plan
        self._face = BoardFace(board)
        self.ready: Future[Running] = Future()
        """What runs, or why nothing does."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._supervisor: Supervisor | None = None
        self._wanted_end = threading.Event()
        self._told: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="up", daemon=True)

    def begin(self) -> None:
        """Start in the background."""
        self._thread.start()

    def cards(self) -> Sequence[AgentCard]:
        """The agents that can be started now."""
        from capuchin_yaml.cli.live_gateway import card

        supervisor = self._supervisor
        roster = {} if supervisor is None else supervisor.roster
        return [card(serving.for_others()) for serving in roster.values()]

    def end(self) -> None:
        """Ask it to stop; once more, not to wait for running calls."""
        if self._wanted_end.is_set() and self._supervisor is not None:
            self._call(self._supervisor.hurry.set)
        self._wanted_end.set()
        if self._told is not None:
            self._call(self._told.set)

    def join(self, timeout_s: float) -> bool:
        """Wait a moment for its end; whether it has come."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _call(self, act: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(act)

    def _run(self) -> None:
        try:
            asyncio.run(self._supervise())
        except BaseException as error:
            if not self.ready.done():
                self.ready.set_exception(error)
            else:
                self._face.warn(f"up ended: {error}")
        if not self.ready.done():
            self.ready.cancel()

    async def _supervise(self) -> None:
        from capuchin_yaml.cli.supervise import Supervisor
        from capuchin_yaml.cli.up_log import tell_roster, tell_web_ui

        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        supervisor = self._supervisor = Supervisor(self._plan, self._face)
        try:
            running = await self._unless_told(supervisor.start())
            if running is None:
                return
            tell_roster(self._face, running.roster)
            tell_web_ui(self._face, running)
            self.ready.set_result(running)
            await self._unless_told(supervisor.watch())
        finally:
            await supervisor.stop()

    async def _unless_told(self, work: Awaitable[Running | None]) -> Running | None:
        assert self._told is not None
        if self._wanted_end.is_set():
            self._told.set()
        working = asyncio.ensure_future(work)
        told = asyncio.create_task(self._told.wait())
        try:
            await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            return None
        finally:
            told.cancel()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def open_tui(home: Home, *, is_read_only: bool = False, is_visit: bool = False) -> ExitCode:
    """The TUI on the server that is found from `home`, until the person leaves.

    `is_visit` is one of a web server: it has no drafts, history and keys of this machine's user.
    """

    async def connect() -> Gateway:
        from capuchin_yaml.cli.agents_file import read_agents
        from capuchin_yaml.cli.live_gateway import card, live_gateway
        from capuchin_yaml.tui.read_only import read_only

        program = "web" if is_visit else "tui"
        found = await live_gateway(home, lambda: [card(a) for a in read_agents(home)], program)
        return read_only(found) if is_read_only else found

    app = partial(CapuchinApp, home=None if is_visit else home.path, is_read_only=is_read_only)
    return _show(home, connect, NoticeBoard(), app=app)


def up_with_tui(out: Output, plan: Plan) -> ExitCode:
    """Open the TUI at once, bring everything up beside it, and end it all when the TUI is left."""
    plan.home.open(create=True)
    board = NoticeBoard()
    up = UpBeside(plan, board)

    async def connect() -> Gateway:
        from capuchin_yaml.cli.live_gateway import live_gateway

        await asyncio.wrap_future(up.ready)
        return await live_gateway(plan.home, up.cards)

    up.begin()
    try:
        app = partial(CapuchinApp, home=plan.home.path, ends_worker=True)
        code = _show(plan.home, connect, board, up.ready, app=app)
    finally:
        up.end()
        _wait_for(out, up)
    if up.ready.done() and not up.ready.cancelled() and (error := up.ready.exception()):
        raise error
    return code


def _show(
    home: Home,
    connect: Callable[[], Awaitable[Gateway]],
    board: NoticeBoard,
    ready: Future[Running] | None = None,
    *,
    app: Callable[..., CapuchinApp],
) -> ExitCode:
    """Run the app until it is left, a signal comes, or what it needs cannot be started."""
    wanted = threading.Event()
    before: dict[signal.Signals, Any] = {}

    async def connect_and_listen() -> Gateway:
        loop = asyncio.get_running_loop()
        for number in before:
            loop.add_signal_handler(number, shown.exit, ExitCode.DONE)
        if wanted.is_set():
            shown.exit(ExitCode.DONE)
        try:
            return await connect()
        except Exception:
            # Why: what cannot be started is said on the plain terminal, whole.
            if ready is not None and ready.done() and ready.exception() is not None:
                shown.exit(ExitCode.REFUSED)
            raise

    shown = app(connect_and_listen, board=board)
    log_file = home.log_dir / "tui.log" if home.log_dir.is_dir() else None
    start_logs(verbose=False, log_file=log_file)
    for number in stop_signals():
        before[number] = signal.signal(number, lambda *_: wanted.set())
    try:
        with sole_terminal(log_file):
            result = shown.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    tell_fault(shown, log_file)
    return ExitCode(shown.return_code or result or ExitCode.DONE)


def _wait_for(out: Output, up: UpBeside) -> None:
    """Wait until everything has ended; each further signal makes it more urgent."""
    before = {number: signal.signal(number, lambda *_: up.end()) for number in stop_signals()}
    try:
        if not up.join(0.5):
            out.tell("stopping; Ctrl-C does not wait for running calls")
        while not up.join(0.5):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
