"""One conversation: say something, decide, read it, watch it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.client import WorkflowQueryRejectedError

from capuchin_yaml.client.answers import (
    CancelAnswer,
    ConversationState,
    DecisionAnswer,
    Deleted,
    MigrateAnswer,
    Partial,
    SendAnswer,
    state_from_json,
)
from capuchin_yaml.client.claimant import this_process
from capuchin_yaml.client.deletion import delete_conversation
from capuchin_yaml.client.diagnosis import describe, held_up
from capuchin_yaml.client.ids import agent_of, short_id
from capuchin_yaml.client.link import Link
from capuchin_yaml.client.queries import ask, pages
from capuchin_yaml.client.reopening import reopen_conversation
from capuchin_yaml.client.requests import (
    checked_message,
    checked_text,
    deliver,
    envelope,
)
from capuchin_yaml.client.signing import signature, signing_key
from capuchin_yaml.client.visibility import is_open, memo_value
from capuchin_yaml.client.watch import Bookmark, Reconnected, Reconnecting, settled, watched
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import ConversationBlocked
from capuchin_yaml.events import ConversationStatus, Event, decode
from capuchin_yaml.messages import TranscriptEntry, entry_from_json
from capuchin_yaml.signed import statement_of
from capuchin_yaml.spec import JsonValue

_CHOICE_BYTES = 256
_DIGEST_BYTES = 256
_ITEM_BYTES = 256
_CLOSES_S = 60.0


class Conversation:
    """A handle on one conversation; making it asks nobody anything."""

    def __init__(self, link: Link, conversation_id: str) -> None:
        self._link = link
        self.id = conversation_id
        """The whole id, which is the workflow id."""
        self._bookmark = Bookmark()

    def __repr__(self) -> str:
        return f"Conversation({self.id!r})"

    @property
    def short_id(self) -> str:
        """The id without its project."""
        return short_id(self._link.project, self.id)

    @property
    def agent(self) -> str:
        """The agent that the id names."""
        return agent_of(self._link.project, self.id)

    async def send(self, text: str, *, by: str, message_id: str | None = None) -> SendAnswer:
        """Say something to the agent; it is durable once this returns.

        With an own `message_id`, a repeat of the same message is the same message, also from
        another process. Without one, repeats within this call are safe.

        Raises:
            RequestRefused: the text cannot be sent, or the conversation is closed.
            NotSent, WorkerUnavailable: nobody confirmed it; send it again with the same id.
            ConversationNotFound, ConversationBlocked: as the names say.
        """
        request = contract.SendMessage(
            **envelope(self._link, self.id, "m", by, message_id), text=checked_message(text)
        )
        answer = await deliver(self._link, contract.SEND_MESSAGE, request)
        return SendAnswer(request.id, answer.get("turn"), bool(answer.get("queued")))

    async def decide(
        self,
        item_id: str,
        *,
        digest: str,
        choice: str,
        by: str,
        reason: str = "",
        result: str = "",
        arguments: str = "",
        grant: Mapping[str, JsonValue] | None = None,
        decision_id: str | None = None,
    ) -> DecisionAnswer:
        """Answer an item as it was shown; `digest` is the whole one of that revision.

        `arguments` go with the choice `edit`: the JSON object that shall run instead, judged like
        the model's. `grant` goes with `approve`: what else it allows in this conversation,
        `{scope: call or tool, times, until}`. An item that was decided before is no error: the
        answer has `accepted` false and tells who decided and how. It is signed with the key of
        CAPUCHIN_SIGNING_KEY, if that is set.

        Raises:
            RequestRefused: no such item, another revision, a choice it does not offer, or this
                person may not decide it.
            NotSent, WorkerUnavailable: nobody confirmed it.
            ConversationNotFound, ConversationBlocked: as the names say.
        """
        request = contract.Decide(
            **envelope(self._link, self.id, "d", by, decision_id),
            item=checked_text("the item's id", item_id, _ITEM_BYTES),
            digest=checked_text("the digest", digest, _DIGEST_BYTES),
            choice=checked_text("the choice", choice, _CHOICE_BYTES),
            reason=checked_text("the reason", reason, contract.MAX_REASON_BYTES, may_be_blank=True),
            result=checked_text("the result", result, contract.MAX_RESULT_BYTES, may_be_blank=True),
            arguments=checked_text(
                "the arguments", arguments, contract.MAX_EDIT_BYTES, may_be_blank=True
            ),
            grant=None if grant is None else dict(grant),
        )
        key = signing_key()
        if key is not None:
            signed = await signature(statement_of(request), key)
            request = replace(request, signature=signed)
        answer = await deliver(self._link, contract.DECIDE, request)
        return DecisionAnswer(
            accepted=bool(answer["accepted"]),
            item=str(answer.get("item") or item_id),
            choice=str(answer.get("choice") or ""),
            by=str(answer.get("by") or ""),
            at=str(answer.get("at") or ""),
            reason=str(answer.get("reason") or ""),
            proven=bool(answer.get("proven")),
            client=str(answer.get("client") or ""),
            votes=int(answer.get("votes") or 0),
            quorum=int(answer.get("quorum") or 0),
        )

    async def revoke(self, grant: str, *, by: str) -> bool:
        """Take back what an approval allowed beforehand; False when there is no such grant.

        Calls that it let through already are not undone.

        Raises:
            As `send`.
        """
        request = contract.Revoke(
            **envelope(self._link, self.id, "v", by),
            grant=checked_text("the grant's id", grant, _ITEM_BYTES),
        )
        return bool((await deliver(self._link, contract.REVOKE, request))["accepted"])

    async def claim(self, item_id: str, *, by: str) -> bool:
        """Say to others, for five minutes, that one is looking at an item; it binds nobody.

        False when the item waits no more.

        Raises:
            As `send`.
        """
        request = contract.Claim(
            **envelope(self._link, self.id, "l", by),
            item=checked_text("the item's id", item_id, _ITEM_BYTES),
            process=this_process(),
        )
        return bool((await deliver(self._link, contract.CLAIM, request))["accepted"])

    async def input_schemas(self) -> Mapping[str, Mapping[str, JsonValue]]:
        """Return the JSON Schema of every tool's arguments, by identity, as this talk pinned them.

        Raises:
            RequestRefused: no definition is pinned yet.
            ConversationNotFound, ConversationBlocked, WorkerUnavailable, ServerUnavailable:
                as the names say.
        """
        pinned = await ask(self._link, self.id, contract.DEFINITION)
        return {t["identity"]: t["input_schema"] for t in pinned["spec"].get("tools", ())}

    async def cancel_turn(self, *, by: str) -> CancelAnswer:
        """End the running turn; open calls get results marked cancelled.

        Raises:
            As `send`.
        """
        request = contract.CancelTurn(**envelope(self._link, self.id, "c", by))
        answer = await deliver(self._link, contract.CANCEL_TURN, request)
        return CancelAnswer(bool(answer["accepted"]), answer.get("turn"))

    async def close(self, *, by: str, reason: str = "") -> None:
        """End the conversation for good.

        Raises:
            As `send`; RequestRefused also when it had ended before.
        """
        reason = checked_text("the reason", reason, contract.MAX_REASON_BYTES, may_be_blank=True)
        request = contract.Close(**envelope(self._link, self.id, "x", by), reason=reason)
        await deliver(self._link, contract.CLOSE, request)

    async def rename(self, title: str, *, by: str) -> str:
        """Give the conversation a title, and return it as it is kept: one line, no blanks around.

        Raises:
            As `send`; RequestRefused also when it has ended.
        """
        told = checked_text("the title", " ".join(title.split()), contract.MAX_TITLE_BYTES)
        request = contract.Rename(**envelope(self._link, self.id, "n", by), title=told)
        return str((await deliver(self._link, contract.RENAME, request))["title"])

    async def migrate(self, *, by: str) -> MigrateAnswer:
        """Take the agent as it is on the worker's disk, from the next turn on.

        A turn that runs keeps the definition it began with. The event `definition_pinned` tells
        what came of it; a definition that cannot be pinned leaves the old one in force.

        Raises:
            As `send`.
        """
        request = contract.Migrate(**envelope(self._link, self.id, "g", by))
        answer = await deliver(self._link, contract.MIGRATE, request)
        return MigrateAnswer(str(answer.get("version") or ""), str(answer.get("hash") or ""))

    async def reopen(self, *, by: str) -> None:
        """Open a closed conversation again, under its id and with its history.

        Raises:
            RequestRefused: it is open, or did not end by being closed.
            ConversationNotFound, WorkerUnavailable, ServerUnavailable, NotSent: as the names say.
        """
        await reopen_conversation(self._link, self.id, by=by)

    async def delete(self, *, close_by: str | None = None) -> Deleted:
        """Delete the conversation: all its runs, and the stored values only it refers to.

        With `close_by` an open one is closed first, by that person. What its tools wrote, logs
        and backups are not touched.

        Raises:
            RequestRefused: it is open.
            ConversationNotFound, ServerUnavailable: as the names say.
            WorkerUnavailable, NotSent: it could not be closed.
        """
        if close_by is not None and await self._is_open():
            await self.close(by=close_by, reason="deleted")
            async with asyncio.timeout(_CLOSES_S):
                while await self._is_open():  # noqa: ASYNC110 the server tells only who asks
                    await asyncio.sleep(0.05)
        return await delete_conversation(self._link, self.id)

    async def _is_open(self) -> bool:
        return is_open((await describe(self._link, self.id)).workflow_execution_info)

    async def state(self) -> ConversationState:
        """Read the conversation from its workflow.

        One whose code fails is `blocked`, with the failure in `detail` and nothing else known.

        Raises:
            ConversationNotFound, WorkerUnavailable, ServerUnavailable: as the names say.
            UnsafeState: the answer is not sealed with this project's key.
        """
        try:
            answer = await ask(self._link, self.id, contract.STATE, only_open=True)
        except ConversationBlocked as error:
            return await self._told_by_server("blocked", str(error))
        except WorkflowQueryRejectedError as rejected:
            return await self._ended(int(rejected.status or 0))
        state = state_from_json(answer)
        if state.status == "thinking" and not state.detail:
            partial = await self.partial()
            if partial is not None and partial.held_up:
                return replace(state, detail=partial.held_up)
        return state

    async def events(self, since: int = 0, until: int | None = None) -> list[Event]:
        """Return the event log from offset `since` on, over all runs, up to `until` (excluded).

        Raises:
            ConversationNotFound, ConversationBlocked, WorkerUnavailable, ServerUnavailable:
                as the names say.
        """
        found: list[Event] = []
        async with aclosing(self._new_events(since)) as events:
            async for event in events:
                if until is not None and event.offset >= until:
                    break
                found.append(event)
        return found

    async def transcript(self, since: int = 0) -> list[TranscriptEntry]:
        """Return what was said, asked of tools and answered, over all runs.

        Raises:
            As `events`.
        """
        found: list[TranscriptEntry] = []
        async for page in pages(self._link, self.id, contract.TRANSCRIPT, "entries", since):
            found += [entry_from_json(entry) for entry in page.entries]
        return found

    def watch(self, since: int = 0) -> AsyncGenerator[Event | Reconnecting | Reconnected, None]:
        """Yield every event from offset `since` on, once and in order, until the conversation ends.

        Between them, `Reconnecting` says that the server, or every worker, is away, and
        `Reconnected` that it is back; nothing is missed. Close the iterator to stop
        (`contextlib.aclosing`).

        Raises:
            ConversationNotFound, UnsafeState, RequestRefused: as the names say.
        """
        return watched(self._link, self.id, self._bookmark, since, self._new_events)

    async def settle(self) -> ConversationState:
        """Wait until nothing goes on without a person: idle, waiting, blocked, closed or failed.

        A message that was acknowledged before counts as running until it is answered.

        Raises:
            WorkerUnavailable: work waits and no worker takes it.
            ConversationNotFound, ServerUnavailable: as the names say.
        """
        return await settled(self._link, self.id, self._bookmark, self.state)

    async def partial(self) -> Partial | None:
        """Return the newest end of the reply that is being written; None when none is.

        Between two attempts it says instead what holds the model up, and until when.
        Cheap enough to ask ten times a second; needs no worker.

        Raises:
            ConversationNotFound, ServerUnavailable: as the names say.
        """
        description = await describe(self._link, self.id)
        for activity in description.pending_activities:
            if activity.activity_type.name != contract.CALL_MODEL:
                continue
            if (why := held_up(activity)) is not None:
                return Partial(activity.attempt, 0, "", held_up=why)
            payloads = list(activity.heartbeat_details.payloads)[:1]
            for value in await self._link.temporal.data_converter.decode(payloads):
                return _partial(value)
        return None

    async def _new_events(self, since: int) -> AsyncGenerator[Event, None]:
        async for page in pages(self._link, self.id, contract.EVENTS, "events", since):
            for value in page.entries:
                yield decode(value)

    async def _ended(self, status: int) -> ConversationState:
        state = state_from_json(await ask(self._link, self.id, contract.STATE))
        if state.status in ("closed", "failed"):
            return state
        return await self._told_by_server(*ended_from_outside(status), known=state)

    async def _told_by_server(
        self, status: ConversationStatus, detail: str, known: ConversationState | None = None
    ) -> ConversationState:
        if known is not None:
            fields: dict[str, Any] = {
                name: getattr(known, name) for name in ConversationState.__slots__
            }
            return ConversationState(
                **fields | {"status": status, "detail": detail, "items": (), "waiting": 0}
            )
        description = await describe(self._link, self.id)
        title = await memo_value(
            self._link, description.workflow_execution_info, contract.MEMO_TITLE
        )
        return ConversationState(
            conversation=self.id,
            agent=self.agent,
            status=status,
            title=title if isinstance(title, str) else "",
            detail=detail,
        )


def ended_from_outside(status: int) -> tuple[ConversationStatus, str]:
    """Name the end of a conversation that its workflow did not make itself."""
    match status:
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED:
            return "closed", "terminated on the server, from outside"
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED:
            return "closed", "cancelled on the server, from outside"
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
            return "failed", "its time on the server ran out"
        case WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED:
            return "failed", "its workflow failed"
        case _:
            return "closed", ""


def _partial(value: object) -> Partial | None:
    if not isinstance(value, dict):
        return None
    attempt, offset, tail = value.get("attempt"), value.get("offset"), value.get("tail")
    if isinstance(attempt, int) and isinstance(offset, int) and isinstance(tail, str):
        return Partial(attempt, offset, tail)
    return None
