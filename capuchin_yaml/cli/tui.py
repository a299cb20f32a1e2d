"""`capuchin tui`: the TUI on whatever server the environment or this project names."""

from __future__ import annotations

import os
import sys

import click

from capuchin_yaml.cli.options import words
from capuchin_yaml.cli.output import ExitCode, is_terminal
from capuchin_yaml.cli.plain import plain_options, talk_plainly
from capuchin_yaml.cli.reached import found_home
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import ServerUnavailable


@click.command(cls=Verb)
@click.option("--read-only", is_flag=True, help="Look only: nothing is sent and nothing decided.")
@click.option("--web", is_flag=True, help="Serve the TUI to browsers of this machine.")
@click.option(
    "--web-approve", is_flag=True, help="Let browsers send and decide; without it they only look."
)
@click.option(
    "--web-user",
    "people",
    type=words,
    multiple=True,
    metavar="NAME",
    help="Print an address for this person, whose name is recorded; repeatable.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the web server."
)
@click.option("--web-visit", is_flag=True, hidden=True)
@plain_options
def command(
    plain: bool,
    ax: bool,
    read_only: bool,
    web: bool,
    web_approve: bool,
    people: tuple[str, ...],
    port: int,
    web_visit: bool,
) -> ExitCode:
    """Open the TUI on the running server.

    Without a terminal that can draw it is the plain mode: lines in, labelled lines out. In a pipe
    it ends with 4 when a person is needed.
    """
    if not web and (web_approve or people or port):
        raise click.UsageError("--web-approve, --web-user and --port go with --web")
    is_plain = not web and not web_visit and (plain or ax or not has_terminal())
    if is_plain and read_only:
        raise click.UsageError("--read-only needs the TUI; `capuchin show` only looks, too")
    home = found_home()
    if not home.exists and not os.environ.get("CAPUCHIN_KEY_FILE"):
        # Why: without a key nothing can be read, so the screen could only stay empty.
        raise ServerUnavailable("nothing has been started here yet; start it with `capuchin up`")
    if web:
        from capuchin_yaml.cli.web import serve

        return serve(output(), people, port=port, may_change=web_approve and not read_only)
    if is_plain:
        return run_async(talk_plainly(output(), home, ax=ax))
    from capuchin_yaml.cli.terminal_app import open_tui

    return open_tui(home, is_read_only=read_only, is_visit=web_visit)


def has_terminal() -> bool:
    """Whether a TUI can be shown."""
    if os.environ.get("TERM", "") in ("", "dumb"):
        return False
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)
