"""`capuchin tui --web`: the TUI for browsers of this machine, an address for each person."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import click

from capuchin_yaml.cli.output import ExitCode, Output
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.terminal_text import visible


def serve(out: Output, people: Sequence[str], *, port: int, may_change: bool) -> ExitCode:
    """Serve until a signal comes; without people, for the user who decisions here are made by.

    Raises:
        click.UsageError: a name that cannot be recorded.
        RequestRefused: the extra is not installed, or the port is taken.
    """
    if find_spec("textual_serve") is None:
        raise RequestRefused(
            "the web view needs one more package; type: pip install 'capuchin-yaml[web]'"
        )
    from capuchin_yaml.client.identity import asserted_user, is_name
    from capuchin_yaml.tui.web.door import Door
    from capuchin_yaml.tui.web.server import WebServer, addresses, loopback

    for name in people:
        if not is_name(name):
            raise click.UsageError(f"--web-user {name[:40]!r} is no printable name")
    try:
        listener = loopback(port)
    except OSError as error:
        raise RequestRefused(f"port {port} of 127.0.0.1: {error.strerror}") from None
    door = Door(listener.getsockname()[1], people or (asserted_user(),))
    command = [sys.executable, "-P", "-m", "capuchin_yaml.cli.app", "tui", "--web-visit"]
    server = WebServer(command if may_change else [*command, "--read-only"], door, listener)

    def tell() -> None:
        out.tell("whoever has an address acts as its person; hand it to that person only")
        out.tell(
            "browsers may send and decide"
            if may_change
            else "browsers only look; with --web-approve they may send and decide"
        )
        for name, address in addresses(door, listener.getsockname()[1]).items():
            out.answer(f"{visible(name, keep_newlines=False)}  {address}")
        out.flush()

    number = asyncio.run(server.run(tell))
    return ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.DONE
