"""`capuchin rename`: give a conversation a title."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.terminal_text import one_line


@click.command(cls=Verb)
@click.argument("conversation", metavar="ID")
@click.argument("title")
@options.as_json
def command(conversation: str, title: str, as_json: bool) -> ExitCode:
    """Give a conversation a title.

    Lists show it in place of the words of the first message. It is one line of at most 240 bytes,
    and stays when the conversation is closed and opened again.
    """
    return run_async(_rename(output(), conversation, title, as_json))


async def _rename(out: Output, word: str, title: str, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        kept = await conversation.rename(title, by=by)
    if as_json:
        told = {"v": 1, "conversation": conversation.id, "title": kept, "by": by}
        out.answer_json(told)
    else:
        out.answer(f"{conversation.id} is called {one_line(kept, 240)!r}")
    return ExitCode.DONE
