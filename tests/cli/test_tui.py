"""`capuchin tui` and `up` on a terminal: the TUI opens at once, or refuses at once."""

from __future__ import annotations

import contextlib
import json
import os
import signal

import pytest

from tests.cli.program import PROGRAM, Project, processes_of, wait_until
from tests.cli.terminal import Terminal
from tests.tui.terminal import TuiTerminal


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


def _kill_server(project: Project) -> None:
    """End `up` and all that it brought along, so that nothing starts the server again."""
    worker = json.loads((project.home / "worker.json").read_text())
    server = json.loads((project.home / "server.json").read_text())
    pids = [worker["pid"], *(w["pid"] for w in worker["workers"])]
    for pid in (*pids, server["guard_pid"], server["pid"]):
        with contextlib.suppress(ProcessLookupError):  # some follow `up` by themselves
            os.kill(pid, signal.SIGKILL)


def tui_of(project: Project) -> TuiTerminal:
    """`capuchin tui` in a terminal that can be read."""
    return TuiTerminal(
        "",
        project.folder / "tui.log",
        120,
        40,
        command=[*PROGRAM, "tui"],
        cwd=project.folder,
        environ=project.environ,
    )


def test_nothing_is_written_over_the_screen_while_the_server_is_away(project: Project) -> None:
    with (
        project.up("--no-tui"),
        tui_of(project) as terminal,
    ):
        terminal.until(lambda text: "● worker" in text)
        _kill_server(project)
        terminal.until(lambda text: "server away" in text)
        terminal.raw = b""
        terminal.listen(4.0)
        terminal.press(b"still here")
        terminal.until(lambda text: text.splitlines()[-2].rstrip().endswith("still here"))

        assert "write a message" not in terminal.text
        # What the SDK and its native core say of a lost server is for the log.
        said = terminal.raw.lower()
        assert [word for word in (b"warn", b"error", b"temporal_", b"rpc") if word in said] == []
        terminal.press(b"\x11")
        assert terminal.end() == 0


def test_after_a_kill_it_comes_back_with_its_draft_and_what_waits(shop: Project) -> None:
    sent = shop.run("send", "notes", "note bread", "--json").json["conversation"]
    with tui_of(shop) as terminal:
        terminal.until(lambda text: "waiting (F2)" in text)
        terminal.press(b"half a thought")
        terminal.until(lambda text: "half a thought" in text)
        drafts = shop.home / "drafts.json"
        wait_until(lambda: drafts.exists() and "half a thought" in drafts.read_text())
        terminal.process.kill()
        terminal.end()

    with tui_of(shop) as terminal:
        terminal.until(lambda text: "waiting (F2)" in text and "half a thought" in text)
        terminal.press(b"\x15\x11")
    assert sent in {i["conversation"] for i in shop.run("inbox", "list", "--json").json}
