"""One run of the TUI on this terminal, from the first frame to what is said after the last."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from capuchin_yaml.terminal_text import visible
from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.notices import NoticeBoard
from capuchin_yaml.tui.terminal import sole_terminal

if TYPE_CHECKING:
    from capuchin_yaml.tui.desk import Connect


def run_tui(
    connect: Connect,
    *,
    start: str | None = None,
    agent: str | None = None,
    board: NoticeBoard | None = None,
    home: Path | None = None,
    log_file: Path | None = None,
) -> int:
    """Run the TUI on this terminal until the person leaves, and return the exit code.

    `start` opens a conversation by id, `agent` begins one. Whatever else prints while it runs
    goes to `log_file`. Ask `terminal.can_run` first.
    """
    app = CapuchinApp(connect, start=start, agent=agent, board=board, home=home)
    with sole_terminal(log_file):
        result = app.run()
    tell_fault(app, log_file)
    return app.return_code or result or 0


def tell_fault(app: CapuchinApp, log_file: Path | None) -> None:
    """Say on stderr what fault ended the app and where its log is; nothing after a normal end."""
    if app.stopped_by:
        where = f"; details are in {visible(str(log_file))}" if log_file is not None else ""
        sys.stderr.write(f"the TUI ended by a fault ({app.stopped_by}){where}\n")
        sys.stderr.write("conversations go on; drafts are kept\n")
