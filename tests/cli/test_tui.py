"""`capuchin tui` and `up` on a terminal: the TUI opens at once, or refuses at once."""

from __future__ import annotations

import signal

import pytest

from tests.cli.program import Project, processes_of, wait_until
from tests.cli.terminal import Terminal


def test_where_nothing_was_started_it_is_3_and_says_what_to_type(project: Project) -> None:
    with Terminal("tui", cwd=project.folder, environ=project.environ) as terminal:
        assert terminal.end() == 3
    assert "capuchin up" in terminal.seen


def test_up_on_a_terminal_opens_the_tui_and_ends_everything_when_it_is_left(
    project: Project,
) -> None:
    with Terminal("up", cwd=project.folder, environ=project.environ) as terminal:
        terminal.wait_for("\x1b[?1049h")
        wait_until((project.home / "worker.json").exists)
        assert project.run("send", "notes", "hello").out == "You said hello\n"
        terminal.press(b"\x11")

        assert terminal.end() == 0
    assert "\x1b[?1049l" in terminal.seen
    assert processes_of(project.folder) == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_tui_and_everything_with_it(number: int, project: Project) -> None:
    with Terminal("up", cwd=project.folder, environ=project.environ) as terminal:
        wait_until((project.home / "worker.json").exists, lambda: terminal.seen)
        terminal.process.send_signal(number)

        assert terminal.end() in (0, 130)
    assert "Traceback" not in terminal.seen
    assert processes_of(project.folder) == {}


def test_a_file_with_mistakes_is_said_on_the_plain_terminal(project: Project) -> None:
    project.agent_file.write_text("apiVersion: capuchin/v1\ntols: []\n")
    with Terminal("up", cwd=project.folder, environ=project.environ) as terminal:
        code = terminal.end()

    assert code == 1
    assert "error[unknown-key]" in terminal.seen.rpartition("\x1b[?1049l")[2]
    assert processes_of(project.folder) == {}


def test_tui_alone_talks_to_the_running_server(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]
    with Terminal("tui", cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("● worker")
        terminal.press(b"\x11")

        assert terminal.end() == 0
    assert shop.run("show", conversation).code == 0
