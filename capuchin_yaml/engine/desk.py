"""The desk: items that wait for a person, decided once, and what lists and inbox show of them.

Runs inside the workflow.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.courier import Courier
from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.events import (
    ItemDecided,
    ItemEscalated,
    ItemOpened,
    ItemReminded,
    ItemVoted,
)
from capuchin_yaml.spec import JsonValue

_STATUS = SearchAttributeKey.for_keyword(contract.SA_STATUS)
_DUE = SearchAttributeKey.for_datetime(contract.SA_DUE)
_TOOLS = SearchAttributeKey.for_keyword_list(contract.SA_TOOLS)
_GROUPS = SearchAttributeKey.for_keyword_list(contract.SA_GROUPS)
_ENDS = ("deny", "close")
"""What at an item's due time ends the asking."""


class Desk:
    """Open and decided items of one conversation."""

    def __init__(self, conversation: Conversation, log: Log, courier: Courier) -> None:
        self._c = conversation
        self._log = log
        self._courier = courier
        self._shown = self._fingerprint()

    def open(self, item: dict[str, JsonValue]) -> None:
        """Put an item on the desk."""
        self._c.items[str(item["id"])] = item
        self._log.add(ItemOpened, item=item)
        self._courier.tell("opened", item)

    def is_open(self, item_id: str) -> bool:
        """Whether nobody has decided yet."""
        return item_id in self._c.items

    def decide(
        self,
        item_id: str,
        choice: str,
        *,
        by: str = "",
        client: str = "",
        reason: str = "",
        arguments: str = "",
        grant: dict[str, JsonValue] | None = None,
        proven: bool = False,
        receipt: dict[str, JsonValue] | None = None,
    ) -> dict[str, JsonValue]:
        """Take the item off the desk with its one decision, and return that."""
        item = self._c.items.pop(item_id)
        now = workflow.now()
        decision: dict[str, JsonValue] = {
            "item": item_id,
            "choice": choice,
            "by": by,
            "at": now.isoformat(),
            "reason": reason,
            "proven": proven,
            "client": client,
            "arguments": arguments,
        }
        self._c.record_decision(item_id, decision)
        self._log.add(
            ItemDecided,
            item_id=item_id,
            item_kind=item["kind"],
            choice=choice,
            by=by,
            client=client,
            reason=reason,
            proven=proven,
            waited_s=_waited_s(item),
            arguments=arguments,
            grant=grant,
            receipt=receipt,
        )
        return decision

    def vote(self, item_id: str, vote: dict[str, JsonValue], gone: list[str]) -> None:
        """Add one approval of several to an open item; those of `gone` no longer count."""
        item = self._c.items[item_id]
        kept = [v for v in item["votes"] if v["by"] not in gone]
        vote = {**vote, "at": workflow.now().isoformat(), "waited_s": _waited_s(item)}
        item["votes"] = [*kept, vote]
        self._log.add(
            ItemVoted,
            item_id=item_id,
            by=vote["by"],
            proven=vote["proven"],
            client=vote["client"],
            reason=vote["reason"],
            waited_s=vote["waited_s"],
            votes=len(item["votes"]),
            quorum=item["quorum"],
            dropped=list(gone),
        )

    def decision(self, item_id: str) -> dict[str, JsonValue] | None:
        """How an item was decided; None while it is open or when it is unknown or long gone."""
        return self._c.decided.get(item_id)

    def overdue(self, item_id: str) -> bool:
        """Whether the item's time is up and something else than waiting follows."""
        item = self._c.items[item_id]
        return item["then"] in _ENDS and _is_past(item.get("due"))

    async def wait(self, item_id: str) -> dict[str, JsonValue]:
        """Wait for the decision; meanwhile the clock reminds, escalates, and decides `expired`."""
        while (item := self._c.items.get(item_id)) is not None:
            wakes = [item.get("remind_at")]
            if item["then"] != "wait":
                wakes.append(item.get("due"))
            times = [datetime.fromisoformat(str(w)) for w in wakes if w]
            left = max(min(times) - workflow.now(), timedelta(0)) if times else None
            try:
                await workflow.wait_condition(lambda: not self.is_open(item_id), timeout=left)
            except TimeoutError:
                self._ring(item_id)
        decision = self.decision(item_id)
        assert decision is not None
        return decision

    def _ring(self, item_id: str) -> None:
        """Do what is due for an item by the clock, unless somebody was faster."""
        item = self._c.items.get(item_id)
        if item is None:
            return
        if self.overdue(item_id):
            self.decide(item_id, "expired")
            return
        if item["then"] == "escalate" and _is_past(item.get("due")):
            self._escalate(item)
        if _is_past(item.get("remind_at")):
            now = workflow.now()
            item["remind_at"] = (now + timedelta(seconds=item["remind_s"])).isoformat()
            self._log.add(ItemReminded, item_id=item_id, next=item["remind_at"])
            self._courier.tell("reminder", item)

    def _escalate(self, item: dict[str, JsonValue]) -> None:
        """Let another group decide as well; they have the same time, and then it is refused."""
        due = workflow.now() + timedelta(seconds=item["timeout_s"])
        group = str(item["escalate_to"])
        if item["approvers"]:
            item["approvers"] = sorted({*item["approvers"], group})
            item["may_decide"] = sorted({*item["may_decide"], *item["may_then"]})
        item |= {"due": due.isoformat(), "then": "deny", "escalate_to": "", "escalated": group}
        self._log.add(ItemEscalated, item_id=item["id"], to=group, due=item["due"])
        self._courier.tell("escalated", item)

    @property
    def changed(self) -> bool:
        """Whether the inbox shows something else than what waits."""
        return self._fingerprint() != self._shown

    def show(self) -> None:
        """Bring search attributes and the inbox memo in step with the desk."""
        items = list(self._c.items.values())
        dues = sorted(str(i["due"]) for i in items if i.get("due"))
        status = contract.STATUS_WAITING if items else contract.STATUS_OPEN
        groups = sorted({g for i in items for g in i.get("approvers", ())})
        updates: list[SearchAttributeUpdate[Any]] = [
            _STATUS.value_set(status),
            _TOOLS.value_set(sorted({str(i["tool"]) for i in items if i.get("tool")})),
            _DUE.value_set(datetime.fromisoformat(dues[0])) if dues else _DUE.value_unset(),
        ]
        if groups or workflow.info().typed_search_attributes.get(_GROUPS):
            updates.append(_GROUPS.value_set(groups))
        workflow.upsert_search_attributes(updates)
        definition = self._c.definition
        workflow.upsert_memo(
            {
                contract.MEMO_INBOX: {
                    "definition_version": str(definition.spec["version"]) if definition else "",
                    "items": [_row(i) for i in items[: contract.MEMO_ITEMS]],
                    "more": max(len(items) - contract.MEMO_ITEMS, 0),
                }
            }
        )
        self._shown = self._fingerprint()

    def _fingerprint(self) -> tuple[tuple[str, str, str, int], ...]:
        return tuple(
            (k, str(v["digest"]), str(v["due"]), len(v.get("votes", ())))
            for k, v in self._c.items.items()
        )


def _is_past(at: JsonValue) -> bool:
    return bool(at) and workflow.now() >= datetime.fromisoformat(str(at))


def _waited_s(item: dict[str, JsonValue]) -> float:
    asked = datetime.fromisoformat(str(item["requested_at"]))
    return round((workflow.now() - asked).total_seconds(), 3)


def _row(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    arguments = str(item.get("arguments", ""))
    row = {
        name: item.get(name)
        for name in (
            "id",
            "kind",
            "tool",
            "alias",
            "effect",
            "title",
            "digest",
            "revision",
            "requested_at",
            "due",
            "then",
        )
    }
    row["arguments"] = arguments[: contract.MEMO_ARGUMENTS]
    row["arguments_cut"] = len(arguments) > contract.MEMO_ARGUMENTS
    if item.get("quorum", 1) > 1 or item.get("approvers"):
        row |= {
            "approvers": item["approvers"],
            "quorum": item["quorum"],
            "votes": len(item["votes"]),
        }
    return row
