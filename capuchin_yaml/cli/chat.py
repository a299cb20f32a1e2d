"""`capuchin chat`: talk line by line, on a terminal or in a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_file import read_agents
from capuchin_yaml.cli.decide import Found, decide
from capuchin_yaml.cli.item_text import print_item
from capuchin_yaml.cli.line_input import Lines
from capuchin_yaml.cli.output import ExitCode, Ink, Output, is_terminal
from capuchin_yaml.cli.plain import plain_options, talk_plainly
from capuchin_yaml.cli.reached import reached
from capuchin_yaml.cli.talking import (
    Outcome,
    Partner,
    checked_text,
    checked_values,
    find_partner,
    settled,
    tell_paused,
    tell_person_needed,
    tell_rehearsal,
)
from capuchin_yaml.cli.verb import Verb, output, run_async, while_read
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.events import Choice
from capuchin_yaml.items import CHOICES, Item

if TYPE_CHECKING:
    from capuchin_yaml.client.conversation import Conversation
    from capuchin_yaml.client.fleet import Capuchin
    from capuchin_yaml.client.home import Home

FIRST_LINE_S = 5.0
"""A pipe that says nothing for so long at the start is taken for a mistake."""


@click.command(cls=Verb)
@click.argument("partner", metavar="[AGENT|CONVERSATION]", required=False)
@click.option("--wait", is_flag=True, help="Wait for the first line of a pipe without limit.")
@plain_options
@options.start_values
def command(
    partner: str | None,
    wait: bool,
    plain: bool,
    ax: bool,
    variables: Mapping[str, str],
    injected: Mapping[str, str],
) -> ExitCode:
    """Talk with an agent, line by line; works in a pipe.

    An agent gets a new conversation with the first line; without a name the only agent is meant.
    In a pipe each line is one message, and the verb ends with 4 when a person is needed.
    """
    out = output()
    if plain or ax or (out.talks_with_person and os.environ.get("TERM", "") in ("", "dumb")):
        return run_async(_plainly(out, ax, partner, variables, injected))
    return run_async(_chat(out, wait, partner, variables, injected))


async def _plainly(
    out: Output,
    ax: bool,
    word: str | None,
    variables: Mapping[str, str],
    injected: Mapping[str, str],
) -> ExitCode:
    async with reached() as (home, fleet):
        partner = await named_partner(home, fleet, word, bool(variables or injected))
        values: tuple[dict[str, object], dict[str, object]] = ({}, {})
        if partner.agent is not None and (variables or injected):
            values = checked_values(home, partner.agent, variables, injected)
    return await talk_plainly(
        out,
        home,
        ax=ax,
        conversation=partner.conversation.id if partner.conversation is not None else "",
        agent=partner.agent or "",
        variables=values[0],
        injected=values[1],
    )


async def named_partner(home: Home, fleet: Capuchin, word: str | None, has_values: bool) -> Partner:
    """Whom `word` means; without one, the only agent.

    Raises:
        click.UsageError: there are several agents, or values were given for an open conversation.
    """
    if word is None:
        agents = read_agents(home)
        if len(agents) != 1:
            names = ", ".join(agent.name for agent in agents) or "none"
            raise click.UsageError(f"name the agent to talk with; agents here: {names}")
        return Partner(agent=agents[0].name)
    partner = await find_partner(home, fleet, word)
    if partner.conversation is not None and has_values:
        raise click.UsageError("--var and --set are for a new conversation only")
    return partner


async def _chat(
    out: Output,
    wait: bool,
    partner: str | None,
    variables: Mapping[str, str],
    injected: Mapping[str, str],
) -> ExitCode:
    chat = _Chat(out, wait)
    return await while_read(out, chat.run(partner, variables, injected)) or ExitCode.DONE


class _Chat:
    def __init__(self, out: Output, wait: bool) -> None:
        self._out = out
        self._wait = wait
        self._by_person = out.talks_with_person
        self._lines = Lines(editing=self._by_person)
        self._conversation: Conversation | None = None

    async def run(
        self, word: str | None, variables: Mapping[str, str], injected: Mapping[str, str]
    ) -> ExitCode:
        from capuchin_yaml.client.identity import asserted_user

        by = asserted_user()
        try:
            async with reached() as (home, fleet):
                partner = await named_partner(home, fleet, word, bool(variables or injected))
                values: tuple[dict[str, object], dict[str, object]] = ({}, {})
                if partner.agent is not None:
                    values = checked_values(home, partner.agent, variables, injected)
                return await self._talk(fleet, partner, values, by)
        finally:
            self._lines.close()
            if self._conversation is not None:
                self._out.tell(f"go on with: capuchin chat {self._conversation.short_id}")

    async def _talk(
        self,
        fleet: Capuchin,
        partner: Partner,
        values: tuple[dict[str, object], dict[str, object]],
        by: str,
    ) -> ExitCode:
        conversation = partner.conversation
        line = await self._first_line()
        while line is not None and not self._out.reader_gone:
            if line.strip():
                text = checked_text(line)
                since = 0
                if conversation is None:
                    assert partner.agent is not None
                    conversation = await fleet.start(
                        partner.agent, text, by=by, variables=values[0], injected=values[1]
                    )
                else:
                    since = (await conversation.state()).events
                    await conversation.send(text, by=by)
                self._conversation = conversation
                ended = await self._answered(conversation, since)
                if ended is not None:
                    return ended
            line = await self._next_line()
        return ExitCode.DONE

    async def _first_line(self) -> str | None:
        if is_terminal(sys.stdin) or self._wait:
            line = await self._next_line()
            if line is None and not is_terminal(sys.stdin):
                raise self._nothing_said("stdin is empty")
            return line
        try:
            async with asyncio.timeout(FIRST_LINE_S):
                line = await self._lines.next_line()
        except TimeoutError:
            raise self._nothing_said(f"nothing came on stdin for {FIRST_LINE_S:g} s") from None
        if line is None:
            raise self._nothing_said("stdin is empty")
        return line

    def _nothing_said(self, why: str) -> click.UsageError:
        return click.UsageError(
            f"{why} and no terminal is there; nothing was sent. For one message type: "
            "capuchin send AGENT TEXT; for a pipe that speaks later add --wait"
        )

    async def _next_line(self) -> str | None:
        prompt = "> " if self._by_person else ""
        if prompt and not self._lines.shows_prompt:
            self._out.ask(prompt)
        return await self._lines.next_line(prompt)

    async def _answered(self, conversation: Conversation, since: int) -> ExitCode | None:
        """Print what comes of a message; an exit code when the talk is over."""
        while True:
            state = await settled(self._out, conversation)
            events = tuple(await conversation.events(since))
            outcome = Outcome(state, events)
            if outcome.reply:
                mark = "rehearsal" if outcome.rehearsed else ""
                if mark and self._out.answers_on_terminal:
                    self._out.answer(Ink(f"({mark}) ", "yellow"), outcome.reply)
                else:
                    self._out.answer(outcome.reply)
            if outcome.rehearsed and not self._out.answers_on_terminal:
                tell_rehearsal(self._out)
            if outcome.trouble:
                self._out.fail(outcome.trouble)
            if state.status in ("closed", "failed", "blocked"):
                return ExitCode.REFUSED
            tell_paused(self._out, state)
            if not state.items:
                if state.paused is not None and not self._by_person:
                    return ExitCode.PERSON_NEEDED
                return ExitCode.REFUSED if outcome.trouble and not self._by_person else None
            if not self._by_person:
                tell_person_needed(self._out, state.items)
                return ExitCode.PERSON_NEEDED
            since = state.events
            if not await self._decided(conversation, state.items):
                self._out.tell("it waits; what you write now is answered after it")
                return None

    async def _decided(self, conversation: Conversation, items: tuple[Item, ...]) -> bool:
        """Ask about each waiting item; False when one is left for later."""
        for item in items:
            print_item(self._out, item, to_stderr=True)
            self._lines.forget()
            choices = CHOICES[item.kind]
            while True:
                self._out.tell(f"type {' or '.join(choices)} (and why), or nothing to leave it")
                prompt = "? "
                if not self._lines.shows_prompt:
                    self._out.ask(prompt)
                line = await self._lines.next_line(prompt)
                if not line or not line.strip():
                    return False
                word, _, rest = line.strip().partition(" ")
                if word in choices:
                    break
            choice: Choice = choices[choices.index(word)]
            happened = choice == "happened"
            try:
                await decide(
                    self._out,
                    Found(conversation, conversation.agent, item),
                    choice,
                    reason="" if happened else rest.strip(),
                    result=rest.strip() if happened else "",
                )
            except RequestRefused as error:
                self._out.fail(str(error))
                return False
        return True
