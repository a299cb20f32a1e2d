"""`capuchin delete`: one conversation's data, for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async

if TYPE_CHECKING:
    from capuchin_yaml.client.conversation import Conversation


@click.command(cls=Verb)
@click.argument("conversation", metavar="ID")
@click.option("--close", "closes", is_flag=True, help="Close it first, if it is open.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")
@options.as_json
def command(conversation: str, closes: bool, yes: bool, as_json: bool) -> ExitCode:
    """Delete a closed conversation with all its runs.

    Its history on the server goes, and the large values in the project's store that no other
    conversation refers to. What its tools wrote, logs and backups are not touched. On a terminal
    the id is asked for; elsewhere --yes is needed.
    """
    return run_async(_delete(output(), conversation, closes, yes, as_json))


async def _delete(out: Output, word: str, closes: bool, yes: bool, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        if not yes and (code := await _unsure(out, conversation)) is not None:
            return code
        out.tell("deleting; the server may take half a minute")
        deleted = await conversation.delete(close_by=asserted_user() if closes else None)
    if as_json:
        out.answer_json(
            {
                "v": 1,
                "conversation": conversation.id,
                "runs": deleted.runs,
                "values": deleted.values,
                "kept": deleted.kept,
            }
        )
    else:
        kept = f"; {deleted.kept} that others refer to stay" if deleted.kept else ""
        out.answer(
            f"deleted {conversation.id}: {deleted.runs} runs, {deleted.values} stored values{kept}"
        )
    return ExitCode.DONE


async def _unsure(out: Output, conversation: Conversation) -> ExitCode | None:
    """Ask for the id; None when it was typed."""
    from capuchin_yaml.cli.decide import typed_word

    if not out.talks_with_person:
        raise click.UsageError(f"nobody can be asked here; --yes deletes {conversation.id}")
    typed = await typed_word(out, f"type {conversation.short_id} to delete it for good: ")
    if typed in (conversation.short_id, conversation.id):
        return None
    out.fail("nothing was deleted")
    return ExitCode.REFUSED
