"""`capuchin inbox edit`: other arguments for a call that waits, seen before it runs."""

from __future__ import annotations

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.changed_call import (
    Change,
    changed_arguments,
    given_text,
    tell_change,
    written_text,
)
from capuchin_yaml.cli.decide import decide, find_item, typed_word
from capuchin_yaml.cli.item_options import digest, item
from capuchin_yaml.cli.item_text import print_item
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.verb import Verb, output, run_async


@click.command("edit", cls=Verb)
@item
@digest
@click.option(
    "--args",
    "given",
    type=options.words,
    metavar="JSON|@FILE",
    help="The arguments that shall run; without it $EDITOR opens.",
)
@click.option("-y", "--yes", is_flag=True, help="Approve the changed call without asking.")
@options.reason
@options.as_json
def edit_command(
    item: str, digest: str | None, given: str | None, yes: bool, reason: str, as_json: bool
) -> ExitCode:
    """Change the arguments of one call, see the difference, and let it run.

    What differs and all that would run is shown first, and the word approve is asked for. Where no
    terminal is, --args, --digest and --yes are needed.
    """
    out = output()
    if not out.talks_with_person:
        missing = [
            name
            for name, value in (("--args JSON", given), ("--digest D", digest), ("--yes", yes))
            if not value
        ]
        if missing:
            raise click.UsageError(
                f"edit needs {', '.join(missing)} where no terminal is; "
                f"type: capuchin inbox show {item}"
            )
    text = None if given is None else given_text(given)
    return run_async(_edit(out, item, digest, text, yes, reason, as_json))


async def _edit(
    out: Output,
    word: str,
    digest: str | None,
    text: str | None,
    yes: bool,
    reason: str,
    as_json: bool,
) -> ExitCode:
    async with reached() as (_home, fleet):
        found = await find_item(fleet, word, digest)
        change = Change()
        if found.decided is None:
            written = written_text(found.item) if text is None else text
            change = Change(await changed_arguments(found.conversation, found.item, written))
            if not yes:
                print_item(out, found.item, to_stderr=True)
            tell_change(out, found.item, change)
            if not yes and await typed_word(out, "type approve to run this: ") != "approve":
                out.fail("nothing was decided")
                return ExitCode.REFUSED
        return await decide(out, found, "edit", reason=reason, change=change, as_json=as_json)
