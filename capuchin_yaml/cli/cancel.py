"""`capuchin cancel`: end the running turn, keep the conversation."""

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
    """Cancel the running turn of a conversation.

    Open calls get results marked cancelled; the conversation can go on. Ends with 1 when no turn
    was running.
    """
    return run_async(_cancel(output(), conversation, as_json))


async def _cancel(out: Output, word: str, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        answer = await conversation.cancel_turn(by=by)
    if as_json:
        out.answer_json(
            {
                "v": 1,
                "conversation": conversation.id,
                "accepted": answer.accepted,
                "turn": answer.turn,
                "by": by,
            }
        )
    elif answer.accepted:
        out.answer(f"cancelled turn {answer.turn} of {conversation.id}")
    if not answer.accepted:
        out.fail(f"no turn is running in {conversation.id}")
        return ExitCode.REFUSED
    return ExitCode.DONE
