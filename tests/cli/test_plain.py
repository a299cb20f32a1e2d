"""The plain mode on a real terminal and through pipes, over a real server."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from capuchin_yaml.tui.plain.decisions import QUIET_S
from tests.cli.program import PROGRAM, Project, run, wait_until
from tests.cli.terminal import Terminal
from tests.cli.test_inbox import asked, notes
from tests.cli.test_worker import working


def test_where_nothing_was_started_a_pipe_gets_3_and_what_to_type(project: Project) -> None:
    ran = run("tui", cwd=project.folder, environ=project.environ, stdin="hello\n")

    assert ran.code == 3
    assert "capuchin up" in ran.err


def test_a_pipe_talks_in_labelled_lines(shop: Project) -> None:
    ran = shop.run("tui", stdin="/new notes\nhello\nlook up\n")

    assert ran.code == 0
    assert "you: hello\nagent: You said hello\n" in ran.out
    assert "tool: probe.look has answered" in ran.out
    assert "\x1b" not in ran.out + ran.err


def test_a_pipe_that_ends_while_a_person_is_needed_ends_with_4_and_decides_nothing(
    shop: Project,
) -> None:
    script = "note piped\n/inbox\n/show 1\n/approve 1\napprove 1\napprove\ny\n"

    ran = shop.run("chat", "notes", "--plain", stdin=script)

    assert ran.code == 4
    assert "approval" in ran.out
    assert "the digest must follow" in ran.out or "is no number here" in ran.out
    assert "piped" not in notes(shop)


@pytest.mark.parametrize(
    ("verb", "environ"),
    [(("tui",), {"TERM": "dumb"}), (("tui", "--plain"), {}), (("chat", "notes", "--ax"), {})],
)
def test_on_a_terminal_a_call_is_shown_whole_and_approved_by_a_typed_word(
    shop: Project, verb: tuple[str, ...], environ: dict[str, str]
) -> None:
    word = "".join(verb).replace("--", "") + environ.get("TERM", "")
    item = asked(shop, word)
    conversation = item["id"].partition(":")[0]
    wait_until(lambda: item["id"] in [row["id"] for row in shop.run("inbox", "--json").json])
    end = item["id"][len(conversation) - 6 :]
    with Terminal(*verb, cwd=shop.folder, environ={**shop.environ, **environ}) as terminal:
        terminal.wait_for("probe.note of notes waits for a person")
        terminal.type(f"/show {end}\n/approve {end}")
        terminal.wait_for(f'arguments: {{"word":"{word}"}}')
        terminal.wait_for("to answer type /approve ")
        number = terminal.seen[terminal.seen.rindex("/approve ") :].split()[1].strip(",")
        assert word not in notes(shop)
        while not _is_taken(terminal, number):
            assert word not in notes(shop)
        wait_until(lambda: word in notes(shop))
        terminal.type("/quit")

        assert terminal.end() == 0
    assert "\x1b" not in terminal.seen


def _is_taken(terminal: Terminal, number: str) -> bool:
    """Type the word; it is refused as long as the item or another line has only just come."""
    time.sleep(2 * QUIET_S)  # the guard wants this quiet before a word that answers
    terminal.type(f"/approve {number}")
    found = terminal.wait_for_any(f"approval {number}: approve", "not taken")
    return found.endswith("approve")


def test_with_ax_each_change_of_state_is_said_in_words(shop: Project) -> None:
    with Terminal("chat", "notes", "--ax", cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("conversation: notes")
        terminal.type("hello")
        terminal.wait_for("state: Your message is sent.")
        terminal.wait_for("agent: You said hello")
        terminal.wait_for("state: The agent is done; it is your turn.")
        terminal.press(b"\x04")

        assert terminal.end() == 0
    assert "\a" in terminal.seen
    assert "\x1b" not in terminal.seen


def test_agents_that_only_workers_elsewhere_serve_are_offered(
    shop: Project, tmp_path: Path
) -> None:
    """Case: on a cluster nothing was offered, for only `up` wrote down which agents there are."""
    server = json.loads((shop.home / "server.json").read_text())
    environ = {
        **shop.environ,
        "TEMPORAL_ADDRESS": f"127.0.0.1:{server['port']}",
        "CAPUCHIN_PROJECT": shop.folder.name,
        "CAPUCHIN_KEY_FILE": str(shop.home / "key"),
        "CAPUCHIN_HOME": str(tmp_path / "state"),
    }

    def answer() -> str:
        return run("tui", cwd=tmp_path, environ=environ, stdin="/new\nhello\n").out

    before = answer()
    with working(shop, "agents"):
        wait_until(lambda: "agent: You said hello" in answer())

    assert "agents here: none is known" in before


def test_a_reader_that_leaves_ends_it(shop: Project) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "tui"],
        cwd=shop.folder,
        env=shop.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write("/help\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()

        assert process.wait(30) == 0
