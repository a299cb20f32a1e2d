"""Items in plain lines, and the guard of that mode: shown whole, then a typed word with a number.

Nothing has a default answer. A word counts only for the very revision that was shown whole, and
only when it was typed after that: what was typed before is dropped, and a line that follows
within 0.3 s is refused as a paste. Without a person at a terminal the digest must be given,
which only who has seen the item can know. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from capuchin_yaml.items import Item, unanswerable, who_has, who_may
from capuchin_yaml.spec import canonical_json
from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.answers import Answer, answers, must_type_name
from capuchin_yaml.tui.model.arguments import differences

QUIET_S = 0.3
MIN_DIGEST = 8
WORDS: dict[str, str] = {
    "approve": "approve",
    "deny": "deny",
    "happened": "happened",
    "rerun": "rerun",
    "failed": "failed",
    "go_on": "goon",
    "stop": "stop",
}
"""What is typed, after a slash, for each choice."""


@dataclass(slots=True)
class Seen:
    """What was shown whole, and when."""

    item: Item
    at: float
    edited: str = ""
    """Arguments that the person wrote instead, shown with it."""


@dataclass(slots=True)
class Docket:
    """Numbers that never change hands, and what was shown of each item."""

    _numbers: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, Seen] = field(default_factory=dict)
    _announced: set[tuple[str, int]] = field(default_factory=set)
    _last_line: float = float("-inf")
    _line_before: float = float("-inf")

    def line(self, at: float) -> None:
        """A line came in."""
        self._line_before, self._last_line = self._last_line, at

    def number(self, item_id: str) -> int:
        """The number of an item, the same for the whole session."""
        return self._numbers.setdefault(item_id, len(self._numbers) + 1)

    def find(self, word: str, waiting: Sequence[InboxRow]) -> InboxRow | None:
        """The waiting item that a number, or the end of an id, means."""
        if word.isdecimal():
            return next((r for r in waiting if self._numbers.get(r.id) == int(word)), None)
        found = [r for r in waiting if word and r.id.endswith(word)]
        return found[0] if len(found) == 1 else None

    def announce(self, waiting: Sequence[InboxRow]) -> list[str]:
        """One line for each item that is new or has another revision."""
        lines = []
        for row in waiting:
            if (row.id, row.revision) in self._announced:
                continue
            self._announced.add((row.id, row.revision))
            n = self.number(row.id)
            what = one_line(row.tool or row.title, 80)
            again = " (it changed)" if row.revision > 1 else ""
            lines.append(
                f"{one_line(row.kind, 20)} {n}: {what} of {one_line(row.agent, 40)} waits for a "
                f"person{again}, {len(waiting)} in all; /show {n} reads it"
            )
        return lines

    def show(self, item: Item, at: float, edited: str = "") -> None:
        """The whole item has been written out."""
        self._seen[item.id] = Seen(item, at, edited)

    def seen(self, item_id: str) -> Seen | None:
        """What was shown of an item."""
        return self._seen.get(item_id)

    def refusal(
        self, item: Item, answer: Answer, rest: str, at: float, *, by_person: bool
    ) -> tuple[str, str]:
        """Why the word may not answer the item, empty when it may; and what follows the proof."""
        seen, n = self._seen.get(item.id), self.number(item.id)
        first, _, after = rest.partition(" ")
        if not by_person:
            if len(first) < MIN_DIGEST or not item.digest.startswith(first.lower()):
                return f"no terminal is here, so the digest must follow: see /show {n}", ""
            rest, (first, _, after) = after, after.partition(" ")
        elif seen is None:
            return f"it was not shown yet: /show {n}", ""
        if seen is not None and (seen.item.digest, seen.item.revision) != (
            item.digest,
            item.revision,
        ):
            return f"it changed since it was shown: /show {n}", ""
        if by_person and seen is not None and at - seen.at <= QUIET_S:
            return "it has only just been shown: read it first", ""
        if by_person and at - self._line_before <= QUIET_S:
            return "lines came just before, as in a paste: type it alone", ""
        if must_type_name(item, answer):
            if first != item.tool:
                return f"it is destructive: type the tool's name behind it, {item.tool}", ""
            rest = after
        return "", rest.strip()


def item_lines(item: Item, n: int, *, edited: str = "") -> Iterator[str]:
    """The whole item, the identity before the alias, and what to type."""
    yield f"{one_line(item.kind, 20)} {n}: {visible(item.title, keep_newlines=False)}"
    facts = [
        ("tool", item.tool),
        ("alias", item.alias),
        ("package", item.distribution),
        ("effect", (item.effect or "unknown") if item.tool else ""),
        ("why", item.reason),
        ("rule", item.rule),
        ("may decide", who_may(item)),
        ("approved", who_has(item)),
        ("escalated to", item.escalated),
        ("wanted by", item.requested_by),
        ("conversation", item.conversation),
        ("definition", item.definition_hash[:12]),
    ]
    yield from (f"  {k}: {visible(v, keep_newlines=False)}" for k, v in facts if v)
    before = item.arguments if edited else item.before
    now = edited or item.arguments
    if before and before != now:
        for found in differences(before, now):
            path = visible(found.path, keep_newlines=False)
            was = "nothing" if found.before is None else visible(found.before, keep_newlines=False)
            is_now = "nothing" if found.after is None else visible(found.after, keep_newlines=False)
            yield f"  changed: {path} was {was} and is {is_now}"
    if now:
        yield f"  arguments: {visible(now, keep_newlines=False)}"
    for name, values in (("config", item.config), ("injected", item.injected)):
        if values:
            yield f"  {name}: {visible(canonical_json(dict(values)), keep_newlines=False)}"
    for line in item.preview.splitlines():
        yield f"  preview: {visible(line)}"
    if item.due:
        yield f"  due: {visible(item.due)}, then {visible(item.then)}"
    yield f"  digest: {item.digest[:12]}, revision {item.revision}"
    if not answers(item):
        told = unanswerable(item.kind, item.conversation)
        yield f"end of {one_line(item.kind, 20)} {n}; {told}"
        return
    yield f"end of {item.kind} {n}; to answer type " + ", ".join(_ways(item, n, edited))


def _ways(item: Item, n: int, edited: str) -> Iterable[str]:
    for answer in answers(item):
        if answer.asks_rule or answer.is_for_all:
            continue
        name = f" {item.tool}" if must_type_name(item, answer) else ""
        words = {"reason": " WHY", "result": " RESULT"}.get(answer.asks, "")
        yield f"/{WORDS[answer.choice]} {n}{name}{words}"
    if item.kind == "approval" and not edited:
        yield f"/edit {n} JSON"
        yield f"/remember {n} call or tool, TIMES or TIME"
    yield f"/later {n}"
