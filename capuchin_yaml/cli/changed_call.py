"""What a person changes of a call, or allows beside it, before approving it on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli.output import Ink, Output
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.items import Item
from capuchin_yaml.spec import JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.client.conversation import Conversation
    from capuchin_yaml.tui.model.remember import Remembered

_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Change:
    """What goes with a decision."""

    arguments: str = ""
    """Canonical JSON text that shall run instead."""
    grant: Mapping[str, JsonValue] | None = None


NO_CHANGE = Change()


async def changed_arguments(conversation: Conversation, item: Item, text: str) -> str:
    """The canonical text of arguments that the tool of `item` takes.

    Raises:
        RequestRefused: it would refuse them, or they are what would run anyway.
    """
    from capuchin_yaml.tui.model.arguments import WrongArguments, checked

    schema = (await conversation.input_schemas()).get(item.tool)
    try:
        arguments = checked(schema, text)
    except WrongArguments as error:
        raise RequestRefused(f"these arguments cannot run: {error}") from error
    if arguments == item.arguments:
        raise RequestRefused("these are the arguments that wait already; nothing is changed")
    return arguments


def given_text(value: str) -> str:
    """Arguments as given: JSON, or `@FILE` that holds it.

    Raises:
        click.UsageError: the file cannot be read.
    """
    if not value.startswith("@"):
        return value
    try:
        data = Path(value[1:]).read_bytes()
        if len(data) > _MAX_FILE_BYTES:
            raise click.UsageError(f"{value[1:]} is over {_MAX_FILE_BYTES >> 20} MB")
        return data.decode()
    except OSError as error:
        raise click.UsageError(f"{value[1:]} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise click.UsageError(f"{value[1:]} is no UTF-8 text") from None


def written_text(item: Item) -> str:
    """What the person's editor saved of the item's arguments.

    Raises:
        RequestRefused: nothing was saved, or no editor could be started.
    """
    from capuchin_yaml.tui.model.arguments import laid_out

    try:
        text = click.edit(laid_out(item.arguments), extension=".json")
    except click.ClickException as error:
        raise RequestRefused(f"no editor: {error.message}; set EDITOR, or use --args") from error
    if text is None:
        raise RequestRefused("the editor saved nothing; nothing was decided")
    return text


def tell_change(out: Output, item: Item, change: Change) -> None:
    """Show what differs, all that would run, and what would be allowed beforehand."""
    from capuchin_yaml.tui.model.arguments import differences

    if change.arguments:
        out.tell(Ink("changed (- as the model wrote it, + what runs)", "bold"))
        for found in differences(item.arguments, change.arguments):
            if found.before is not None:
                out.tell(Ink(f"  - {found.path}  {found.before}", "red"))
            if found.after is not None:
                out.tell(Ink(f"  + {found.path}  {found.after}", "green"))
        out.tell(Ink("what runs", "bold"), f"  {change.arguments}")
    if change.grant is not None:
        for line in grant_lines(item, change.grant):
            out.tell(line)


def grant_lines(item: Item, grant: Mapping[str, JsonValue]) -> list[str]:
    """A grant as the rule that it is, with calls that it lets through and calls that still ask."""
    from capuchin_yaml.tui.model.remember import LIMITS_OF_ALL, lets_through, rule_text, still_asks

    scope, times, ends = str(grant["scope"]), grant.get("times"), grant.get("until")
    rule = rule_text(
        scope,
        item.tool,
        times if isinstance(times, int) else None,
        ends if isinstance(ends, str) else None,
    )
    return [
        rule,
        *(f"  runs without asking: {call}" for call in lets_through(item, scope)),
        *(f"  still asks: {call}" for call in still_asks(item, scope)),
        f"  {LIMITS_OF_ALL}",
    ]


def wanted_grant(
    scope: str | None, times: int | None, lasting_s: float | None
) -> Remembered | None:
    """What the options say shall be allowed beforehand; None when nothing.

    Raises:
        click.UsageError: the options do not say when it ends, or belong to no --remember.
    """
    from capuchin_yaml.tui.model.remember import remembered

    if scope is None:
        if times is not None or lasting_s is not None:
            raise click.UsageError("--times and --for go with --remember")
        return None
    try:
        return remembered(scope, "" if times is None else str(times), lasting_s, datetime.now(UTC))
    except ValueError as error:
        raise click.UsageError(f"{error}; add --times N or --for TIME") from error
