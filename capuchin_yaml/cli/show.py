"""`capuchin show`: one conversation, whole, and as it goes on."""

from __future__ import annotations

import dataclasses
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.clock import distance
from capuchin_yaml.cli.item_text import item_json
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.talk_text import messages_json, print_event
from capuchin_yaml.cli.talking import tell_paused, tell_person_needed
from capuchin_yaml.cli.verb import Verb, output, run_async, while_read
from capuchin_yaml.events import to_json

if TYPE_CHECKING:
    from capuchin_yaml.client.conversation import Conversation


@click.command(cls=Verb)
@click.argument("conversation", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on showing what happens until it ends.")
@options.as_json
def command(conversation: str, follow: bool, as_json: bool) -> ExitCode:
    """Show one conversation.

    What was said, called, decided and used.

    ID may be the beginning of an id, or its last six characters. With --follow --json each event
    is one line of JSON.
    """
    return run_async(_show(output(), conversation, follow, as_json))


async def _show(out: Output, word: str, follow: bool, as_json: bool) -> ExitCode:
    async with reached() as (_home, fleet):
        conversation = await fleet.find(word)
        if follow:
            await while_read(out, _follow(out, conversation, as_json))
            return ExitCode.DONE
        state = await conversation.state()
        events = await conversation.events()
        if as_json:
            definition = state.definition
            out.answer_json(
                {
                    "v": 1,
                    "conversation": state.conversation,
                    "agent": state.agent,
                    "status": state.status,
                    "waiting": state.waiting,
                    "title": state.title,
                    "detail": state.detail,
                    "definition": None
                    if definition is None
                    else {
                        "version": definition.version,
                        "hash": definition.hash,
                        "model": definition.model,
                    },
                    "messages": messages_json(await conversation.transcript()),
                    "items": [item_json(item) for item in state.items],
                    "events": [to_json(event) for event in events],
                    "usage": dataclasses.asdict(state.usage),
                    "still_running": [dataclasses.asdict(r) for r in state.still_running],
                    "created_at": state.created_at,
                    "updated_at": state.updated_at,
                }
            )
            return ExitCode.DONE
    for event in events:
        print_event(out, event)
        if out.reader_gone:
            break
    detail = f": {state.detail}" if state.detail and state.paused is None else ""
    out.tell(f"{state.conversation} is {state.status}{detail}")
    tell_person_needed(out, state.items)
    tell_paused(out, state)
    for running in state.still_running:
        out.warn(
            f"{running.tool} ({running.call_id}) was given up {distance(running.since)} and has "
            "not ended: its worker runs it on"
        )
    return ExitCode.DONE


async def _follow(out: Output, conversation: Conversation, as_json: bool) -> None:
    from capuchin_yaml.client.watch import Reconnected, Reconnecting

    async with aclosing(conversation.watch()) as pulses:
        async for pulse in pulses:
            match pulse:
                case Reconnecting(error, 1):
                    out.warn(f"{error}; waiting for it to come back")
                case Reconnecting():
                    pass
                case Reconnected():
                    out.tell("back again; nothing was missed")
                case event if as_json:
                    out.answer_json({"v": 1, **to_json(event)}, one_line=True)
                case event:
                    print_event(out, event)
            if out.reader_gone:
                return
