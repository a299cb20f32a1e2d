"""`capuchin reopen`: go on with a closed conversation, under its id and with its history."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async


@click.command(cls=Verb)
@click.argument("conversation", metavar="ID")
@options.as_json
def command(conversation: str, as_json: bool) -> ExitCode:
    """Open a closed conversation again.

    It keeps its id, its history and its pinned definition (`migrate` changes that). What waited
    for a person when it was closed stays withdrawn, and grants given in it are gone.
    """
    return run_async(_reopen(output(), conversation, as_json))


async def _reopen(out: Output, word: str, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        await conversation.reopen(by=by)
        state = await conversation.state()
    if as_json:
        out.answer_json({"v": 1, "conversation": conversation.id, "status": state.status, "by": by})
    else:
        out.answer(f"opened {conversation.id} again; capuchin chat {conversation.short_id}")
    return ExitCode.DONE
