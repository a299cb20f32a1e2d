"""`capuchin send`: one message, and wait for the answer or for a person."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.item_text import arguments_json
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.talk_text import usage_json
from capuchin_yaml.cli.talking import (
    Outcome,
    checked_text,
    checked_values,
    find_partner,
    settled,
    tell_paused,
    tell_person_needed,
    tell_rehearsal,
)
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.spec import JsonValue


@click.command(cls=Verb)
@click.argument("to", metavar="AGENT|CONVERSATION")
@click.argument("text", type=options.words)
@options.start_values
@options.as_json
def command(
    to: str, text: str, variables: Mapping[str, str], injected: Mapping[str, str], as_json: bool
) -> ExitCode:
    """Send one message and wait for the answer.

    To an agent it opens a new conversation; its id is said on stderr. TEXT `-` reads the message
    from stdin. Ends with 4 when a person is needed first.
    """
    out = output()
    words = checked_text(_from_stdin() if text == "-" else text)
    return run_async(_send(out, to, words, variables, injected, as_json))


def _from_stdin() -> str:
    try:
        return sys.stdin.read() if sys.stdin is not None else ""
    except UnicodeDecodeError:
        raise RequestRefused("stdin is not UTF-8; nothing was sent") from None


async def _send(
    out: Output,
    to: str,
    text: str,
    variables: Mapping[str, str],
    injected: Mapping[str, str],
    as_json: bool,
) -> ExitCode:
    from capuchin_yaml.client.identity import asserted_user

    by = asserted_user()
    async with reached() as (home, fleet):
        partner = await find_partner(home, fleet, to)
        if partner.conversation is not None:
            if variables or injected:
                raise click.UsageError("--var and --set are for a new conversation only")
            conversation = partner.conversation
            since = (await conversation.state()).events
            await conversation.send(text, by=by)
        else:
            assert partner.agent is not None
            given, set_values = checked_values(home, partner.agent, variables, injected)
            conversation = await fleet.start(
                partner.agent, text, by=by, variables=given, injected=set_values
            )
            since = 0
            if not as_json:
                out.tell(f"conversation {conversation.id}")
        state = await settled(out, conversation)
        outcome = Outcome(state, tuple(await conversation.events(since)))
    _print(out, outcome, as_json)
    return outcome.exit_code


def _print(out: Output, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        out.answer_json(_document(outcome))
    elif outcome.reply:
        out.answer(outcome.reply)
    if outcome.rehearsed:
        tell_rehearsal(out)
    tell_person_needed(out, outcome.state.items)
    tell_paused(out, outcome.state)
    if outcome.trouble:
        out.fail(outcome.trouble)


def _document(outcome: Outcome) -> dict[str, JsonValue]:
    state = outcome.state
    return {
        "v": 1,
        "conversation": state.conversation,
        "agent": state.agent,
        "status": state.status,
        "reply": outcome.reply,
        "items": [
            {
                "v": 1,
                "id": item.id,
                "kind": item.kind,
                "tool": item.tool,
                "args": arguments_json(item.arguments),
                "digest": item.digest,
            }
            for item in state.items
        ],
        "usage": usage_json(outcome.events),
        "rehearsal": outcome.rehearsed,
        "detail": outcome.trouble or None,
    }
