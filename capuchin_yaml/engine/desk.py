"""The desk: items that wait for a person, decided once, and what lists and inbox show of them.

Runs inside the workflow.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.log import Log
from capuchin_yaml.engine.state import Conversation
from capuchin_yaml.events import ItemDecided, ItemOpened
from capuchin_yaml.spec import JsonValue

_STATUS = SearchAttributeKey.for_keyword(contract.SA_STATUS)
_DUE = SearchAttributeKey.for_datetime(contract.SA_DUE)
_TOOLS = SearchAttributeKey.for_keyword_list(contract.SA_TOOLS)


class Desk:
    """Open and decided items of one conversation."""

    def __init__(self, conversation: Conversation, log: Log) -> None:
        self._c = conversation
        self._log = log
        self._shown = self._fingerprint()

    def open(self, item: dict[str, JsonValue]) -> None:
        """Put an item on the desk."""
        self._c.items[str(item["id"])] = item
        self._log.add(ItemOpened, item=item)

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
        receipt: dict[str, JsonValue] | None = None,
    ) -> dict[str, JsonValue]:
        """Take the item off the desk with its one decision, and return that."""
        item = self._c.items.pop(item_id)
        now = workflow.now()
        asked = datetime.fromisoformat(str(item["requested_at"]))
        decision: dict[str, JsonValue] = {
            "item": item_id,
            "choice": choice,
            "by": by,
            "at": now.isoformat(),
            "reason": reason,
            "proven": False,
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
            waited_s=round((now - asked).total_seconds(), 3),
            arguments=arguments,
            grant=grant,
            receipt=receipt,
        )
        return decision

    def decision(self, item_id: str) -> dict[str, JsonValue] | None:
        """How an item was decided; None while it is open or when it is unknown or long gone."""
        return self._c.decided.get(item_id)

    def overdue(self, item_id: str) -> bool:
        """Whether the item's time is up and something else than waiting follows."""
        item = self._c.items[item_id]
        due = item.get("due")
        return bool(
            due and item["then"] != "wait" and workflow.now() >= datetime.fromisoformat(str(due))
        )

    async def wait(self, item_id: str) -> dict[str, JsonValue]:
        """Wait for the decision; the clock decides `expired` at the item's due time."""
        item = self._c.items.get(item_id)
        if item is not None and item.get("due") and item["then"] != "wait":
            left = datetime.fromisoformat(str(item["due"])) - workflow.now()
            try:
                await workflow.wait_condition(
                    lambda: not self.is_open(item_id), timeout=max(left, timedelta(0))
                )
            except TimeoutError:
                if self.is_open(item_id):
                    self.decide(item_id, "expired")
        else:
            await workflow.wait_condition(lambda: not self.is_open(item_id))
        decision = self.decision(item_id)
        assert decision is not None
        return decision

    @property
    def changed(self) -> bool:
        """Whether the inbox shows something else than what waits."""
        return self._fingerprint() != self._shown

    def show(self) -> None:
        """Bring search attributes and the inbox memo in step with the desk."""
        items = list(self._c.items.values())
        dues = sorted(str(i["due"]) for i in items if i.get("due"))
        status = contract.STATUS_WAITING if items else contract.STATUS_OPEN
        updates: list[SearchAttributeUpdate[Any]] = [
            _STATUS.value_set(status),
            _TOOLS.value_set(sorted({str(i["tool"]) for i in items if i.get("tool")})),
            _DUE.value_set(datetime.fromisoformat(dues[0])) if dues else _DUE.value_unset(),
        ]
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

    def _fingerprint(self) -> tuple[tuple[str, str], ...]:
        return tuple((k, str(v["digest"])) for k, v in self._c.items.items())


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
    return row
