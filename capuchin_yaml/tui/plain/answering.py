"""Typed words that answer items, show them, change them and allow beforehand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.items import Item
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.answers import EDITED, Answer, answers
from capuchin_yaml.tui.model.arguments import WrongArguments, checked
from capuchin_yaml.tui.model.remember import (
    LIMITS_OF_ALL,
    Remembered,
    grant_text,
    lets_through,
    remembered,
    rule_text,
    seconds,
    still_asks,
)
from capuchin_yaml.tui.model.verdict import answered
from capuchin_yaml.tui.plain.decisions import WORDS, item_lines

if TYPE_CHECKING:
    from capuchin_yaml.tui.plain.session import PlainSession

Command: TypeAlias = Callable[[str, float], Awaitable[None]]


class PlainAnswering:
    """An item is read from its conversation each time; nothing is believed of a list."""

    def __init__(self, session: PlainSession) -> None:
        self._s = session
        self._rules: dict[str, tuple[str, Remembered]] = {}
        """By item: the digest it had, and what an approve shall allow beside it."""

    def commands(self) -> dict[str, Command]:
        """The words, with what they do."""
        return {
            "inbox": self._inbox,
            "show": self._show,
            "edit": self._edit,
            "remember": self._remember,
            "later": self._later,
            "grants": self._grants,
            "revoke": self._revoke,
            **{WORDS[choice]: partial(self._answer, choice) for choice in WORDS},
        }

    async def _inbox(self, rest: str, at: float) -> None:
        rows = self._s.desk.fleet.waiting()
        for row in rows:
            n = self._s.docket.number(row.id)
            what = one_line(row.tool or row.title, 80)
            due = f", due {one_line(row.due, 40)}, then {one_line(row.then, 20)}" if row.due else ""
            self._s.say(f"{one_line(row.kind, 20)} {n}: {what} of {one_line(row.agent, 40)}{due}")
        self._s.say(f"{len(rows)} wait; /show N reads one" if rows else "nothing waits for you")

    async def _find(self, word: str) -> tuple[InboxRow, Item] | None:
        row = self._s.docket.find(word, self._s.desk.fleet.waiting())
        if row is None:
            self._s.say(f"error: {one_line(word, 40) or 'nothing'} is no number here: /inbox")
            return None
        item = await self._s.desk.read_item(row.conversation, row.id)
        if item is None:
            self._s.say("note: it waits no more")
            return None
        return row, item

    async def _show(self, rest: str, at: float) -> None:
        found = await self._find(rest)
        if found is not None:
            self._write(found[1])

    def _write(self, item: Item, edited: str = "") -> None:
        """Write an item whole; what was typed before that cannot answer it."""
        for line in item_lines(item, self._s.docket.number(item.id), edited=edited):
            self._s.say(line)
        self._s.reader.forget()
        self._s.docket.show(item, self._s.clock(), edited)

    async def _edit(self, rest: str, at: float) -> None:
        word, _, text = rest.partition(" ")
        found = await self._find(word)
        if found is None:
            return
        item = found[1]
        if item.kind != "approval":
            self._s.say("error: only a call that waits for approval can be changed")
            return
        if not text.strip():
            self._s.say(f"note: /edit {word} JSON; it has now: {one_line(item.arguments, 4000)}")
            return
        try:
            arguments = checked(await self._s.desk.look.schema(item), text)
        except WrongArguments as error:
            self._s.say(f"error: these arguments cannot run: {error}")
            return
        self._write(item, arguments if arguments != item.arguments else "")

    async def _remember(self, rest: str, at: float) -> None:
        word, _, how = rest.partition(" ")
        found = await self._find(word)
        if found is None:
            return
        item = found[1]
        scope, _, ends = how.strip().partition(" ")
        ends = ends.strip()
        try:
            times = ends if ends.isdecimal() else ""
            lasting = None if times else seconds(ends)
            rule = remembered(scope, times, lasting, datetime.now(UTC))
        except ValueError as error:
            self._s.say(f"error: {error}; such as /remember {word} tool 3")
            return
        if item.kind != "approval":
            self._s.say("error: only an approval can be remembered")
            return
        self._rules[item.id] = (item.digest, rule)
        self._write(item)
        self._s.say(f"with /approve {word}: {rule_text(scope, item.tool, rule.times, rule.until)}")
        for call in lets_through(item, scope):
            self._s.say(f"  runs without asking: {one_line(call, 200)}")
        for call in still_asks(item, scope):
            self._s.say(f"  still asks: {one_line(call, 200)}")
        self._s.say(f"  {LIMITS_OF_ALL}")

    async def _answer(self, choice: str, rest: str, at: float) -> None:
        word, _, rest = rest.partition(" ")
        found = await self._find(word)
        if found is None:
            return
        item = found[1]
        answer = next((a for a in answers(item) if a.choice == choice), None)
        if answer is None:
            ways = ", ".join(f"/{WORDS[a.choice]}" for a in answers(item) if not a.asks_rule)
            self._s.say(f"error: that is no answer to this item; type {ways or 'nothing here'}")
            return
        manner = self._s.manner
        why, text = self._s.docket.refusal(
            item, answer, rest.strip(), at, by_person=manner.by_person
        )
        why = why or self._s.desk.fleet.hold
        if not why and answer.asks == "result" and not text:
            why = "what the tool would have answered must follow"
        if why:
            self._s.say(f"error: not taken: {why}")
            return
        await self._decide(item, answer, text)

    async def _decide(self, item: Item, answer: Answer, text: str) -> None:
        seen = self._s.docket.seen(item.id)
        edited = seen.edited if seen is not None and answer.choice == "approve" else ""
        digest, rule = self._rules.get(item.id, ("", None))
        grant = None
        if rule is not None and digest == item.digest and answer.choice == "approve" and not edited:
            grant = rule.to_json()
        is_result = answer.asks == "result"
        decided = await self._s.desk.decide(
            item,
            EDITED.choice if edited else answer.choice,
            "" if is_result else text,
            text if is_result else "",
            arguments=edited,
            grant=grant,
        )
        n = self._s.docket.number(item.id)
        if decided.accepted:
            word = "approved with your changes" if edited else decided.choice.replace("_", " ")
            self._s.say(f"{item.kind} {n}: {word}, by {one_line(decided.by, 60)}")
        else:
            self._s.say(f"{item.kind} {n}: {answered(decided, self._s.gateway.user)}")

    async def _later(self, rest: str, at: float) -> None:
        row = self._s.docket.find(rest, self._s.desk.fleet.waiting())
        if row is not None:
            self._s.put_off(row.id, row.revision)
            self._s.say("note: not now; nothing was decided, /inbox still lists it")

    async def _grants(self, rest: str, at: float) -> None:
        await self._s.desk.look.grants()
        found = [g for grants in self._s.desk.fleet.grants.values() for g in grants]
        for grant in found:
            call = f" {one_line(grant.arguments, 200)}" if grant.arguments else ""
            self._s.say(f"{grant.id}: {grant_text(grant)}{call}")
        if not found:
            self._s.say("nothing is allowed beforehand")

    async def _revoke(self, rest: str, at: float) -> None:
        if ":" not in rest:
            self._s.say("error: /revoke GRANT; /grants lists them")
            return
        try:
            done = await self._s.desk.revoke(rest.rpartition(":")[0], rest)
        except CapuchinError as error:
            self._s.say(f"error: not taken back: {error}")
            return
        self._s.say("taken back: such calls ask again" if done else "there is no such grant")
