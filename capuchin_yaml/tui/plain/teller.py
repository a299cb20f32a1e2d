"""A conversation as lines that are only ever appended: what is new since the last look. No I/O.

Each line says who speaks. A reply is told by whole paragraphs and not by tokens, and a state is
told in words when it changes, so that nothing has to be drawn again.
"""

from __future__ import annotations

from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.bars import short_id
from capuchin_yaml.tui.model.entries import AgentSaid, Entry, Mark, ToolCard, UserSaid
from capuchin_yaml.tui.model.fleet import Link
from capuchin_yaml.tui.model.talk import Talk

_BEFORE = 6
"""So many of the last entries are told when a conversation is opened."""
_CARDS = {
    "running": "is running",
    "ok": "has answered",
    "denied": "was denied",
    "expired": "was not decided in time",
    "cancelled": "was cancelled",
    "error": "failed",
    "unknown": "may or may not have happened",
    "invalid": "was asked for with arguments that do not fit",
    "skipped": "was skipped",
    "approved": "was approved",
}
_STATUSES = {
    "thinking": "The agent is working.",
    "waiting": "The agent waits for a person.",
    "idle": "The agent is done; it is your turn.",
    "blocked": "The conversation cannot go on: its code fails.",
    "closed": "The conversation is closed.",
    "failed": "The conversation has failed.",
}


class Teller:
    """Remembers what was told of one conversation and of the link."""

    def __init__(self, user: str, *, says_states: bool, echoes: bool = False) -> None:
        self._user = user
        self._echoes = echoes
        self._says_states = says_states
        self._talk_id = ""
        self._told = 0
        self._cards: dict[str, str] = {}
        self._reply = ""
        """What of the open reply was told."""
        self._status, self._turn = "", 0
        self._link = ""
        self._hold = ""

    def news(self, talk: Talk) -> list[str]:
        """What is new in the conversation; when it is another one, its last lines first."""
        if talk.id != self._talk_id:
            self._talk_id, self._told, self._reply, self._status = talk.id, -1, "", ""
            self._cards = {}
        if not talk.is_current:
            return []
        lines: list[str] = []
        if self._told < 0:
            self._told = max(len(talk.entries) - _BEFORE, 0)
            name = f"{one_line(talk.agent, 40)} {short_id(talk.id)}"
            lines.append(f"conversation: {name}, {one_line(talk.title, 60) or 'without a title'}")
            if self._told:
                lines.append(f"note: {self._told} earlier entries are not told")
            if talk.is_rehearsal:
                lines.append("note: rehearsal, no real model answers")
            self._cards = {e.call_id: e.state for e in _cards(talk.entries[: self._told])}
        for entry in talk.entries[self._told :]:
            lines += self._entry(entry)
        self._told = len(talk.entries)
        for card in _cards(talk.entries):
            lines += self._card(card)
        lines += self._growing(talk)
        # Why the turn too: it may begin and end between two looks.
        if (talk.status, talk.turn) != (self._status, self._turn):
            self._status, self._turn = talk.status, talk.turn
            if self._says_states and talk.status in _STATUSES:
                lines.append(f"state: {_STATUSES[talk.status]}")
        return lines

    def link(self, link: Link, hold: str) -> list[str]:
        """What is new of the link to the server."""
        lines: list[str] = []
        if link.state == "down" and self._link != "down":
            why = f" ({one_line(link.detail, 160)})" if link.detail else ""
            lines.append(f"connection: the server is away{why}; what you send is held")
        elif link.is_up and self._link == "down":
            lines.append("connection: the server is back; nothing was missed")
        if link.is_up and hold and hold != self._hold:
            lines.append(f"connection: {hold}; messages wait")
        self._link = link.state
        self._hold = hold if link.is_up else self._hold
        return lines

    def _entry(self, entry: Entry) -> list[str]:
        match entry:
            case UserSaid():
                if entry.by == self._user and self._status and not self._echoes:
                    return []  # the person has just typed it
                who = "you" if entry.by == self._user else one_line(entry.by or "user", 40)
                return [_said(who, entry.text)]
            case AgentSaid():
                told, self._reply = self._reply, ""
                rest = entry.text[len(told) :] if told and entry.text.startswith(told) else None
                text = entry.text if rest is None else rest
                cut = " (cut short)" if entry.is_cut else ""
                return [_said("agent", text.strip("\n") + cut)] if text.strip() or cut else []
            case Mark():
                return [f"note: {one_line(entry.text, 400)}"]
            case ToolCard():
                return []

    def _card(self, card: ToolCard) -> list[str]:
        if self._cards.get(card.call_id) == card.state:
            return []
        self._cards[card.call_id] = card.state
        words = _CARDS.get(card.state)
        if words is None:
            return []
        took = f" after {card.duration_s:.1f} s" if card.duration_s is not None else ""
        why = f": {one_line(card.reason, 200)}" if card.reason and card.state != "ok" else ""
        call = f" {one_line(card.arguments, 120)}" if card.state == "running" else ""
        return [f"tool: {one_line(card.identity, 80)}{call} {words}{took}{why}"]

    def _growing(self, talk: Talk) -> list[str]:
        """Whole paragraphs of the reply that is being written."""
        if talk.open_reply is None:
            return []
        text = talk.open_reply.text
        if not text.startswith(self._reply):
            self._reply = ""
        end = text.rfind("\n\n")
        if end <= len(self._reply):
            return []
        new, self._reply = text[len(self._reply) : end], text[: end + 2]
        return [_said("agent", new.strip("\n"))] if new.strip() else []


def _cards(entries: list[Entry]) -> list[ToolCard]:
    return [e for e in entries if isinstance(e, ToolCard)]


def _said(who: str, text: str) -> str:
    """Lines of a speaker; a later line is indented, so it cannot look like another speaker's."""
    return f"{who}: " + "\n  ".join(visible(line) for line in text.split("\n"))
