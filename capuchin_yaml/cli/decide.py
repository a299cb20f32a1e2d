"""Answer one item: find it, bind the decision to what was shown, and say how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capuchin_yaml.cli.changed_call import NO_CHANGE, Change
from capuchin_yaml.cli.item_text import DIGEST_SHOWN
from capuchin_yaml.cli.line_input import Lines
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.events import Choice, Event, ItemDecided, ItemOpened
from capuchin_yaml.items import CHOICES, Item, item_from_json, unanswerable

if TYPE_CHECKING:
    from capuchin_yaml.client.conversation import Conversation
    from capuchin_yaml.client.fleet import Capuchin


@dataclass(frozen=True, slots=True)
class Found:
    """One item where it lives."""

    conversation: Conversation
    agent: str
    item: Item
    decided: ItemDecided | None = None
    """How it was settled; None while it waits."""


async def find_item(fleet: Capuchin, word: str, digest: str | None = None) -> Found:
    """The item that `word` means: its id, with any beginning of the conversation's, or that alone.

    An item that was decided before is found too, by its id. With a digest it must still be what
    the person saw.

    Raises:
        ConversationNotFound: there is no such conversation.
        RequestRefused: there is no such item, several wait and none is named, or it changed.
    """
    found = await _find(fleet, word)
    if digest is not None and not found.item.digest.startswith(digest):
        item = found.item
        raise RequestRefused(
            f"{item.id} is not what --digest {digest} names (it is revision {item.revision}, "
            f"{item.digest[:DIGEST_SHOWN]}); look at it again: capuchin inbox show {item.id}"
        )
    return found


async def _find(fleet: Capuchin, word: str) -> Found:
    address, _, name = word.partition(":")
    conversation = await fleet.find(address)
    state = await conversation.state()
    whole = f"{conversation.id}:{name}"
    found = [item for item in state.items if item.id == whole] if name else list(state.items)
    if len(found) == 1:
        return Found(conversation, state.agent, found[0])
    if name and (past := _past_item(await conversation.events(), whole)) is not None:
        return Found(conversation, state.agent, *past)
    waiting = ", ".join(item.id for item in state.items) or "nothing"
    if name:
        raise RequestRefused(f"there is no item {whole}; in this conversation waits: {waiting}")
    if not found:
        raise RequestRefused(f"nothing waits in {conversation.id}")
    raise RequestRefused(f"several items wait in {conversation.id}; name one: {waiting}")


def _past_item(events: Sequence[Event], item_id: str) -> tuple[Item, ItemDecided] | None:
    opened: Item | None = None
    decided: ItemDecided | None = None
    for event in events:
        if isinstance(event, ItemOpened) and event.item.get("id") == item_id:
            opened = item_from_json(event.item)
        elif isinstance(event, ItemDecided) and event.item_id == item_id:
            decided = event
    return None if opened is None or decided is None else (opened, decided)


async def typed_word(out: Output, prompt: str, lines: Lines | None = None) -> str:
    """What a person types on the terminal; what was typed before the question does not count."""
    lines = lines or Lines()
    lines.forget()
    out.ask(prompt)
    line = await lines.next_line()
    return "" if line is None else line.strip()


async def decide(
    out: Output,
    found: Found,
    choice: Choice,
    *,
    reason: str = "",
    result: str = "",
    change: Change = NO_CHANGE,
    as_json: bool = False,
) -> ExitCode:
    """Send one decision and say how the item stands; a decision made before is told, not undone."""
    from capuchin_yaml.client.identity import asserted_user

    item = found.item
    choices = CHOICES.get(item.kind, ())
    if not choices:
        raise RequestRefused(unanswerable(item.kind, item.conversation))
    if choice not in choices:
        fitting = ", ".join(choices)
        raise RequestRefused(f"{item.id} is an item of kind {item.kind}; answer it with: {fitting}")
    answer = await found.conversation.decide(
        item.id,
        digest=item.digest,
        choice=choice,
        by=asserted_user(),
        reason=reason,
        result=result,
        arguments=change.arguments,
        grant=change.grant,
    )
    if as_json:
        out.answer_json(
            {
                "v": 1,
                "id": item.id,
                "decision": answer.choice,
                "by": answer.by,
                "at": answer.at,
                "accepted": answer.accepted,
                "reason": answer.reason,
                "proven": answer.proven,
                "votes": answer.votes,
                "quorum": answer.quorum,
            }
        )
    elif answer.accepted:
        proof = "" if answer.proven else " (not proven)"
        out.answer(f"{answer.choice}: {item.tool or item.title} ({item.id}), by {answer.by}{proof}")
        if answer.quorum:
            left = answer.quorum - answer.votes
            out.answer(f"{answer.votes} of {answer.quorum} approved; {left} more needed")
    if answer.accepted:
        return ExitCode.DONE
    out.fail(already_decided(item, answer.choice, answer.by, answer.at, answer.reason))
    return ExitCode.REFUSED


def already_decided(item: Item, choice: str, by: str, at: str, reason: str) -> str:
    """How an item was settled before this decision came."""
    if choice == "expired":
        return f"{item.id} expired at {at}: nobody decided in time"
    if choice == "withdrawn":
        return f"{item.id} was withdrawn at {at}: its turn or conversation ended"
    because = f" ({reason})" if reason else ""
    return f"{item.id} was decided before: {choice} by {by} at {at}{because}"
