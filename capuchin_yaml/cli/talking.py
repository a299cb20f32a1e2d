"""Say something to an agent or a conversation and wait for what comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capuchin_yaml.cli.agents_file import agent_named, no_such_name, read_agents
from capuchin_yaml.cli.item_text import decide_commands
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.talk_text import REHEARSAL, reply_text
from capuchin_yaml.errors import CapuchinError, ConversationNotFound, RequestRefused
from capuchin_yaml.events import ConversationClosed, Event, TurnEnded, UsageRecorded
from capuchin_yaml.items import Item

if TYPE_CHECKING:
    from capuchin_yaml.client.answers import ConversationState
    from capuchin_yaml.client.conversation import Conversation
    from capuchin_yaml.client.fleet import Capuchin
    from capuchin_yaml.client.home import Home

_LOOK_EVERY_S = 2.0
"""How often a reply that does not come is looked into."""


@dataclass(frozen=True, slots=True)
class Partner:
    """Whom a person talks to: an agent that gets a new conversation, or one that is open."""

    agent: str | None = None
    conversation: Conversation | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a conversation stands after a message."""

    state: ConversationState
    events: tuple[Event, ...]
    """What happened since the message, in order."""

    @property
    def reply(self) -> str:
        """The agent's last words."""
        return reply_text(self.events)

    @property
    def rehearsed(self) -> bool:
        """Whether a stand-in answered because there is no key."""
        return any(isinstance(e, UsageRecorded) and e.model == REHEARSAL for e in self.events)

    @property
    def trouble(self) -> str:
        """Why the newest turn or the conversation did not end well; empty when it did."""
        for event in reversed(self.events):
            if isinstance(event, TurnEnded):
                well = event.outcome == "answered"
                return "" if well else f"the turn ended as {event.outcome}: {event.detail}"
            if isinstance(event, ConversationClosed):
                return f"the conversation is {event.status}: {event.detail or 'it was ended'}"
        return ""

    @property
    def exit_code(self) -> ExitCode:
        """What a script should know of it."""
        if self.state.items or self.state.paused is not None:
            return ExitCode.PERSON_NEEDED
        if self.trouble or self.state.status in ("closed", "failed", "blocked"):
            return ExitCode.REFUSED
        return ExitCode.DONE


async def find_partner(home: Home, fleet: Capuchin, word: str) -> Partner:
    """Read one word as an agent's name or as (the beginning of) a conversation's id.

    Raises:
        RequestRefused: it is neither.
        ConversationNotFound: it is the beginning of several ids.
    """
    agents = read_agents(home)
    if agent_named(agents, word) is not None:
        return Partner(agent=word)
    if not agents and _is_slug(word) and await fleet.list(limit=1, agent=word):
        # Why: on a cluster the agents are only known to its workers; who names one that has
        # conversations wants another, and not one of them.
        return Partner(agent=word)
    try:
        found = await fleet.find(word)
    except ConversationNotFound as error:
        if " could be " in str(error):
            raise
        if not agents and _is_slug(word):
            # Why: workers refuse a wrong name.
            return Partner(agent=word)
        raise no_such_name(agents, word) from error
    if found.agent == word:
        # Why: who names an agent wants a new conversation, not the only one that it has left.
        raise RequestRefused(
            f"no agent {word!r} is served here; its conversation goes on as {found.short_id}"
        )
    return Partner(conversation=found)


def checked_values(
    home: Home, agent: str, variables: Mapping[str, str], injected: Mapping[str, str]
) -> tuple[dict[str, object], dict[str, object]]:
    """The values a new conversation starts with, converted where the agent's form is known.

    Raises:
        RequestRefused: one is missing, unknown or of the wrong type; all are named.
    """
    served = agent_named(read_agents(home), agent)
    if served is None:
        return dict(variables), dict(injected)
    from capuchin_yaml.compiler.given import check_injected, check_variables

    spec = served.spec()
    return check_variables(spec, variables), check_injected(spec, injected)


def checked_text(text: str) -> str:
    """A message that may be sent.

    Raises:
        RequestRefused: it is blank or not UTF-8.
    """
    if not text.strip():
        raise RequestRefused("the message is blank; nothing was sent")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestRefused("the message is not UTF-8; nothing was sent") from None
    return text


async def settled(out: Output, conversation: Conversation) -> ConversationState:
    """The state once nothing goes on without a person; stderr says what a provider holds up.

    Raises:
        WorkerUnavailable, ConversationNotFound, ServerUnavailable: as the names say.
    """
    waiting, told = asyncio.ensure_future(conversation.settle()), 0
    try:
        while not (await asyncio.wait({waiting}, timeout=_LOOK_EVERY_S))[0]:
            with contextlib.suppress(CapuchinError):
                partial = await conversation.partial()
                if partial is not None and partial.held_up and partial.attempt != told:
                    told = partial.attempt
                    out.tell(f"the model cannot answer now; {partial.held_up}")
        return waiting.result()
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def tell_person_needed(out: Output, items: Sequence[Item]) -> None:
    """One line on stderr for each item: which tool, and what to type."""
    for item in items:
        what = item.tool or item.title
        commands = decide_commands(item)
        typed = commands[0] if commands else f"capuchin inbox show {item.id}"
        match item.kind:
            case "approval":
                said = f"{what} waits for approval"
            case "outcome":
                said = f"it is not known whether {what} happened"
            case "limit":
                said = item.title
            case _:
                said = f"{what} waits for an answer"
        out.tell(f"a person is needed: {said}; look: capuchin inbox show {item.id}; then: {typed}")


def tell_paused(out: Output, state: ConversationState) -> None:
    """One line on stderr when the message waits because the agent is paused."""
    if state.paused is not None:
        out.tell(
            f"a person is needed: {state.detail}; the message waits until: "
            f"capuchin pause {state.agent} --resume"
        )


def tell_rehearsal(out: Output) -> None:
    """Mark a reply that no model wrote."""
    out.tell("rehearsal: no model was asked; capuchin doctor says what is missing for one")


def _is_slug(word: str) -> bool:
    letters = word.replace("-", "").replace("_", "")
    return letters.isalnum() and word.isascii() and word == word.lower()
