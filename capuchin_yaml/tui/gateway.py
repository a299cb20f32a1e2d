"""What the TUI needs of the world: one Protocol, and the plain data that crosses it.

The real gateway is `live.LiveGateway` over the client; tests bring a scripted, clock-controlled
one. Of the client only its plain answers are imported, so that the first frame is painted before
the rest of it is loaded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from capuchin_yaml.client.answers import Grant
from capuchin_yaml.events import Choice, Event
from capuchin_yaml.items import Item
from capuchin_yaml.messages import Usage
from capuchin_yaml.spec import JsonValue, VariableSpec


@dataclass(frozen=True, slots=True)
class AgentCard:
    """One agent that a person can start a talk with."""

    name: str
    version: str = ""
    description: str = ""
    model: str = ""
    policy: str = ""
    """The sentence that says what asks and what runs."""
    variables: Mapping[str, VariableSpec] = field(default_factory=dict)
    injected: tuple[str, ...] = ()
    problem: str = ""
    """What is wrong with its file, such as `agents/x.yaml:4:3: …`; empty when all is well."""
    is_served: bool = True
    """Whether it can be started; with a problem, it is the last good file that is."""

    @property
    def asks_first(self) -> bool:
        """Whether a form must be filled before a talk can start."""
        return bool(self.injected) or any(v.required for v in self.variables.values())


@dataclass(frozen=True, slots=True)
class TalkRow:
    """One conversation as lists show it."""

    id: str
    agent: str
    status: str
    waiting: int = 0
    title: str = ""
    updated_at: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One waiting item as the inbox lists it; the arguments may be cut."""

    id: str
    kind: str
    conversation: str
    agent: str
    title: str
    requested_at: str
    due: str | None
    then: str
    tool: str = ""
    alias: str = ""
    arguments: str = ""
    digest: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Queued:
    """A message that the conversation has taken and will answer later."""

    id: str
    text: str
    by: str


@dataclass(frozen=True, slots=True)
class TalkState:
    """A conversation as its workflow tells it."""

    id: str
    agent: str
    status: str
    title: str = ""
    items: tuple[Item, ...] = ()
    grants: tuple[Grant, ...] = ()
    queued: tuple[Queued, ...] = ()
    version: str = ""
    definition_hash: str = ""
    model: str = ""
    detail: str = ""
    events: int = 0
    """Events in its log when it told this."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of all its model calls."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The newest end of a reply that is still being written."""

    attempt: int
    """A higher attempt starts the text anew."""
    offset: int
    """Where `tail` begins in the whole reply, in code points."""
    tail: str
    held_up: str = ""
    """Why the model is not writing now, and when it is asked again."""


Cause: TypeAlias = Literal["server", "worker", "code"]


@dataclass(frozen=True, slots=True)
class Broken:
    """The watch waits for something that is away; it goes on by itself when it is back."""

    reason: str
    cause: Cause = "server"
    """`code`: the conversation's own code fails on the installed release."""


@dataclass(frozen=True, slots=True)
class Mended:
    """The watch found its server again; nothing was missed."""


Pulse: TypeAlias = Event | Partial | Broken | Mended
"""What a watched conversation sends."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The conversation took a message."""

    turn: int | None
    queued: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """How an item stands after a decision was offered."""

    accepted: bool
    """False: it was decided before, as the other fields say."""
    choice: str
    by: str
    at: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the server answers and workers listen."""

    server: bool
    workers: int | None = None
    """None when the server does not say."""
    detail: str = ""
    where: str = ""
    """The server's address, for the banner."""


class Gateway(Protocol):
    """Everything the TUI asks of conversations. Errors are the nouns of `capuchin_yaml.errors`."""

    @property
    def project(self) -> str:
        """The project whose conversations these are."""

    @property
    def user(self) -> str:
        """The name that decisions are made under, as asserted."""

    @property
    def rings(self) -> bool:
        """Whether the bell rings for what waits even while somebody looks at the terminal."""

    async def agents(self) -> tuple[AgentCard, ...]:
        """The agents that can be started."""

    async def list(self) -> tuple[TalkRow, ...]:
        """The newest conversations; works without a worker."""

    async def inbox(self) -> tuple[InboxRow, ...]:
        """Every waiting item; works without a worker."""

    async def state(self, conversation: str) -> TalkState:
        """One conversation, read from its workflow."""

    async def events(self, conversation: str, since: int, until: int) -> tuple[Event, ...]:
        """Events from offset `since` up to `until` (excluded), as far as they are kept."""

    def watch(self, conversation: str, since: int) -> AsyncIterator[Pulse]:
        """Events from offset `since` on, and partial replies, until the conversation ends."""

    async def start(
        self,
        agent: str,
        variables: Mapping[str, JsonValue],
        injected: Mapping[str, JsonValue],
        text: str | None = None,
    ) -> str:
        """Open a conversation and return its id."""

    async def send(self, conversation: str, text: str, message_id: str) -> Sent:
        """Say something; a repeat with the same id is the same message."""

    async def decide(
        self,
        item: Item,
        choice: Choice,
        reason: str = "",
        result: str = "",
        *,
        arguments: str = "",
        grant: Mapping[str, JsonValue] | None = None,
    ) -> Decided:
        """Answer exactly this revision of an item; see `Conversation.decide` of the client."""

    async def schemas(self, conversation: str) -> Mapping[str, Mapping[str, JsonValue]]:
        """The JSON Schema of each tool's arguments, by identity, as the talk pinned them."""

    async def revoke(self, conversation: str, grant: str) -> bool:
        """Take back what an approval allowed beforehand; False when there is none."""

    async def claim(self, item: Item) -> bool:
        """Say to others that one looks at an item; False when it waits no more."""

    async def reopen(self, conversation: str) -> None:
        """Open a closed conversation again."""

    async def rename(self, conversation: str, title: str) -> str:
        """Give a conversation a title, and return it as it is kept."""

    async def cancel_turn(self, conversation: str) -> bool:
        """End the running turn; False when none was running."""

    async def close_talk(self, conversation: str, reason: str = "") -> None:
        """End a conversation for good."""

    async def health(self) -> Health:
        """Ask the server once, without waiting for it to come back."""

    async def aclose(self) -> None:
        """Let go of the server."""
