"""What approvals allowed beforehand: list it and take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capuchin_yaml.cli.output import ExitCode, Ink, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.errors import CapuchinError, RequestRefused
from capuchin_yaml.spec import JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.client.answers import Grant
    from capuchin_yaml.client.conversation import Conversation
    from capuchin_yaml.client.fleet import Capuchin


async def list_grants(out: Output, word: str | None, limit: int, as_json: bool) -> ExitCode:
    """Print the grants of one conversation, or of every open one."""
    from capuchin_yaml.tui.model.remember import grant_text

    async with reached() as (_home, fleet):
        found: list[tuple[str, Grant]] = []
        for conversation in await _conversations(fleet, word, limit):
            try:
                grants = (await conversation.state()).grants
            except CapuchinError as error:
                if word is not None:
                    raise
                out.warn(f"{conversation.short_id} cannot be read: {error}")
                continue
            found += [(conversation.id, grant) for grant in grants]
    if as_json:
        out.answer_json([grant_json(conversation, grant) for conversation, grant in found])
        return ExitCode.DONE
    for _conversation, grant in found:
        out.answer(Ink(grant.id, "bold"), f"  {grant_text(grant)}")
        if grant.arguments:
            out.answer(Ink(f"  {grant.arguments}", "dim"))
        out.answer(Ink(f"  given by {grant.by} at {grant.at}", "dim"))
    if not found:
        out.tell("nothing is allowed beforehand")
    return ExitCode.DONE


async def revoke_grant(out: Output, word: str, as_json: bool) -> ExitCode:
    """Take one grant back; calls that it let through are not undone."""
    from capuchin_yaml.client.identity import asserted_user

    address, _, name = word.partition(":")
    if not name:
        raise RequestRefused(f"{word!r} names no grant; `capuchin inbox grants` lists them")
    async with reached() as (_home, fleet):
        conversation = await fleet.find(address)
        grant = f"{conversation.id}:{name}"
        done = await conversation.revoke(grant, by=asserted_user())
    if as_json:
        out.answer_json({"v": 1, "id": grant, "accepted": done})
    elif done:
        out.answer(f"taken back: {grant}; such calls ask again")
    if not done:
        out.fail(f"there is no grant {grant} any more")
    return ExitCode.DONE if done else ExitCode.REFUSED


def grant_json(conversation: str, grant: Grant) -> dict[str, JsonValue]:
    """One grant in the form of `inbox grants --json`."""
    return {
        "v": 1,
        "id": grant.id,
        "conversation": conversation,
        "scope": grant.scope,
        "tool": grant.tool,
        "arguments": grant.arguments,
        "left": grant.left,
        "until": grant.until,
        "by": grant.by,
        "at": grant.at,
    }


async def _conversations(fleet: Capuchin, word: str | None, limit: int) -> list[Conversation]:
    if word is not None:
        return [await fleet.find(word)]
    rows = await fleet.list(limit)
    return [fleet.conversation(r.id) for r in rows if r.status not in ("closed", "failed")]
