"""Messages on their way: nothing a person wrote is dropped, and none is sent twice. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

PendingState: TypeAlias = Literal["sending", "held", "unsent", "taken"]
"""`held` goes out by itself when server and worker are back; `unsent` waits for its writer;
`taken` was acknowledged and only waits to be seen in the log."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One message that the log does not show yet."""

    id: str
    conversation: str
    text: str
    state: PendingState
    why: str = ""


def refusal(text: str) -> str | None:
    """Why a draft cannot be sent as it is; None when it can. Blank text is no message."""
    from capuchin_yaml.engine.contract import MAX_MESSAGE_BYTES

    if not text.strip():
        return "nothing to send"
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_MESSAGE_BYTES:
        return (
            f"too long: {size / 1024:,.0f} KB, a message holds at most "
            f"{MAX_MESSAGE_BYTES // 1024} KB; it stays here, nothing is lost"
        )
    return None


@dataclass(slots=True)
class Outbox:
    """Messages of all conversations, in the order they were written."""

    pending: list[Pending] = field(default_factory=list)
    _taken_back: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, message_id: str, conversation: str, text: str, *, hold: str = "") -> Pending:
        """Take a message; with a reason in `hold` it waits instead of going out."""
        entry = Pending(message_id, conversation, text, "held" if hold else "sending", hold)
        self.pending.append(entry)
        return entry

    def of(self, conversation: str) -> list[Pending]:
        """What the log of a conversation does not show yet."""
        return [p for p in self.pending if p.conversation == conversation]

    def set(self, message_id: str, state: PendingState, why: str = "") -> None:
        """A message stands otherwise now."""
        self.pending = [
            replace(p, state=state, why=why) if p.id == message_id else p for p in self.pending
        ]

    def seen(self, message_id: str) -> None:
        """The log shows a message, so it is no longer on its way."""
        self.pending = [p for p in self.pending if p.id != message_id]

    def release(self) -> list[Pending]:
        """Let every held message go out, oldest first; they are `sending` from now on."""
        held = [p for p in self.pending if p.state == "held"]
        for entry in held:
            self.set(entry.id, "sending")
        return held

    def take_back(self, conversation: str) -> Pending | None:
        """Remove and return the newest message that has certainly not gone out."""
        for entry in reversed(self.pending):
            if entry.conversation == conversation and entry.state in ("held", "unsent"):
                self.seen(entry.id)
                self._taken_back[conversation, entry.text] = entry.id
                return entry
        return None

    def id_again(self, conversation: str, text: str) -> str | None:
        """The id of a message that was taken back and is sent again unchanged.

        With its old id it stays one message, even if the first try did arrive after all.
        """
        return self._taken_back.pop((conversation, text), None)
