"""The courier: tells whom the operator named of items that open, wait long, or go to others.

Runs inside the workflow. What is not told yet is state, so a roll-over loses none of it; one may
then be told twice, under the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.spec import JsonValue

TELL_FOR = timedelta(hours=1)
"""How long a notice is tried; who waits is in the inbox all the time."""


class Courier:
    """Hands notices to a worker, which knows the operator's hooks."""

    def __init__(self, conversation: Conversation, project: str) -> None:
        self._c = conversation
        self._project = project
        self._sending: dict[str, asyncio.Task[None]] = {}

    def tell(self, event: str, item: dict[str, JsonValue]) -> None:
        """Put one notice into the outbox, if anybody wants to hear of it."""
        if not self._c.hooks:
            return
        self._c.notices_made += 1
        arguments = str(item.get("arguments", ""))
        self._c.notices.append(
            {
                "v": 1,
                "id": f"{self._c.id}:n{self._c.notices_made}",
                "event": event,
                "at": workflow.now().isoformat(),
                "project": self._project,
                "agent": self._c.agent,
                "conversation": self._c.id,
                "item": {
                    **{name: item.get(name) for name in _TOLD},
                    "arguments": arguments[: contract.MEMO_ARGUMENTS],
                    "arguments_cut": len(arguments) > contract.MEMO_ARGUMENTS,
                },
            }
        )
        del self._c.notices[: -contract.MAX_NOTICES]

    async def run(self) -> None:
        """Send what is in the outbox, for as long as the run lasts."""
        while True:
            await workflow.wait_condition(
                lambda: any(n["id"] not in self._sending for n in self._c.notices)
            )
            for notice in self._c.notices:
                if notice["id"] not in self._sending:
                    task = asyncio.ensure_future(self._send(notice))
                    self._sending[str(notice["id"])] = task

    def stop(self) -> None:
        """Leave what is not told to the next run."""
        for task in self._sending.values():
            task.cancel()

    async def _send(self, notice: dict[str, JsonValue]) -> None:
        # Why suppressed: its worker logged it, and the item is in the inbox all the same.
        with contextlib.suppress(ActivityError):
            await workflow.execute_activity(
                contract.NOTIFY,
                contract.Notify(
                    conversation=self._c.id, run_id=workflow.info().run_id, notice=notice
                ),
                result_type=dict,
                start_to_close_timeout=timedelta(minutes=2),
                schedule_to_close_timeout=TELL_FOR,
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=1),
                    maximum_interval=timedelta(minutes=5),
                ),
                summary=f"{notice['event']} {notice['item']['id']}",
            )
        self._c.notices = [n for n in self._c.notices if n["id"] != notice["id"]]
        self._sending.pop(str(notice["id"]), None)


_TOLD = (
    "id",
    "kind",
    "title",
    "tool",
    "effect",
    "digest",
    "revision",
    "reason",
    "requested_at",
    "due",
    "then",
    "approvers",
    "quorum",
)
