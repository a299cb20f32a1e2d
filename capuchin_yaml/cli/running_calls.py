"""The calls that run in a worker right now, so that a stop can end them in good order."""

from __future__ import annotations

import asyncio
from typing import Any

import temporalio.client
import temporalio.worker
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

WORKER_SHUTDOWN = "WorkerShutdown"
"""Error type of a call that was cut off, the one that the SDK itself uses."""


class RunningCalls(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Knows the running activities of a worker and can cut them off.

    The worker's own grace time is fixed when it starts; this makes it a choice of the stop. What
    is cut off is reported to the server at once, so that nobody waits for its heartbeat.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_cut_off = False

    def watched(self, client: Client) -> Client:
        """The same client, whose workers tell us of their activities."""
        config = client.config()
        config["interceptors"] = [*config["interceptors"], self]
        return Client(**config)

    def cut_off(self) -> None:
        """End every running activity as interrupted, and each later one at once."""
        self._is_cut_off = True
        for task in list(self._tasks):
            task.cancel()

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        """Stand before every activity."""
        return _Before(next, self)

    async def run(
        self,
        next: temporalio.worker.ActivityInboundInterceptor,
        input: temporalio.worker.ExecuteActivityInput,
    ) -> Any:
        """Run one activity under our eyes."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await next.execute_activity(input)
        except asyncio.CancelledError:
            if not self._is_cut_off:
                raise
            raise ApplicationError(
                "the worker was stopped before the call ended", type=WORKER_SHUTDOWN
            ) from None
        finally:
            self._tasks.discard(task)


class _Before(temporalio.worker.ActivityInboundInterceptor):
    def __init__(
        self, next: temporalio.worker.ActivityInboundInterceptor, calls: RunningCalls
    ) -> None:
        super().__init__(next)
        self._calls = calls

    async def execute_activity(self, input: temporalio.worker.ExecuteActivityInput) -> Any:
        """Pass on, watched."""
        return await self._calls.run(self.next, input)
