"""AgentWorkflow: the one durable loop behind every conversation.

It decides; activities do. Everything that may change between releases runs in an activity,
so that its result is history. The doors are the updates and queries below: each takes one
sealed request, refuses in its validator what cannot be carried out, and answers in the task
that accepted it. Only a decision waits, for a worker's word on who decides.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from capuchin_yaml.engine import contract, doors
    from capuchin_yaml.engine.courier import Courier
    from capuchin_yaml.engine.deciding import Deciding
    from capuchin_yaml.engine.desk import Desk
    from capuchin_yaml.engine.life import CannotLive, Life
    from capuchin_yaml.engine.log import Log
    from capuchin_yaml.engine.pages import inline, page
    from capuchin_yaml.engine.roll_over import RollOver, go_on_in_a_new_run
    from capuchin_yaml.engine.state import Conversation, Turn
    from capuchin_yaml.engine.turn import TurnRunner
    from capuchin_yaml.engine.views import closed_summary, state_view
    from capuchin_yaml.events import (
        ConversationClosed,
        ConversationRenamed,
        MessageQueued,
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
        self._courier = Courier(self._c, self._start.project)
        self._desk = Desk(self._c, self._log, self._courier)
        self._roll_over_due = RollOver(self._c)
        self._life = Life(self._c, self._start, self._log, self._roll_over_due)
        self._runner = TurnRunner(
            self._c,
            self._start,
            self._log,
            self._desk,
            self._life,
            self._between_steps,
            self._roll_over_due,
        )
        self._deciding = Deciding(self._c, self._desk, self._runner.calls.late, self._runner.grants)
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
        courier = asyncio.ensure_future(self._courier.run())
        try:
            await self._life.begin()
        except CannotLive as error:
            await self._fail(str(error))
        try:
            while True:
                await self._between_steps()
                if self._c.turn is not None:
                    await self._runner.run()
                elif self._c.closing is not None:
                    break
                elif self._c.queue:
                    await self._life.before_turn()
                    if self._c.closing is None:
                        self._begin_turn()
                else:
                    await self._life.idle()
        finally:
            clerk.cancel()
            courier.cancel()
            self._courier.stop()
        return await self._end()

    # the course of a conversation

    def _begin_turn(self) -> None:
        assert self._c.definition is not None
        self._c.forget_running(workflow.now() - timedelta(days=1))
        message = self._c.queue.pop(0)
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
        self._c.turn = Turn(number=message["turn"], message_id=message["id"], by=str(message["by"]))
        self._c.turn.allow(self._c.definition.spec["limits"])
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
        return closed_summary(self._c)

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

    async def _between_steps(self) -> None:
        """Go on in a new run when it is time; nothing is in flight here.

        From the moment `_draining` is set the validators refuse, and a handler that has begun is
        waited for, so no acknowledged request is left behind.
        """
        if not self._roll_over_due():
            return
        self._draining = True
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._desk.changed:
            self._desk.show()
        go_on_in_a_new_run(self._c, self._start)

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
        if self._life.opening:
            doors.refuse("the conversation is being opened again", contract.ROLLING_OVER)
        if self._c.too_many_requests(workflow.now().timestamp()):
            doors.refuse("too many requests in the last minutes; slow down")
        return checked

    def _answered(self, request: contract.Request) -> dict[str, JsonValue] | None:
        seen = self._c.seen.get(request.id)
        return None if seen is None else dict(seen["answer"])

    def _answer(
        self, request: contract.Request, answer: dict[str, JsonValue]
    ) -> dict[str, JsonValue]:
        self._roll_over_due.measure()
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
        return self._answer(request, await self._deciding.decide(request))

    @decide.validator
    def _check_decide(self, request: contract.Decide) -> None:
        request = self._admit(request, contract.Decide)
        if request.id not in self._c.seen:
            doors.check_decision(
                request,
                self._c.items.get(str(request.item)),
                self._desk.decision(str(request.item)),
                workflow.now(),
            )
            if request.grant and len(self._c.grants) >= contract.MAX_GRANTS:
                doors.refuse(f"{contract.MAX_GRANTS} grants stand already; revoke one first")

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

    @workflow.update(name=contract.MIGRATE)
    async def migrate(self, request: contract.Migrate) -> dict[str, JsonValue]:
        """Pin the agent anew before the next turn; a running turn keeps what it began with."""
        if (answer := self._answered(request)) is not None:
            return answer
        self._c.migrating = {"by": request.by, "at": workflow.now().isoformat()}
        definition = self._c.definition
        return self._answer(
            request,
            {
                "accepted": True,
                "version": str(definition.spec["version"]) if definition else "",
                "hash": definition.hash if definition else "",
            },
        )

    @migrate.validator
    def _check_migrate(self, request: contract.Migrate) -> None:
        self._admit(request, contract.Migrate)

    @workflow.update(name=contract.RENAME)
    async def rename(self, request: contract.Rename) -> dict[str, JsonValue]:
        """Take a title that a person gives; lists show it from then on."""
        if (answer := self._answered(request)) is not None:
            return answer
        self._c.title = request.title
        # Why: lists read the memo and not the conversation, and work without a worker.
        workflow.upsert_memo({contract.MEMO_TITLE: request.title})
        self._log.add(ConversationRenamed, title=request.title, by=request.by)
        return self._answer(request, {"accepted": True, "title": request.title})

    @rename.validator
    def _check_rename(self, request: contract.Rename) -> None:
        request = self._admit(request, contract.Rename)
        doors.check_title(request.title)

    @workflow.update(name=contract.LATE_RESULT)
    async def late_result(self, request: contract.LateResult) -> dict[str, JsonValue]:
        """Settle a call whose worker reports after the server had given it up."""
        if (answer := self._answered(request)) is not None:
            return answer
        accepted = self._runner.calls.late.take(
            request.call_id,
            request.digest,
            request.status,
            request.text,
            dict(request.artifacts),
            None if request.receipt is None else dict(request.receipt),
        )
        return self._answer(request, {"accepted": accepted})

    @late_result.validator
    def _check_late_result(self, request: contract.LateResult) -> None:
        request = self._admit(request, contract.LateResult)
        doors.check_late(request)

    @workflow.update(name=contract.REVOKE)
    async def revoke(self, request: contract.Revoke) -> dict[str, JsonValue]:
        """Take a grant back; calls it let through already are not undone."""
        if (answer := self._answered(request)) is not None:
            return answer
        accepted = self._runner.grants.revoke(request.grant, request.by)
        return self._answer(request, {"accepted": accepted, "grant": request.grant})

    @revoke.validator
    def _check_revoke(self, request: contract.Revoke) -> None:
        request = self._admit(request, contract.Revoke)
        doors.check_name("grant", request.grant)

    @workflow.update(name=contract.CLAIM)
    async def claim(self, request: contract.Claim) -> dict[str, JsonValue]:
        """Show for five minutes that somebody looks at an item; binds nobody."""
        if (answer := self._answered(request)) is not None:
            return answer
        item = self._c.items.get(request.item)
        if item is not None:
            until = workflow.now() + timedelta(seconds=contract.CLAIM_S)
            item |= {
                "claimed_by": request.by,
                "claimed_until": until.isoformat(),
                "claimed_process": request.process,
            }
        return self._answer(request, {"accepted": item is not None, "item": request.item})

    @claim.validator
    def _check_claim(self, request: contract.Claim) -> None:
        request = self._admit(request, contract.Claim)
        doors.check_name("item", request.item)
        doors.check_process(request.process)

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
        return inline(state_view(self._c, self._status(), self._failed))

    def _status(self) -> str:
        if self._failed:
            return "failed"
        if self._c.closing is not None and self._c.turn is None:
            return "closed"
        if self._c.turn is None:
            return "thinking" if self._c.queue or self._life.opening else "idle"
        if self._c.paused is not None:
            return "waiting"
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

    @workflow.query(name=contract.CLOSED_STATE)
    def closed_state(self, ask: contract.Ask) -> RawValue:
        """What the run that opens this closed conversation again goes on with."""
        self._check_ask(ask)
        if self._c.closing is None or self._c.turn is not None or self._failed:
            doors.refuse("only a closed conversation can be opened again")
        return inline(self._c.carry(workflow.info().run_id))

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
