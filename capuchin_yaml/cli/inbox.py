"""`capuchin inbox`: everything that waits for a person, from any terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.bell import wants_bell
from capuchin_yaml.cli.changed_call import (
    Change,
    changed_arguments,
    given_text,
    tell_change,
    wanted_grant,
    written_text,
)
from capuchin_yaml.cli.clock import distance
from capuchin_yaml.cli.decide import (
    decide,
    find_item,
    typed_word,
)
from capuchin_yaml.cli.durations import DURATION
from capuchin_yaml.cli.edit import edit_command
from capuchin_yaml.cli.floor_text import tell_floor
from capuchin_yaml.cli.grants import list_grants, revoke_grant
from capuchin_yaml.cli.item_options import digest, item
from capuchin_yaml.cli.item_text import arguments_json, item_json, print_item
from capuchin_yaml.cli.output import ExitCode, Ink, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.talk_text import decision_text
from capuchin_yaml.cli.verb import VerbGroup, output, run_async, while_read
from capuchin_yaml.events import Choice, to_json
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line

if TYPE_CHECKING:
    from capuchin_yaml.client.answers import InboxRow

WATCH_S = 1.0
"""Pause between two looks at the server's list."""
ANSWERS: tuple[Choice, ...] = ("happened", "rerun", "failed", "go_on", "stop")
_BARE = ["list"]


class _Inbox(VerbGroup):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the bare `inbox`, also with options only, as `inbox list`."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = _BARE + args
        return super().parse_args(ctx, args)


@click.group(cls=_Inbox, invoke_without_command=False)
def command() -> None:
    """See and decide what waits for a person.

    Alone it lists. ID is an item's id as listed, the beginning of one, or a conversation in which
    one item waits.
    """


@command.command("list")
@options.limit(200)
@options.as_json
def list_command(limit: int, as_json: bool) -> ExitCode:
    """List every waiting item, the most urgent first; works without a worker."""
    return run_async(_list(output(), limit, as_json))


async def _list(out: Output, limit: int, as_json: bool) -> ExitCode:
    async with reached() as (_home, fleet):
        rows = await fleet.inbox(limit=limit)
    if as_json:
        out.answer_json([row_json(row) for row in rows])
        return ExitCode.DONE
    for row in rows:
        _print_row(out, row)
        if out.reader_gone:
            break
    if not rows:
        out.tell("nothing waits for a person")
    tell_floor(out)
    return ExitCode.DONE


@command.command("show")
@item
@options.as_json
def show_command(item: str, as_json: bool) -> ExitCode:
    """Show one item whole, and what to type to decide it."""
    return run_async(_show(output(), item, as_json))


async def _show(out: Output, word: str, as_json: bool) -> ExitCode:
    async with reached() as (_home, fleet):
        found = await find_item(fleet, word)
    decided = found.decided
    if as_json:
        how = None if decided is None else to_json(decided)
        out.answer_json({**item_json(found.item), "agent": found.agent, "decided": how})
    else:
        print_item(out, found.item, how_decided="" if decided is None else decision_text(decided))
    return ExitCode.DONE


@command.command("approve")
@item
@digest
@options.reason
@click.option(
    "--args",
    "given",
    type=options.words,
    metavar="JSON|@FILE",
    help="Run it with these arguments instead.",
)
@click.option("--edit", is_flag=True, help="Change the arguments in $EDITOR first.")
@click.option(
    "--remember",
    "scope",
    type=click.Choice(("call", "tool")),
    help="Allow this very call, or every call of the tool, beforehand in this conversation.",
)
@click.option("--times", type=click.IntRange(1, 1000), metavar="N", help="So many times more.")
@click.option("--for", "lasting_s", type=DURATION, metavar="TIME", help="For so long.")
@options.as_json
def approve_command(
    item: str,
    digest: str | None,
    reason: str,
    given: str | None,
    edit: bool,
    scope: str | None,
    times: int | None,
    lasting_s: float | None,
    as_json: bool,
) -> ExitCode:
    """Let one call run, as it is or with other arguments.

    Without --digest the item is shown whole on a terminal, with what you changed, and the word
    approve is asked for. --remember needs --times or --for: what is allowed beforehand ends.
    """
    if edit and given is not None:
        raise click.UsageError("--edit and --args say the same thing twice; take one")
    if scope is not None and (edit or given is not None):
        raise click.UsageError("--remember goes with the call as the model wrote it")
    if edit and not output().talks_with_person:
        raise click.UsageError("--edit needs a terminal; use --args")
    rule = wanted_grant(scope, times, lasting_s)
    text = None if given is None else given_text(given)
    wish = _Wish(text, edit, None if rule is None else rule.to_json())
    return _decide_approval("approve", item, digest, reason, as_json, wish)


@command.command("deny")
@item
@digest
@options.reason
@options.as_json
def deny_command(item: str, digest: str | None, reason: str, as_json: bool) -> ExitCode:
    """Refuse one call; the agent reads the reason and goes on.

    Without --digest the item is shown whole on a terminal and the word deny is asked for.
    """
    return _decide_approval("deny", item, digest, reason, as_json)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What shall go with an approve, as asked for."""

    text: str | None = None
    edit: bool = False
    grant: Mapping[str, JsonValue] | None = None


def _decide_approval(
    choice: Choice,
    word: str,
    digest: str | None,
    reason: str,
    as_json: bool,
    wish: _Wish = _Wish(),  # it is frozen
) -> ExitCode:
    out = output()
    if digest is None and not out.talks_with_person:
        raise click.UsageError(
            f"{choice} needs --digest D where no terminal is; type: capuchin inbox show {word}"
        )
    return run_async(_settle_approval(out, choice, word, digest, reason, as_json, wish))


async def _settle_approval(
    out: Output,
    choice: Choice,
    word: str,
    digest: str | None,
    reason: str,
    as_json: bool,
    wish: _Wish,
) -> ExitCode:
    async with reached() as (_home, fleet):
        found = await find_item(fleet, word, digest)
        change = Change(grant=wish.grant)
        if found.decided is None and (wish.edit or wish.text is not None):
            text = written_text(found.item) if wish.text is None else wish.text
            change = Change(await changed_arguments(found.conversation, found.item, text))
        if digest is None and found.decided is None:
            print_item(out, found.item, to_stderr=True)
            tell_change(out, found.item, change)
            if await typed_word(out, f"type {choice} to {choice} this: ") != choice:
                out.fail("nothing was decided")
                return ExitCode.REFUSED
        final: Choice = "edit" if change.arguments else choice
        return await decide(out, found, final, reason=reason, change=change, as_json=as_json)


command.add_command(edit_command)


@command.command("grants")
@click.argument("conversation", required=False, metavar="[CONVERSATION]")
@options.limit(50)
@options.as_json
def grants_command(conversation: str | None, limit: int, as_json: bool) -> ExitCode:
    """List what is allowed beforehand, in one conversation or in every open one."""
    return run_async(list_grants(output(), conversation, limit, as_json))


@command.command("revoke")
@click.argument("grant", metavar="GRANT")
@options.as_json
def revoke_command(grant: str, as_json: bool) -> ExitCode:
    """Take back what was allowed beforehand; calls that ran by it are not undone."""
    return run_async(revoke_grant(output(), grant, as_json))


@command.command("answer")
@item
@click.argument("choice", type=click.Choice(ANSWERS), metavar="|".join(ANSWERS))
@digest
@click.option(
    "--result",
    type=options.words,
    default="",
    metavar="TEXT",
    help="What the tool would have answered.",
)
@options.reason
@options.as_json
def answer_command(
    item: str, choice: Choice, digest: str | None, result: str, reason: str, as_json: bool
) -> ExitCode:
    """Answer an unknown outcome or a limit.

    happened: it was done (give what it answered with --result); rerun: it was not, run it again;
    failed: treat it as failed; go_on: past the limit; stop: end the turn here.
    """
    if result and choice != "happened":
        raise click.UsageError("--result goes with happened only")
    return run_async(_answer(output(), item, choice, digest, result, reason, as_json))


async def _answer(
    out: Output,
    word: str,
    choice: Choice,
    digest: str | None,
    result: str,
    reason: str,
    as_json: bool,
) -> ExitCode:
    async with reached() as (_home, fleet):
        found = await find_item(fleet, word, digest)
        return await decide(out, found, choice, reason=reason, result=result, as_json=as_json)


@command.command("watch")
@options.as_json
def watch_command(as_json: bool) -> ExitCode:
    """Say each item as it appears and as it is gone, until Ctrl-C.

    With --json each change is one line: {"v", "change": "opened" or "gone", ...item}.
    """
    out = output()
    return run_async(while_read(out, _watch(out, as_json))) or ExitCode.DONE


async def _watch(out: Output, as_json: bool) -> ExitCode:
    seen: dict[str, InboxRow] = {}
    rings = await asyncio.to_thread(wants_bell)
    async with reached() as (_home, fleet):
        first = True
        while not out.reader_gone:
            rows = {f"{row.id}#{row.revision}": row for row in await fleet.inbox()}
            for change, keys in (("gone", seen.keys() - rows.keys()), ("opened", rows.keys())):
                for key in keys:
                    if change == "opened" and key in seen:
                        continue
                    row = seen[key] if change == "gone" else rows[key]
                    if rings and change == "opened" and not first:
                        out.ring()
                    if as_json:
                        out.answer_json({"change": change, **row_json(row)}, one_line=True)
                    else:
                        _print_row(out, row, gone=change == "gone")
            if first and not rows:
                out.tell("nothing waits for a person yet; Ctrl-C ends this")
            seen, first = rows, False
            await asyncio.sleep(WATCH_S)
    return ExitCode.DONE


def row_json(row: InboxRow) -> dict[str, JsonValue]:
    """One row in the form of `inbox list --json`."""
    return {
        "v": 1,
        "id": row.id,
        "kind": row.kind,
        "conversation": row.conversation,
        "agent": row.agent,
        "tool": row.tool,
        "alias": row.alias,
        "summary": row.title,
        "args": None if row.args_cut else arguments_json(row.args),
        "arguments": row.args,
        "arguments_cut": row.args_cut,
        "digest": row.digest,
        "revision": row.revision,
        "requested_at": row.requested_at,
        "due": row.due,
        "then": row.then,
        "effect": row.effect,
        "approvers": list(row.approvers),
        "quorum": row.quorum,
        "votes": row.votes,
    }


def _print_row(out: Output, row: InboxRow, *, gone: bool = False) -> None:
    due = f", due {distance(row.due)}" if row.due else ""
    asked = f"  asked {distance(row.requested_at)}{due}" if row.requested_at else ""
    out.answer(
        Ink(row.id, "bold"),
        "  ",
        Ink("gone" if gone else row.kind, "dim" if gone else "yellow"),
        f"  {row.tool}" if row.tool else "",
        f"  {one_line(row.args, 60)}" if row.args else f"  {one_line(row.title, 72)}",
        Ink(f"  {row.votes} of {row.quorum} approved", "yellow") if row.quorum > 1 else "",
        Ink(f"  for {', '.join(row.approvers)}", "dim") if row.approvers else "",
        Ink(asked, "dim"),
    )
    if row.more and not gone:
        out.answer(Ink(f"  and {row.more} more in {row.conversation}", "dim"))
