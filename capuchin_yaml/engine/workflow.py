"""AgentWorkflow: the one durable loop behind every conversation.

It decides; activities do. Everything that may change between releases runs in an activity,
so that its result is history. The doors are the updates and queries below: each takes one
sealed request, refuses in its validator what cannot be carried out, and answers in the task
that accepted it, so no update ever waits.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from capuchin_yaml.engine import contract, doors
    from capuchin_yaml.engine.desk import Desk
    from capuchin_yaml.engine.log import Log
    from capuchin_yaml.engine.pages import inline, page
    from capuchin_yaml.engine.state import Conversation, Definition, Turn
    from capuchin_yaml.engine.turn import TurnRunner
    from capuchin_yaml.events import (
        ConversationClosed,
        DefinitionPinned,
        MessageQueued,
        RolledOver,
        TurnStarted,
    )
    from capuchin_yaml.spec import JsonValue


@workflow.defn(name=contract.WORKFLOW)
class AgentWorkflow:
    """One conversation with one agent."""

    @workflow.init
    def __init__(self, *given: Any) -> None:
        # Why untyped: whatever a stranger starts us with must fail the workflow, and never the
        # workflow task, which the server would repeat for ever.
        self._start = doors.read_start(given)
        carried = self._start.carried
        if carried is not None:
            self._c = Conversation.resume(carried)
        else:
            now = workflow.now().isoformat()
            self._c = Conversation(
                id=workflow.info().workflow_id,
                agent=self._start.agent,
                created_at=now,
                updated_at=now,
            )
        self._log = Log(self._c)
        self._desk = Desk(self._c, self._log)
        self._runner = TurnRunner(
            self._c, self._start, self._log, self._desk, self._between_steps, self._roll_over_due
        )
        self._draining = False
        self._failed = ""

    @workflow.run
    async def run(self, *given: Any) -> dict[str, JsonValue]:
        """Serve the conversation until it is closed; returns its summary."""
        info = workflow.info()
        doors.check_start(
            self._start, info.workflow_id, info.first_execution_run_id, info.start_time
        )
        clerk = asyncio.ensure_future(self._keep_inbox())
        if self._c.run > 1:
            self._log.add(RolledOver, previous_run_id=info.continued_run_id or "")
        if self._c.definition is None:
            await self._pin_definition()
        try:
            while True:
                await self._between_steps()
                if self._c.turn is not None:
                    await self._runner.run()
                elif self._c.closing is not None:
                    break
                elif self._c.queue:
                    self._begin_turn()
                else:
                    await workflow.wait_condition(
                        lambda: (
                            bool(self._c.queue)
                            or self._c.closing is not None
                            or self._roll_over_due()
                        )
                    )
        finally:
            clerk.cancel()
        return await self._end()

    # the course of a conversation

    async def _pin_definition(self) -> None:
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
            cause = (error.cause or error) if isinstance(error, ActivityError) else error
            reason = getattr(cause, "message", "") or str(cause)
            await self._fail(f"the agent could not be pinned: {reason}")
        if not isinstance(pinned, dict) or "spec" not in pinned:
            await self._fail("the worker's answer did not carry the seal")
        self._c.definition = Definition(
            spec=pinned["spec"],
            hash=pinned["hash"],
            model=pinned["model"],
            system=pinned["system"],
            roll_over_events=int(pinned["roll_over_events"]),
        )
        self._log.add(
            DefinitionPinned,
            agent=self._c.agent,
            version=pinned["spec"]["version"],
            definition_hash=pinned["hash"],
            model=pinned["model"],
        )

    def _begin_turn(self) -> None:
        assert self._c.definition is not None
        message = self._c.queue.pop(0)
        limits = self._c.definition.spec["limits"]
        for note in self._c.notes:
            self._c.add_entry({"kind": "note", "text": note})
        self._c.notes = []
        self._c.add_entry(
            {
                "kind": "user",
                "id": message["id"],
                "text": message["text"],
                "by": message["by"],
                "at": message["at"],
            }
        )
        self._c.turn = Turn(
            number=message["turn"],
            message_id=message["id"],
            steps_allowed=limits["max_steps"],
            calls_allowed=limits["max_tool_calls"],
            same_allowed=limits["same_call"],
        )
        self._log.add(
            TurnStarted,
            turn=message["turn"],
            message_id=message["id"],
            text=message["text"],
            by=message["by"],
        )

    async def _fail(self, reason: str) -> None:
        """End a conversation that never came to life.

        Raises:
            ApplicationError: always, with the reason.
        """
        self._failed = reason
        self._draining = True
        self._log.add(ConversationClosed, status="failed", by="", detail=reason)
        self._show_status(contract.STATUS_FAILED)
        await workflow.wait_condition(workflow.all_handlers_finished)
        raise ApplicationError(reason, type=contract.CONVERSATION_FAILED, non_retryable=True)

    async def _end(self) -> dict[str, JsonValue]:
        closing = self._c.closing or {}
        for item_id in list(self._c.items):
            self._c.loose_calls.pop(item_id, None)
            self._desk.decide(item_id, "withdrawn")
        self._log.add(
            ConversationClosed,
            status="closed",
            by=closing.get("by", ""),
            detail=closing.get("reason", ""),
        )
        self._desk.show()
        self._show_status(contract.STATUS_CLOSED)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return {
            "v": 1,
            "conversation": self._c.id,
            "agent": self._c.agent,
            "status": "closed",
            "title": self._c.title,
            "turns": self._c.messages - len(self._c.queue),
            "calls": self._c.calls,
            "usage": dict(self._c.usage),
            "closed_by": closing.get("by", ""),
            "reason": closing.get("reason", ""),
        }

    def _show_status(self, status: str) -> None:
        from temporalio.common import SearchAttributeKey

        key = SearchAttributeKey.for_keyword(contract.SA_STATUS)
        workflow.upsert_search_attributes([key.value_set(status)])

    async def _keep_inbox(self) -> None:
        """Keep lists and inbox in step, one upsert for all that changed in a task."""
        while True:
            await workflow.wait_condition(lambda: self._desk.changed)
            self._desk.show()

    # roll-over

    def _roll_over_due(self) -> bool:
        if self._c.definition is None:
            return False
        info = workflow.info()
        return (
            info.get_current_history_length() >= self._c.definition.roll_over_events
            or info.get_current_history_size() >= contract.ROLL_OVER_BYTES
            or info.is_continue_as_new_suggested()
        )

    async def _between_steps(self) -> None:
        """Go on in a new run when it is time; nothing is in flight here.

        From the moment `_draining` is set the validators refuse, and a handler answers in the
        task that accepted it, so no acknowledged request is left behind.
        """
        if not self._roll_over_due():
            return
        self._draining = True
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._desk.changed:
            self._desk.show()
        info = workflow.info()
        workflow.continue_as_new(
            contract.StartConversation(
                conversation=self._c.id,
                id=self._start.id,
                by=self._start.by,
                client=self._start.client,
                sent_at=self._start.sent_at,
                agent=self._start.agent,
                project=self._start.project,
                variables=self._start.variables,
                injected=self._start.injected,
                first_run_id=info.first_execution_run_id,
                carried=self._c.carry(info.run_id),
            ),
            # Why: without these the new run has the memo and attributes of the very first start.
            memo=workflow.memo(),
            search_attributes=info.typed_search_attributes,
        )

    # doors: updates

    def _admit(self, request: Any, expected: type[doors.R]) -> doors.R:
        checked = doors.check_request(
            request, expected, workflow.info().workflow_id, workflow.now()
        )
        if checked.id in self._c.seen:
            return checked
        if self._failed:
            doors.refuse(f"this conversation has failed: {self._failed}")
        if self._c.closing is not None:
            doors.refuse("this conversation is closed; start a new one")
        if self._draining:
            doors.refuse("the conversation is moving to a new run", contract.ROLLING_OVER)
        if self._c.too_many_requests(workflow.now().timestamp()):
            doors.refuse("too many requests in the last minutes; slow down")
        return checked

    def _answered(self, request: contract.Request) -> dict[str, JsonValue] | None:
        seen = self._c.seen.get(request.id)
        return None if seen is None else dict(seen["answer"])

    def _answer(
        self, request: contract.Request, answer: dict[str, JsonValue]
    ) -> dict[str, JsonValue]:
        self._c.remember(request.id, workflow.now().timestamp(), answer)
        self._c.updated_at = workflow.now().isoformat()
        return answer

    @workflow.update(name=contract.SEND_MESSAGE)
    async def send_message(self, request: contract.SendMessage) -> dict[str, JsonValue]:
        """Take a message; it is answered in its own turn, in order."""
        if (answer := self._answered(request)) is not None:
            return answer
        self._c.messages += 1
        turn = self._c.messages
        if not self._c.title:
            self._c.title = " ".join(request.text.split())[:60]
            if not workflow.memo_value(contract.MEMO_TITLE, ""):
                # Why: a conversation that was opened without words has no title in the lists.
                workflow.upsert_memo({contract.MEMO_TITLE: self._c.title})
        queued = self._c.turn is not None or bool(self._c.queue)
        self._c.queue.append(
            {
                "id": request.id,
                "text": request.text,
                "by": request.by,
                "at": workflow.now().isoformat(),
                "turn": turn,
            }
        )
        if queued:
            self._log.add(MessageQueued, message_id=request.id, text=request.text, by=request.by)
        return self._answer(request, {"accepted": True, "turn": turn, "queued": queued})

    @send_message.validator
    def _check_send_message(self, request: contract.SendMessage) -> None:
        request = self._admit(request, contract.SendMessage)
        doors.check_message(request)
        if len(self._c.queue) >= contract.MAX_QUEUED and request.id not in self._c.seen:
            doors.refuse(f"{contract.MAX_QUEUED} messages wait already; wait for an answer")

    @workflow.update(name=contract.DECIDE)
    async def decide(self, request: contract.Decide) -> dict[str, JsonValue]:
        """Decide an item once; whoever comes later is told who decided, when and how."""
        if (answer := self._answered(request)) is not None:
            return answer
        accepted = self._desk.is_open(request.item)
        if accepted and self._desk.overdue(request.item):
            self._desk.decide(request.item, "expired")
            accepted = False
        if accepted:
            if request.item in self._c.loose_calls:
                self._runner.calls.settle_loose(
                    request.item,
                    request.choice,
                    request.result,
                    by=request.by,
                    client=request.client,
                    reason=request.reason,
                )
            else:
                decision = self._desk.decide(
                    request.item,
                    request.choice,
                    by=request.by,
                    client=request.client,
                    reason=request.reason,
                )
                if request.result:
                    decision["result"] = request.result
        known = self._desk.decision(request.item) or {}
        return self._answer(request, {**known, "accepted": accepted})

    @decide.validator
    def _check_decide(self, request: contract.Decide) -> None:
        request = self._admit(request, contract.Decide)
        if request.id not in self._c.seen:
            doors.check_decision(
                request,
                self._c.items.get(str(request.item)),
                self._desk.decision(str(request.item)),
            )

    @workflow.update(name=contract.CANCEL_TURN)
    async def cancel_turn(self, request: contract.CancelTurn) -> dict[str, JsonValue]:
        """End the running turn; its open calls get results marked cancelled."""
        if (answer := self._answered(request)) is not None:
            return answer
        turn = self._c.turn
        if turn is None:
            return self._answer(request, {"accepted": False, "turn": None})
        self._cancel(request.by)
        return self._answer(request, {"accepted": True, "turn": turn.number})

    @cancel_turn.validator
    def _check_cancel_turn(self, request: contract.CancelTurn) -> None:
        self._admit(request, contract.CancelTurn)

    @workflow.update(name=contract.CLOSE)
    async def close(self, request: contract.Close) -> dict[str, JsonValue]:
        """End the conversation; a running turn is cancelled first, queued messages are dropped."""
        if (answer := self._answered(request)) is not None:
            return answer
        self._c.closing = {"by": request.by, "reason": request.reason}
        if self._c.turn is not None:
            self._cancel(request.by)
        return self._answer(request, {"accepted": True})

    @close.validator
    def _check_close(self, request: contract.Close) -> None:
        request = self._admit(request, contract.Close)
        doors.check_reason(request.reason)

    @workflow.update(name=contract.LATE_RESULT)
    async def late_result(self, request: contract.LateResult) -> dict[str, JsonValue]:
        """Settle a call whose worker reports after the server had given it up."""
        if (answer := self._answered(request)) is not None:
            return answer
        accepted = self._runner.calls.take_late(
            request.call_id, request.digest, request.status, request.text
        )
        return self._answer(request, {"accepted": accepted})

    @late_result.validator
    def _check_late_result(self, request: contract.LateResult) -> None:
        request = self._admit(request, contract.LateResult)
        doors.check_late(request)

    def _cancel(self, by: str) -> None:
        turn = self._c.turn
        if turn is None or turn.cancelled_by is not None:
            return
        turn.cancelled_by = by or "somebody"
        if turn.phase == "limit" and self._desk.is_open(turn.limit_item):
            self._desk.decide(turn.limit_item, "withdrawn")
        self._runner.cancel()

    # doors: queries

    @workflow.query(name=contract.STATE)
    def state(self, ask: contract.Ask) -> RawValue:
        """The conversation at a glance, with every open item whole."""
        self._check_ask(ask)
        c, definition = self._c, self._c.definition
        return inline(
            {
                "v": 1,
                "conversation": c.id,
                "agent": c.agent,
                "status": self._status(),
                "waiting": len(c.items),
                "title": c.title,
                "turn": c.turn.number if c.turn else None,
                "queued": [{k: m[k] for k in ("id", "text", "by")} for m in c.queue],
                "items": list(c.items.values()),
                "definition": {
                    "version": definition.spec["version"],
                    "hash": definition.hash,
                    "model": definition.model,
                }
                if definition
                else None,
                "usage": dict(c.usage),
                "events": c.first_event + len(c.events),
                "entries": c.first_entry + len(c.entries),
                "created_at": c.created_at,
                "updated_at": c.updated_at,
                "detail": self._failed,
                "run": c.run,
            }
        )

    def _status(self) -> str:
        if self._failed:
            return "failed"
        if self._c.closing is not None and self._c.turn is None:
            return "closed"
        if self._c.turn is None:
            return "thinking" if self._c.queue else "idle"
        if self._c.items and not self._runner.is_working:
            return "waiting"
        return "thinking"

    @workflow.query(name=contract.EVENTS)
    def events(self, ask: contract.Ask) -> RawValue:
        """A page of events from an offset; older ones are in the `earlier` runs."""
        self._check_ask(ask)
        return inline(
            {
                **page(self._c.events, self._c.first_event, ask.start, "events"),
                "earlier": [
                    {"run_id": r["run_id"], "first": r["first_event"]} for r in self._c.earlier
                ],
            }
        )

    @workflow.query(name=contract.TRANSCRIPT)
    def transcript(self, ask: contract.Ask) -> RawValue:
        """A page of transcript entries; older ones are in the `earlier` runs."""
        self._check_ask(ask)
        return inline(
            {
                **page(self._c.entries, self._c.first_entry, ask.start, "entries"),
                "earlier": [
                    {"run_id": r["run_id"], "first": r["first_entry"]} for r in self._c.earlier
                ],
            }
        )

    @workflow.query(name=contract.DEFINITION)
    def definition(self, ask: contract.Ask) -> RawValue:
        """The pinned definition, for a worker that does not have it yet."""
        self._check_ask(ask)
        pinned = self._c.definition
        if pinned is None:
            doors.refuse("no definition is pinned yet")
        return inline(
            {
                "spec": pinned.spec,
                "hash": pinned.hash,
                "model": pinned.model,
                "system": pinned.system,
            }
        )

    def _check_ask(self, ask: Any) -> None:
        if not isinstance(ask, contract.Ask) or ask.conversation != workflow.info().workflow_id:
            doors.refuse("the question does not carry the project's seal for this conversation")
        if self._start is contract.NO_START:
            doors.refuse("this conversation was not started with the project's key")
