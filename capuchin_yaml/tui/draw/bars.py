"""The lines around the panes: top bar, banner, queue, strip, status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.clock import since, span
from capuchin_yaml.tui.draw.rows import Piece, Row, row, spread

if TYPE_CHECKING:
    from capuchin_yaml.tui.gateway import InboxRow, Queued, TalkRow
    from capuchin_yaml.tui.model.fleet import Fleet
    from capuchin_yaml.tui.model.outbox import Pending
    from capuchin_yaml.tui.model.talk import Talk
    from capuchin_yaml.tui.presence import Other

STATUSES = {
    "waiting": ("▲", "needs you", "warn"),
    "blocked": ("■", "blocked", "bad"),
    "failed": ("✖", "failed", "bad"),
    "thinking": ("●", "thinking", "accent"),
    "idle": ("○", "idle", "muted"),
    "closed": ("·", "closed", "muted"),
}
"""Glyph, word and role of each status: never the colour alone."""


def short_id(conversation: str) -> str:
    """The end of an id, as people read it; ids are `<project>-<agent>-<random>`."""
    return "#" + one_line(conversation, 200).rsplit("-", 1)[-1][:8]


def top_row(talk: Talk | None, fleet: Fleet | None, waiting: int, project: str, width: int) -> Row:
    """Where one is, how the link stands, and how many things wait; no fleet before the start."""
    left = [Piece("capuchin", "strong")]
    if talk is not None:
        left += [Piece(" ▸ ", "muted"), Piece(one_line(talk.agent or "?", 40), "agent")]
        left += [Piece(f" {short_id(talk.id)}", "muted")]
        if talk.is_rehearsal:
            left += [Piece("  REHEARSAL: no real model", "warn")]
        if width >= 80:
            left += [Piece(f"  {one_line(talk.title, 60)}", "muted")]
    elif project:
        left += [Piece(" ▸ ", "muted"), Piece(one_line(project, 40))]
    right: list[Piece] = []
    if width >= 60:
        link = fleet.link if fleet is not None else None
        is_up = link is not None and link.is_up
        right += _lamp("server", is_up, link is None or link.state == "starting")
        if fleet is not None and is_up:
            right += _lamp("worker", fleet.has_worker, False)
    if waiting:
        right.append(Piece(f"▲ {waiting} waiting (F2)", "warn"))
    elif width >= 100:
        right.append(Piece("nothing waits", "muted"))
    return spread(left, right, width)


def banner_rows(fleet: Fleet | None, now: float, starting_s: float) -> list[Row]:
    """What is wrong with the link, in words; nothing when all is well."""
    if fleet is None or (link := fleet.link).state == "starting":
        return [row(f"starting… {starting_s:.0f} s", "muted")]
    if not link.is_up:
        detail = f": {one_line(link.detail, 120)}" if link.detail else ""
        head = f"✖ server away {span(now - link.since)} · trying again, attempt {link.attempt}"
        return [
            row(f"{head}{detail}", "bad"),
            row("  what you see is as it was; what you send is held and goes out then", "muted"),
        ]
    if not fleet.has_worker:
        text = "▲ no worker is running: messages wait; start one with `capuchin up` or `worker`"
        return [row(text, "warn")]
    return []


def others_rows(others: Sequence[Other]) -> list[Row]:
    """Who else has this project open, and what comes of it here; nothing when nobody has."""
    if not others:
        return []
    first = others[0]
    where = one_line(first.terminal, 20) or "another terminal"
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    who = one_line(first.user, 40)
    text = f"· also open in {where}{more} ({who}); what is decided there shows up here at once"
    return [row(text, "muted")]


def queue_rows(queued: Sequence[Queued], pending: Sequence[Pending]) -> list[Row]:
    """Messages that the transcript does not show yet."""
    out: list[Row] = [
        (Piece("⧗ queued  ", "muted"), Piece(one_line(q.text, 300), "muted")) for q in queued
    ]
    known = {q.id for q in queued}
    for entry in pending:
        if entry.id in known:
            continue
        text = Piece(one_line(entry.text, 300), "muted")
        match entry.state:
            case "sending" | "taken":
                out.append((Piece("… sending  ", "muted"), text))
            case "held":
                held = f"⧗ held: {one_line(entry.why, 60)} (alt+up takes back)  "
                out.append((Piece(held, "warn"), text))
            case "unsent":
                why = f"✖ not sent: {one_line(entry.why, 120)} (alt+up takes back)  "
                out.append((Piece(why, "bad"), text))
    return out


def strip_rows(waiting: Sequence[InboxRow], talk: Talk | None, now: datetime) -> list[Row]:
    """One line about what waits, this talk's first; it never takes the focus."""
    mine = [r for r in waiting if talk is not None and r.conversation == talk.id]
    if mine:
        first = mine[0]
        what = one_line(first.tool or first.title, 60)
        more = f" and {len(mine) - 1} more" if len(mine) > 1 else ""
        age = since(first.requested_at, now)
        text = f"▲ {what}{more} waits for a person {age} · F2 reviews it"
        return [row(text, "warn")]
    return []


def status_row(talk: Talk | None, notice: Row, width: int, keys: str) -> Row:
    """The last line: a notice while there is one, else model, tokens and keys."""
    if notice:
        return notice
    left: list[Piece] = []
    if talk is not None:
        glyph, word, role = STATUSES.get(talk.status, ("?", talk.status, "muted"))
        left.append(Piece(f"{glyph} {one_line(word, 20)}", role))
        parts = [one_line(talk.model, 40)] if talk.model else []
        if talk.usage.total:
            parts.append(f"{talk.usage.total:,} tokens")
        if talk.turn:
            parts.append(f"turn {talk.turn}")
        if talk.detail:
            parts.append(one_line(talk.detail, 120))
        if parts:
            left.append(Piece("  " + " · ".join(parts), "muted"))
    return spread(left, (Piece(keys, "muted"),), width)


def talk_rows(row_: TalkRow, status: str, title: str, width: int, now: datetime) -> list[Row]:
    """A conversation as two rows of the list."""
    glyph, word, role = STATUSES.get(status, ("?", status, "muted"))
    age = since(row_.updated_at or row_.created_at, now)
    head = (Piece(f"{glyph} ", role), Piece(one_line(row_.agent, 40), "strong"))
    name = one_line(title, 120) or short_id(row_.id)
    return [
        spread((*head, Piece(f" {word}", role)), (Piece(age, "muted"),), width),
        (Piece(f"  {name}", "muted"),),
    ]


def _lamp(name: str, is_on: bool, is_starting: bool) -> list[Piece]:
    if is_starting:
        return [Piece(f"○ {name}  ", "muted")]
    return [Piece(f"● {name}  ", "ok") if is_on else Piece(f"✖ no {name}  ", "bad")]
