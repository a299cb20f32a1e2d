"""The heartbeat of a call, with what its tool says of its progress."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json

from temporalio import activity

from capuchin_yaml.spec import JsonValue

BEAT_S = 0.5
MAX_DETAIL = 8 * 1024
"""Characters of one detail of a heartbeat."""


class Pulse:
    """Keeps a call alive at the server, which is also how it hears of a cancel."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._variables = contextvars.copy_context()
        self._details: tuple[JsonValue, ...] = ()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Beat from now on."""
        self._task = asyncio.create_task(self._beat())

    def stop(self) -> None:
        """Beat no more."""
        if self._task is not None:
            self._task.cancel()

    def tell(self, *details: object) -> None:
        """Say how far the tool is; called in its thread, also after the server gave it up."""
        self._details = tuple(_small(d) for d in details)
        with contextlib.suppress(RuntimeError):  # the worker's loop has ended
            self._loop.call_soon_threadsafe(self._once, context=self._variables)

    def _once(self) -> None:
        activity.heartbeat(*self._details)

    async def _beat(self) -> None:
        while True:
            # Why first: a call that ends before needs no beat, which the server would write down.
            await asyncio.sleep(BEAT_S)
            self._once()


def _small(detail: object) -> JsonValue:
    """A detail as JSON that fits into a heartbeat; one that cannot be sent would end the call."""
    try:
        text = json.dumps(detail, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(repr(detail)[:MAX_DETAIL])
    return json.loads(text) if len(text) <= MAX_DETAIL else text[:MAX_DETAIL]
