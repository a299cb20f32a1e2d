"""The plain mode on this terminal or pipe: lines in, labelled lines out, nothing redrawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capuchin_yaml.cli.agents_file import read_agents
from capuchin_yaml.cli.line_input import Lines
from capuchin_yaml.cli.live_gateway import card, live_gateway
from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.cli.verb import while_read

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.spec import JsonValue

F = TypeVar("F", bound=Callable[..., Any])


def plain_options(command: F) -> F:
    """`--plain` and `--ax`."""
    command = click.option(
        "--ax",
        is_flag=True,
        help="Plain mode for screen readers: says every change of state in words.",
    )(command)
    return click.option(
        "--plain",
        is_flag=True,
        help="Labelled lines instead of a screen; taken by itself where no screen can be drawn.",
    )(command)


async def talk_plainly(
    out: Output,
    home: Home,
    *,
    ax: bool,
    conversation: str = "",
    agent: str = "",
    variables: Mapping[str, JsonValue] | None = None,
    injected: Mapping[str, JsonValue] | None = None,
) -> ExitCode:
    """Talk and decide in lines until the person leaves or the lines end.

    Raises:
        ServerUnavailable: nothing is started here, or it does not answer.
        UnsafeState: the state folder or its key is not ours alone.
    """
    from capuchin_yaml.tui.plain.session import Manner, PlainSession

    gateway = await live_gateway(home, lambda: [card(one) for one in read_agents(home)])
    lines = Lines()
    by_person = out.talks_with_person
    session = PlainSession(
        gateway,
        lines,
        out.answer,
        Manner(by_person, says_states=ax, rings=by_person),
        is_broken=lambda: out.reader_gone,
        ring=out.ring,
    )
    talk = session.run(
        conversation=conversation, agent=agent, variables=variables, injected=injected
    )
    try:
        return ExitCode(await while_read(out, talk) or ExitCode.DONE)
    finally:
        lines.close()
