"""`capuchin tui`: the TUI on whatever server the environment or this project names."""

from __future__ import annotations

import os
import sys

import click

from capuchin_yaml.cli.output import ExitCode, is_terminal
from capuchin_yaml.cli.plain import plain_options, talk_plainly
from capuchin_yaml.cli.reached import found_home
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import ServerUnavailable


@click.command(cls=Verb)
@plain_options
def command(plain: bool, ax: bool) -> ExitCode:
    """Open the TUI on the running server.

    Without a terminal that can draw it is the plain mode: lines in, labelled lines out. In a pipe
    it ends with 4 when a person is needed.
    """
    home = found_home()
    if not home.exists and not os.environ.get("CAPUCHIN_KEY_FILE"):
        # Why: without a key nothing can be read, so the screen could only stay empty.
        raise ServerUnavailable("nothing has been started here yet; start it with `capuchin up`")
    if plain or ax or not has_terminal():
        return run_async(talk_plainly(output(), home, ax=ax))
    from capuchin_yaml.cli.terminal_app import open_tui

    return open_tui(home)


def has_terminal() -> bool:
    """Whether a TUI can be shown."""
    if os.environ.get("TERM", "") in ("", "dumb"):
        return False
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)
