"""A conversation between its turns: pinned, opened again, paused, migrated, closed when idle.

Runs inside the workflow.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.roll_over import RollOver
from capuchin_yaml.engine.state import Conversation, Definition
from capuchin_yaml.events import ConversationReopened, DefinitionPinned, RolledOver
from capuchin_yaml.spec import JsonValue


class CannotLive(Exception):
    """The conversation cannot begin; the text says why."""


class Life:
    """Everything that happens to a conversation while no turn runs."""

    def __init__(
        self,
        conversation: Conversation,
        start: contract.StartConversation,
        log: Log,
        roll_over_due: RollOver,
    ) -> None:
        self._c = conversation
        self._start = start
        self._log = log
        self._roll_over_due = roll_over_due
        self.opening = bool(start.reopens) and start.carried is None
        """Whether the state of the closed run is still being fetched; nothing is admitted."""

    async def begin(self) -> None:
        """Come to life: in a first run, after a roll-over, or opened again after a close.

        Raises:
            CannotLive: the agent cannot be pinned, or the closed run cannot be read.
        """
        if self.opening:
            await self._open_again()
        elif self._c.run > 1:
            self._log.add(RolledOver, previous_run_id=workflow.info().continued_run_id or "")
        if self._c.definition is None:
            self._take_definition(await self._pin())

    async def idle(self) -> None:
        """Wait for something to do; with `limits.idle_close`, close when nothing comes.

        Why no timer otherwise: a timer is the only thing that an idle conversation could cost.
        """
        had_items = bool(self._c.items)
        left = self._idle_left()
        try:
            await workflow.wait_condition(
                lambda: (
                    bool(self._c.queue)
                    or self._c.closing is not None
                    or bool(self._c.items) != had_items
                    or self._roll_over_due()
                ),
                timeout=left,
            )
        except TimeoutError:
            left = self._idle_left()
            if left is not None and left <= timedelta(0) and self._c.closing is None:
                limit = self._idle_limit_s()
                self._c.closing = {"by": "", "reason": f"it was idle for {_words(limit)}"}

    async def before_turn(self) -> bool:
        """Pin the definition on disk if somebody asked to migrate; whether it was pinned."""
        if self._c.migrating is None:
            return False
        return await self._migrate()

    async def until_resumed(self, paused: dict[str, JsonValue]) -> None:
        """Hold a turn before its first step while its agent is paused, or until it is cancelled.

        The waiting is an activity that the server repeats: it costs no history, however long.
        """
        self._c.paused = paused
        turn = self._c.turn
        assert turn is not None
        waiting: asyncio.Task[Any] = asyncio.ensure_future(
            workflow.execute_activity(
                contract.UNTIL_RESUMED,
                contract.ReadPause(
                    conversation=self._c.id,
                    run_id=workflow.info().run_id,
                    project=self._start.project,
                    agent=self._c.agent,
                ),
                start_to_close_timeout=timedelta(seconds=10),
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=1),
                    maximum_interval=timedelta(seconds=10),
                ),
                summary=f"{self._c.agent} is paused",
            )
        )
        await workflow.wait_condition(
            lambda: waiting.done() or turn.cancelled_by is not None or self._roll_over_due()
        )
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        self._c.paused = None

    # definition

    async def _pin(self) -> dict[str, JsonValue]:
        try:
            pinned = await workflow.execute_local_activity(
                contract.PIN_DEFINITION,
                contract.PinDefinition(
                    conversation=self._c.id,
                    run_id=workflow.info().run_id,
                    agent=self._start.agent,
                    variables=dict(self._start.variables),
                    injected=dict(self._start.injected),
                ),
                result_type=dict,
                start_to_close_timeout=timedelta(seconds=5),
                retry_policy=RetryPolicy(maximum_attempts=3),
            )
        except FailureError as error:  # a local activity's own, not wrapped in ActivityError
            raise CannotLive(f"the agent could not be pinned: {_reason(error)}") from None
        if not isinstance(pinned, dict) or "spec" not in pinned:
            raise CannotLive("the worker's answer did not carry the seal")
        return pinned

    def _take_definition(self, pinned: dict[str, JsonValue]) -> None:
        before = self._c.definition
        self._c.definition = Definition(
            spec=pinned["spec"],
            hash=pinned["hash"],
            model=pinned["model"],
            system=pinned["system"],
            roll_over_events=int(pinned["roll_over_events"]),
            pin=before.pin + 1 if before is not None else 1,
        )
        self._log.add(
            DefinitionPinned,
            agent=self._c.agent,
            version=pinned["spec"]["version"],
            definition_hash=pinned["hash"],
            model=pinned["model"],
        )

    async def _migrate(self) -> bool:
        """Pin anew from disk; one that cannot be pinned leaves the old definition in force."""
        self._c.migrating = None
        kept = self._c.definition
        assert kept is not None
        try:
            self._take_definition(await self._pin())
            return True
        except CannotLive as error:
            self._log.add(
                DefinitionPinned,
                agent=self._c.agent,
                version=kept.spec["version"],
                definition_hash=kept.hash,
                model=kept.model,
                problem=f"not migrated: {error}",
            )
            return False

    # opened again

    async def _open_again(self) -> None:
        try:
            carried = await workflow.execute_activity(
                contract.FETCH_CLOSED,
                contract.FetchClosed(
                    conversation=self._c.id,
                    run_id=workflow.info().run_id,
                    closed_run_id=self._start.reopens,
                ),
                result_type=dict,
                start_to_close_timeout=timedelta(seconds=60),
                retry_policy=RetryPolicy(maximum_attempts=4),
            )
        except ActivityError as error:
            raise CannotLive(f"the closed conversation cannot be read: {_reason(error)}") from None
        if not isinstance(carried, dict) or carried.get("id") != self._c.id:
            raise CannotLive("the worker's answer did not carry the seal")
        self._c.become(Conversation.resume(carried))
        self.opening = False
        self._log.add(ConversationReopened, by=self._start.by, previous_run_id=self._start.reopens)

    # idle

    def _idle_limit_s(self) -> float | None:
        assert self._c.definition is not None
        limit: float | None = self._c.definition.spec["limits"].get("idle_close_s")
        return limit

    def _idle_left(self) -> timedelta | None:
        """Time until an idle conversation closes; None when it never does, or an item waits."""
        limit_s = self._idle_limit_s()
        if limit_s is None or self._c.items:
            return None
        since = datetime.fromisoformat(self._c.updated_at)
        return max(since + timedelta(seconds=limit_s) - workflow.now(), timedelta(0))


def _reason(error: FailureError) -> str:
    cause = (error.cause or error) if isinstance(error, ActivityError) else error
    return getattr(cause, "message", "") or str(cause)


def _words(seconds: float | None) -> str:
    whole = int(seconds or 0)
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s"))
    return "".join(f"{n}{unit}" for n, unit in parts if n) or "0s"
