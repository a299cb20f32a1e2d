"""`capuchin close`: end a conversation for good."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async


@click.command(cls=Verb)
@click.argument("conversation", metavar="ID")
@options.reason
@options.as_json
def command(conversation: str, reason: str, as_json: bool) -> ExitCode:
    """End a conversation for good.

    What waits for a person in it is withdrawn; what it holds stays readable, and `reopen` goes on
    with it.
    """
    return run_async(_close(output(), conversation, reason, as_json))


async def _close(out: Output, word: str, reason: str, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        await conversation.close(by=by, reason=reason)
    if as_json:
        out.answer_json({"v": 1, "conversation": conversation.id, "accepted": True, "by": by})
    else:
        out.answer(f"closed {conversation.id}")
    return ExitCode.DONE
