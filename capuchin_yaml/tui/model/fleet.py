"""All conversations and everything that waits, as the screens show them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from capuchin_yaml.client.answers import Grant
from capuchin_yaml.tui.gateway import AgentCard, Health, InboxRow, TalkRow
from capuchin_yaml.tui.model.settled import Settled, settled
from capuchin_yaml.tui.model.talk import Talk
from capuchin_yaml.tui.model.tokens import TokenCount

ATTENTION = ("waiting", "blocked", "failed", "thinking", "idle", "closed")
"""Statuses in the order in which they want a person."""


@dataclass(frozen=True, slots=True)
class Link:
    """How the TUI stands with the server."""

    state: str = "starting"
    """`starting`, `up` or `down`."""
    detail: str = ""
    attempt: int = 0
    since: float = 0.0
    where: str = ""
    workers: int | None = None

    @property
    def is_up(self) -> bool:
        """Whether requests reach the server."""
        return self.state == "up"

    @property
    def has_worker(self) -> bool:
        """Whether somebody takes up messages; a server that does not say is believed."""
        return self.workers is None or self.workers > 0

    @property
    def hold(self) -> str:
        """Why a message waits instead of going out; empty when it goes out."""
        if self.state == "starting":
            return "still starting"
        if not self.is_up:
            return "the server is away"
        return "" if self.has_worker else "no worker is running"


@dataclass(frozen=True, slots=True)
class KnownUsage:
    """Tokens of a conversation as it told them when its row said `as_of`."""

    as_of: str
    tokens: TokenCount
    model: str


@dataclass(slots=True)
class Fleet:
    """What the polls and watches have told so far."""

    rows: dict[str, TalkRow] = field(default_factory=dict)
    inbox: dict[str, InboxRow] = field(default_factory=dict)
    agents: tuple[AgentCard, ...] = ()
    link: Link = Link()
    talks: dict[str, Talk] = field(default_factory=dict)
    usage: dict[str, KnownUsage] = field(default_factory=dict)
    past: dict[str, tuple[str, tuple[Settled, ...]]] = field(default_factory=dict)
    """Decisions of conversations that are not watched, with what their row said then."""
    grants: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    """What stands allowed beforehand, by conversation, as it was read last."""
    workerless: set[str] = field(default_factory=set)
    """Conversations whose watch found that no worker takes up their work: the server counts a
    worker as there for a minute after its end."""

    @property
    def hold(self) -> str:
        """Why a message waits instead of going out; empty when it goes out."""
        return self.link.hold or ("no worker is running" if self.workerless else "")

    @property
    def has_worker(self) -> bool:
        """Whether somebody takes up messages, as far as is known."""
        return self.link.has_worker and not self.workerless

    def set_rows(self, rows: Iterable[TalkRow]) -> bool:
        """Take a new list; a talk on show that is not in it stays. True if it differs."""
        new = {r.id: r for r in rows}
        for talk in self.talks.values():
            if talk.id not in new and talk.id in self.rows:
                new[talk.id] = self.rows[talk.id]
        changed = new != self.rows
        self.rows = new
        return changed

    def set_inbox(self, rows: Iterable[InboxRow]) -> bool:
        """Take a new inbox. True if it differs from the one before."""
        new = {r.id: r for r in rows}
        changed = new != self.inbox
        self.inbox = new
        return changed

    def note_health(self, health: Health | None, why: str, now: float) -> bool:
        """Take the answer of one heartbeat; None is no answer. True if the link changed."""
        old = self.link
        if health is not None and health.server:
            self.link = Link("up", health.detail, 0, now, health.where, health.workers)
            return (old.state, old.workers) != (self.link.state, self.link.workers)
        where = health.where if health and health.where else old.where
        detail = (health.detail if health else "") or why
        since = old.since if old.state == "down" else now
        self.link = Link("down", detail, old.attempt + 1, since, where, old.workers)
        return True

    def status(self, row: TalkRow) -> str:
        """The newest status known of a row: its watch knows before the list does."""
        talk = self.talks.get(row.id)
        if talk is not None and talk.is_live:
            return talk.status
        return "waiting" if row.waiting and row.status not in ("closed", "failed") else row.status

    def title(self, row: TalkRow) -> str:
        """The title of a row: its watch may know one that the list has not yet."""
        talk = self.talks.get(row.id)
        return row.title or (talk.title if talk is not None else "")

    def ordered(self, needle: str = "") -> list[TalkRow]:
        """The rows that hold `needle` anywhere, those that want a person first."""
        words = needle.lower().split()
        found = [
            r
            for r in self.rows.values()
            if all(w in f"{r.agent} {self.title(r)} {r.id} {self.status(r)}".lower() for w in words)
        ]
        by_time = sorted(found, key=lambda r: r.updated_at or r.created_at, reverse=True)
        return sorted(by_time, key=lambda r: _rank(self.status(r)))

    def waiting(self) -> list[InboxRow]:
        """What waits for a person: the nearest deadline first, then the longest wait."""
        rows = dict(self.inbox)
        for talk in self.talks.values():
            if not talk.is_live:
                continue
            for row in [r for r in rows.values() if r.conversation == talk.id]:
                if row.id not in talk.items:
                    del rows[row.id]
            for item in talk.items.values():
                rows[item.id] = InboxRow(
                    id=item.id,
                    kind=item.kind,
                    conversation=item.conversation,
                    agent=talk.agent,
                    title=item.title,
                    requested_at=item.requested_at,
                    due=item.due,
                    then=item.then,
                    tool=item.tool,
                    alias=item.alias,
                    arguments=item.arguments,
                    digest=item.digest,
                    revision=item.revision,
                )
        return sorted(rows.values(), key=lambda r: (r.due is None, r.due or "", r.requested_at))

    def decided(self) -> list[Settled]:
        """Every decision that is known, the newest first."""
        found: dict[tuple[str, int], Settled] = {}
        for _, decisions in self.past.values():
            found.update({(d.conversation, d.decision.offset): d for d in decisions})
        for talk in self.talks.values():
            for d in settled(talk.id, talk.agent, talk.log):
                found[d.conversation, d.decision.offset] = d
        return sorted(found.values(), key=lambda d: d.decision.time, reverse=True)


def _rank(status: str) -> int:
    return ATTENTION.index(status) if status in ATTENTION else len(ATTENTION)
