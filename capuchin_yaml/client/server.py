"""Find the Temporal server of a project, or start our own.

The order: what Temporal's own settings name; the server already started for this project; our
own dev server, which lives as long as somebody holds it.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self

from capuchin_yaml.client import guard
from capuchin_yaml.client.dev_server import ServerRecord, read_record
from capuchin_yaml.client.hold import Hold, take_server_lock, up_lock
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.launch import end_server, prepare, start_server
from capuchin_yaml.client.private_files import shown
from capuchin_yaml.client.target import Target, environment_target
from capuchin_yaml.errors import ServerUnavailable, UnsafeState

_WATCH_S = 0.2
_ADOPT_S = 5.0


class Server:
    """A Temporal server that answers, and our hold on it when it is our own.

    As long as one holder lives the server does; when the last one is closed or killed, the
    server ends within two seconds, unless it was detached.
    """

    def __init__(
        self,
        target: Target,
        *,
        home: Home | None = None,
        record: ServerRecord | None = None,
        holder: Hold | None = None,
        was_started: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.target = target
        self.record = record
        """What runs, when it is our own server."""
        self.was_started = was_started
        """Whether this call started it; false for one that was found."""
        self.notes = notes
        """What a person should be told, a sentence each."""
        self._home = home
        self._holder = holder

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def ui_url(self) -> str | None:
        """Where our own server's Web UI is, None when it is off or the server is not ours."""
        return self.record.ui_url if self.record else None

    def detach(self) -> None:
        """Let our own server live on without us, until `down`."""
        if self._holder is not None:
            self._holder.tell(guard.DETACH)

    async def wait_ended(self) -> None:
        """Return when our own server has ended; wait for ever for one that is not ours."""
        if self.record is None:
            await asyncio.Event().wait()
            return
        # Why no event: the server is nobody's child of ours.
        while guard.process_start(self.record.pid) == self.record.start:  # noqa: ASYNC110
            await asyncio.sleep(_WATCH_S)

    async def close(self) -> None:
        """Let go; returns when the server has ended, if nobody else holds it."""
        if self._holder is None or self.record is None:
            return
        is_last = self._holder.release()
        self._holder = None
        deadline = asyncio.get_running_loop().time() + guard.POLITE_S + 2.0
        while is_last and asyncio.get_running_loop().time() < deadline:
            if guard.process_start(self.record.guard_pid) != self.record.guard_start:
                return
            if self._was_detached():
                return
            await asyncio.sleep(0.02)

    def _was_detached(self) -> bool:
        try:
            record = read_record(self._home) if self._home else None
        except (ValueError, UnsafeState):
            return False
        return record is not None and record.detached


async def find_server(home: Home) -> Target:
    """Return the server that a verb should talk to: of the environment, else this project's own.

    Raises:
        ServerUnavailable: neither is there.
        UnsafeState: the state folder is not ours alone.
    """
    target = environment_target()
    if target is not None:
        return target
    home.open()
    try:
        record = read_record(home)
    except ValueError as error:
        raise ServerUnavailable(
            f"{shown(home.server_file)} is damaged; `capuchin up` mends it"
        ) from error
    if record is None or not record.is_running(home):
        raise ServerUnavailable(
            "no Temporal server runs for this project; start it with `capuchin up`"
        )
    if not home.database.exists():
        raise ServerUnavailable(_deleted(home) + "; `capuchin up` starts anew")
    return Target(address=record.address)


async def find_or_start(home: Home, *, temporal_ui: bool = False, is_fast: bool = False) -> Server:
    """Find the project's server or start our own, ready for conversations; for `up`.

    The state folder is made where it is missing. `is_fast` lets a power cut (not a crash) cost
    the last commits. A server that is found keeps the options it was started with.

    Raises:
        ServerUnavailable: the named server does not answer, or ours cannot be started.
        UnsafeState: the state folder is not ours alone or cannot be made.
    """
    target = environment_target()
    if target is not None:
        await prepare(target)
        return Server(target)
    home.open(create=True)
    home.make_key()
    async with up_lock(home):
        notes: list[str] = []
        lock = await take_server_lock(home)
        record = await _read_or_mend(home, lock is None, notes)
        if lock is None:
            found = await _adopt(home, record, notes)
            if found is not None:
                return _with_notes(found, temporal_ui=temporal_ui, is_fast=is_fast)
            lock = await end_server(home, record)
        if lock is None:
            raise ServerUnavailable(
                "a server of this project still runs and does not answer; end the process whose"
                f" command line holds {shown(home.database)}"
            )
        try:
            # Why the earlier ports: clients that lost the server find it again where it was.
            ports = record.ports if record else (0, 0, 0, 0)
            record, holder = await start_server(
                home, lock, ports, temporal_ui=temporal_ui, is_fast=is_fast
            )
        finally:
            os.close(lock)
        return Server(
            Target(address=record.address),
            home=home,
            record=record,
            holder=holder,
            was_started=True,
            notes=tuple(notes),
        )


async def stop(home: Home) -> bool:
    """End this project's own server, for `down`; whether one ran.

    Raises:
        ServerUnavailable: it does not end.
        UnsafeState: the state folder is not ours alone.
    """
    if not home.open().exists:
        return False
    async with up_lock(home):
        lock = await take_server_lock(home)
        ran = lock is None
        if lock is None:
            try:
                record = read_record(home)
            except ValueError:
                record = None
            lock = await end_server(home, record)
        if lock is None:
            raise ServerUnavailable(
                "the server of this project does not end; end the process whose command line"
                f" holds {shown(home.database)}"
            )
        os.close(lock)
        return ran


async def _read_or_mend(home: Home, runs: bool, notes: list[str]) -> ServerRecord | None:
    try:
        return read_record(home)
    except ValueError:
        notes.append(f"{shown(home.server_file)} was damaged and is replaced")
    home.server_file.unlink(missing_ok=True)
    holder = Hold.take(home) if runs else None
    if holder is None:
        return None
    holder.tell(guard.REWRITE)
    try:
        for _ in range(100):
            if (record := read_record(home)) is not None:
                return record
            await asyncio.sleep(0.01)
        return None
    finally:
        holder.release()


async def _adopt(home: Home, record: ServerRecord | None, notes: list[str]) -> Server | None:
    holder = Hold.take(home)
    if holder is None:
        return None
    if record is not None and record.is_running(home):
        if home.database.exists():
            target = Target(address=record.address)
            try:
                await prepare(target, patience_s=_ADOPT_S)
            except ServerUnavailable:
                notes.append("the server of this project did not answer and was replaced")
            else:
                return Server(target, home=home, record=record, holder=holder, notes=tuple(notes))
        else:
            notes.append(_deleted(home) + "; it starts anew, without earlier conversations")
    holder.release()
    return None


def _with_notes(server: Server, *, temporal_ui: bool, is_fast: bool) -> Server:
    record = server.record
    if record is None:
        return server
    if temporal_ui and not record.ui_port:
        server.notes += (
            "the running server has no Web UI; `capuchin down` it first to start it with one",
        )
    if is_fast and not record.is_fast:
        server.notes += ("the running server is the durable kind, not the fast one",)
    if record.is_fast and not is_fast:
        server.notes += (
            "the running server was started with --fast: a power cut may lose the last commits",
        )
    return server


def _deleted(home: Home) -> str:
    return f"the database {shown(home.database)} was deleted under its server"
