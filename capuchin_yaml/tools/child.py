"""Programs that a tool starts: in a group of their own, with a bare environment, none left over."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from capuchin_yaml.errors import ToolCancelled
from capuchin_yaml.tools import keeper

MAX_OUTPUT_BYTES = 1024 * 1024
"""Most that is kept of each of stdout and stderr: the first three quarters and the end."""
POLITE_S = 1.0
"""Time from SIGTERM to SIGKILL."""
INHERITED = ("PATH", "HOME", "LANG")
"""All that a program sees of the worker's environment, which may hold keys."""
_TICK_S = 0.05
_DRAIN_S = 0.3
"""Time for the last output, when a program has ended and others of its group hold the pipes."""

logger = logging.getLogger("capuchin_yaml.tools")


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """How a program ended, and what it said."""

    returncode: int
    """Negative for the number of the signal that ended it."""
    stdout: str
    """Decoded as UTF-8, bytes that are none replaced; cut in the middle past 1 MB, with a mark."""
    stderr: str


@dataclass(frozen=True, slots=True)
class _Given:
    args: list[str]
    timeout_s: float | None
    data: bytes | None
    cwd: str | os.PathLike[str] | None
    env: Mapping[str, str] | None


class Children:
    """The programs of one call of a tool."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        _Attendants.begin()

    def run(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        timeout_s: float | None = None,
        input: str | bytes | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stop: threading.Event | None = None,
    ) -> CompletedRun:
        """Run a program to its end; `stop` ends it early.

        Raises:
            ToolCancelled: the call was cancelled, or `stop` was set; the program is gone.
            TimeoutError: it took longer than `timeout_s`; it is gone.
            OSError: it cannot be started.
        """
        if isinstance(args, str | bytes) or not args:
            raise TypeError("args is a list: the program and its arguments, never a shell line")
        data = input.encode() if isinstance(input, str) else input
        given = _Given([os.fspath(arg) for arg in args], timeout_s, data, cwd, env)
        stops = (self._cancelled, *((stop,) if stop else ()))
        done: Future[CompletedRun] = Future()
        # Why a thread of its own: the tool's may be interrupted between any two lines, and a
        # program that was started then would be known to nobody, its pipes never closed.
        _Attendants.the_ones.put((lambda: self._attend(given, stops, done), done))
        try:
            return done.result()
        except ToolCancelled:
            wait([done], POLITE_S * 2)  # it has time to end politely
            raise

    def _attend(
        self, given: _Given, stops: Sequence[threading.Event], done: Future[CompletedRun]
    ) -> None:
        try:
            done.set_result(self._to_its_end(given, stops))
        except BaseException as error:
            done.set_exception(error)

    def _to_its_end(self, given: _Given, stops: Sequence[threading.Event]) -> CompletedRun:
        args, timeout_s, data = given.args, given.timeout_s, given.data
        child = self._start(given)
        try:
            with contextlib.closing(_Talk(child, data)) as talk:
                deadline = None if timeout_s is None else time.monotonic() + timeout_s
                while not talk.step():
                    if self._stopped or any(event.is_set() for event in stops):
                        raise ToolCancelled
                    if deadline is not None and time.monotonic() > deadline:
                        raise TimeoutError(f"{args[0]} did not end within {timeout_s:g} s")
        finally:
            self._end(child)
        return CompletedRun(child.returncode, talk.stdout.text(), talk.stderr.text())

    async def run_async(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        timeout_s: float | None = None,
        input: str | bytes | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CompletedRun:
        """As `run`, without blocking the loop; cancelling the await ends the program."""
        import asyncio  # a package of sync tools alone never needs it

        stop = threading.Event()
        running = asyncio.ensure_future(
            asyncio.to_thread(
                self.run, args, timeout_s=timeout_s, input=input, cwd=cwd, env=env, stop=stop
            )
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            with contextlib.suppress(BaseException):
                await running
            raise

    def stop(self) -> None:
        """End all programs of the call, and let no other start; may be called from any thread."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for child in running:
            _signal(child, signal.SIGTERM)
        if running:
            threading.Thread(target=self._kill_later, name="end of tools", daemon=True).start()

    def kill(self) -> None:
        """End all programs at once."""
        with self._lock:
            self._stopped = True
            for child in self._running:
                _signal(child, signal.SIGKILL)

    def _kill_later(self) -> None:
        deadline = time.monotonic() + POLITE_S
        while time.monotonic() < deadline and self._running:
            time.sleep(_TICK_S)
        self.kill()

    def _start(self, given: _Given) -> subprocess.Popen[bytes]:
        if self._stopped or self._cancelled.is_set():
            raise ToolCancelled
        # Why first: it takes longer to start than the program, which it has to know at once.
        the_keeper = _Keeper.the_one()
        bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
        child = subprocess.Popen(
            given.args,
            stdin=subprocess.DEVNULL if given.data is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=given.cwd,
            env=bare | dict(given.env or {}),
            # Why a session and not only a group: without a terminal of its own a program can
            # neither ask for a password on the worker's nor paint over it.
            start_new_session=True,
        )
        the_keeper.tell(f"+{child.pid}")
        with self._lock:
            self._running.add(child)
        return child

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Leave nothing of the program's group behind, whatever happens meanwhile."""
        try:
            if child.poll() is None:
                _signal(child, signal.SIGTERM)
                deadline = time.monotonic() + POLITE_S
                while child.poll() is None and time.monotonic() < deadline:
                    time.sleep(_TICK_S / 5)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            with self._lock:
                self._running.discard(child)
            _Keeper.the_one().tell(f"-{child.pid}")
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


class _Attendants:
    """Gives every program a thread that attends it.

    One thread starts them all. Why: a thread that the tool's own thread starts bears its number
    for a moment, and what was to interrupt the tool would hit it instead.
    """

    the_ones: SimpleQueue[tuple[Callable[[], None], Future[CompletedRun]]] = SimpleQueue()
    _lock = threading.Lock()
    _has_begun = False

    @classmethod
    def begin(cls) -> None:
        with cls._lock:
            if not cls._has_begun:
                cls._has_begun = True
                threading.Thread(target=cls._serve, name="programs of tools", daemon=True).start()

    @classmethod
    def _serve(cls) -> None:
        while True:
            attend, done = cls.the_ones.get()
            try:
                threading.Thread(target=attend, name="a tool's program", daemon=True).start()
            except RuntimeError as error:  # there is no room for another thread
                done.set_exception(error)


class _Talk:
    """Feeds a program and reads what it says, without ever waiting for long."""

    def __init__(self, child: subprocess.Popen[bytes], data: bytes | None) -> None:
        self.stdout, self.stderr = _Output(), _Output()
        self._child = child
        self._left = memoryview(data or b"")
        self._drained_by: float | None = None
        self._selector = selectors.DefaultSelector()
        for stream, output in ((child.stdout, self.stdout), (child.stderr, self.stderr)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, output)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            self._selector.register(child.stdin, selectors.EVENT_WRITE)

    def step(self) -> bool:
        """Move what can be moved; whether the program has ended and all was read."""
        if not self._selector.get_map():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_TICK_S)
            return self._ended()
        for key, _ in self._selector.select(_TICK_S):
            if isinstance(key.data, _Output):
                self._read(key, key.data)
            else:
                self._write(key)
        if self._child.poll() is None:
            return False
        if self._drained_by is None:
            self._drained_by = time.monotonic() + _DRAIN_S
        return self._ended() if time.monotonic() > self._drained_by else self._is_drained()

    def _is_drained(self) -> bool:
        return not any(k.data for k in self._selector.get_map().values()) and self._ended()

    def _ended(self) -> bool:
        return self._child.poll() is not None

    def close(self) -> None:
        """Give up listening."""
        self._selector.close()

    def _read(self, key: selectors.SelectorKey, output: _Output) -> None:
        try:
            data = os.read(key.fd, 65536)
        except BlockingIOError:
            return
        if data:
            output.add(data)
        else:
            self._selector.unregister(key.fileobj)

    def _write(self, key: selectors.SelectorKey) -> None:
        try:
            self._left = self._left[os.write(key.fd, self._left[:65536]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = self._left[:0]  # it does not want the rest
        if not self._left:
            self._selector.unregister(key.fileobj)
            assert self._child.stdin is not None
            self._child.stdin.close()


class _Output:
    """The beginning and the end of what a program writes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        room = MAX_OUTPUT_BYTES * 3 // 4 - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        excess = len(self._tail) - MAX_OUTPUT_BYTES // 4
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess

    def text(self) -> str:
        """What was kept, with a mark where something is missing."""
        head, tail = bytes(self._head), bytes(self._tail)
        if not self._left_out:
            return (head + tail).decode("utf-8", "replace")
        mark = f"\n[… {self._left_out} bytes left out …]\n"
        return head.decode("utf-8", "replace") + mark + tail.decode("utf-8", "replace")


class _Keeper:
    """This process's line to the keeper, which is started with the first program."""

    _one: _Keeper | None = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self._pipe: int | None = None
        reads, writes = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(keeper.__file__).resolve())],
                stdin=reads,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )
        except OSError as error:
            os.close(writes)
            logger.warning("programs of tools would outlive a killed worker: %s", error)
        else:
            self._pipe = writes
            atexit.register(self._end)
        finally:
            os.close(reads)

    @classmethod
    def the_one(cls) -> _Keeper:
        with cls._lock:
            if cls._one is None:
                cls._one = cls()
            return cls._one

    def tell(self, line: str) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, line.encode() + b"\n")

    def _end(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Why the check: once a process was collected, its number may be another's.
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
