"""`capuchin tui`: the TUI on whatever server the environment or this project names."""

from __future__ import annotations

import os
import sys

import click

from capuchin_yaml.cli.output import ExitCode, is_terminal
from capuchin_yaml.cli.reached import found_home
from capuchin_yaml.cli.verb import Verb
from capuchin_yaml.errors import ServerUnavailable


@click.command(cls=Verb)
def command() -> ExitCode:
    """Open the TUI on the running server."""
    require_terminal()
    home = found_home()
    if not home.exists and not os.environ.get("CAPUCHIN_KEY_FILE"):
        # Why: without a key nothing can be read, so the screen could only stay empty.
        raise ServerUnavailable("nothing has been started here yet; start it with `capuchin up`")
    from capuchin_yaml.cli.terminal_app import open_tui

    return open_tui(home)


def require_terminal() -> None:
    """Refuse at once where the TUI would hang or paint garbage.

    Raises:
        click.UsageError: no terminal, or one that cannot move its cursor.
    """
    if not has_terminal():
        raise click.UsageError(
            "the TUI needs a terminal; without one type: capuchin chat, capuchin send, "
            "capuchin inbox"
        )


def has_terminal() -> bool:
    """Whether a TUI can be shown."""
    if os.environ.get("TERM", "") in ("", "dumb"):
        return False
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)
