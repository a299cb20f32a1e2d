"""`capuchin migrate`: take the agent as it is on disk, from the next turn on."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async

_HASH_SHOWN = 12


@click.command(cls=Verb)
@click.argument("conversation", metavar="ID")
@options.as_json
def command(conversation: str, as_json: bool) -> ExitCode:
    """Move an open conversation to the agent on disk.

    The definition is pinned anew before the next turn; a turn that runs keeps what it began with.
    `show` tells what came of it: a file that cannot be pinned leaves the old definition in force.
    """
    return run_async(_migrate(output(), conversation, as_json))


async def _migrate(out: Output, word: str, as_json: bool) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        answer = await conversation.migrate(by=by)
    if as_json:
        out.answer_json(
            {
                "v": 1,
                "conversation": conversation.id,
                "accepted": True,
                "from": {"version": answer.version, "hash": answer.hash},
                "by": by,
            }
        )
    else:
        until = f"{answer.version} {answer.hash[:_HASH_SHOWN]}".strip() or "none yet"
        out.answer(f"{conversation.id} migrates at its next turn (until then: {until})")
    return ExitCode.DONE
