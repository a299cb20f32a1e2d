"""Decisions of people: looked up with the operator, counted, and taken once.

Runs inside the workflow. Who may decide, and whether a signature is theirs, is said by a worker
that reads the operator's config; its word is history before the decision counts.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from capuchin_yaml.engine import contract, doors
from capuchin_yaml.engine.desk import Desk
from capuchin_yaml.engine.grant_book import GrantBook
from capuchin_yaml.engine.late_results import LateResults
from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.signed import statement_of
from capuchin_yaml.spec import JsonValue

CHECK_S = 20.0
"""Longest wait for a worker's word on a decision; then it is refused, and may be sent again."""


class Deciding:
    """Takes the answers to what waits on the desk."""

    def __init__(
        self, conversation: Conversation, desk: Desk, late: LateResults, grants: GrantBook
    ) -> None:
        self._c = conversation
        self._desk = desk
        self._late = late
        self._grants = grants

    async def decide(self, request: contract.Decide) -> dict[str, JsonValue]:
        """Take one decision; the answer says whether it counts, and how the item stands.

        Raises:
            ApplicationError: type `Refused`; this person may not decide it, or has already.
        """
        if not self._is_open(request):
            return self._standing(request, accepted=False)
        item = self._c.items[request.item]
        self._check_voter(request, item)
        checked = await self._checked(request, item)
        # Why: others may have decided, or the time may have run out, while a worker looked it up.
        if not self._is_open(request):
            return self._standing(request, accepted=False)
        item = self._c.items[request.item]
        self._check_voter(request, item)
        proven = bool(checked["proven"])
        gone = [str(name) for name in checked["gone"]]
        votes = [v for v in item.get("votes", ()) if v["by"] not in gone]
        if request.choice == "approve" and len(votes) + 1 < item.get("quorum", 1):
            vote: dict[str, JsonValue] = {
                "by": request.by,
                "client": request.client,
                "proven": proven,
                "reason": request.reason,
            }
            self._desk.vote(request.item, vote, gone)
            return self._standing(request, accepted=True)
        self._take(request, item, proven)
        return self._standing(request, accepted=True)

    def _is_open(self, request: contract.Decide) -> bool:
        """Whether the item still waits as it was shown; the clock may decide it now."""
        if not self._desk.is_open(request.item):
            return False
        if self._desk.overdue(request.item):
            self._desk.decide(request.item, "expired")
            return False
        return True

    def _check_voter(self, request: contract.Decide, item: dict[str, JsonValue]) -> None:
        if request.choice != "approve":
            return
        if request.by in item.get("exclude", ()):
            doors.refuse(f"{request.by} asked for this call, so another person must approve it")
        several = item.get("quorum", 1) > 1
        if (several or item.get("exclude")) and not request.by.strip():
            doors.refuse("say who approves: it needs the name of a person")
        if any(v["by"] == request.by for v in item.get("votes", ())):
            left = item["quorum"] - len(item["votes"])
            doors.refuse(f"{request.by} has approved this already; {left} more must approve")

    async def _checked(
        self, request: contract.Decide, item: dict[str, JsonValue]
    ) -> dict[str, JsonValue]:
        """What the operator's config says of this decision.

        Raises:
            ApplicationError: type `Refused`; it does not count, or nobody could look it up.
        """
        try:
            # Why no local activity: with a query on the same task the server may refuse the
            # answer of an update that waits for one, and the whole task with it.
            checked = await workflow.execute_activity(
                contract.CHECK_DECISION,
                contract.CheckDecision(
                    conversation=self._c.id,
                    run_id=workflow.info().run_id,
                    by=request.by,
                    choice=request.choice,
                    approvers=tuple(item.get("approvers", ())),
                    earlier={str(v["by"]): bool(v["proven"]) for v in item.get("votes", ())},
                    statement=statement_of(request),
                    signature=request.signature,
                ),
                result_type=dict,
                start_to_close_timeout=timedelta(seconds=3),
                schedule_to_close_timeout=timedelta(seconds=CHECK_S),
                retry_policy=RetryPolicy(maximum_attempts=3),
                summary=f"{request.choice} by {request.by}",
            )
        except ActivityError:
            doors.refuse("no worker could tell whether this decision counts; decide again")
        if not isinstance(checked, dict) or "problem" not in checked:
            doors.refuse("the worker's answer did not carry the seal; decide again")
        if checked["problem"]:
            doors.refuse(str(checked["problem"]))
        return checked

    def _take(self, request: contract.Decide, item: dict[str, JsonValue], proven: bool) -> None:
        if request.item in self._c.loose_calls:
            self._late.settle_loose(
                request.item,
                request.choice,
                request.result,
                by=request.by,
                client=request.client,
                reason=request.reason,
                proven=proven,
            )
            return
        grant = dict(request.grant) if request.grant else None
        decision = self._desk.decide(
            request.item,
            request.choice,
            by=request.by,
            client=request.client,
            reason=request.reason,
            arguments=request.arguments,
            grant=grant,
            proven=proven,
        )
        if grant is not None:
            self._grants.give(item, grant, request.by)
        if request.result:
            decision["result"] = request.result

    def _standing(self, request: contract.Decide, *, accepted: bool) -> dict[str, JsonValue]:
        item = self._c.items.get(request.item)
        if item is None:
            return {**(self._desk.decision(request.item) or {}), "accepted": accepted}
        votes = item.get("votes", ())
        mine: dict[str, JsonValue] = next((v for v in votes if v["by"] == request.by), {})
        return {
            "item": request.item,
            "choice": request.choice,
            **{name: mine.get(name) for name in ("by", "at", "reason", "proven", "client")},
            "accepted": accepted,
            "votes": len(item["votes"]),
            "quorum": item["quorum"],
        }
