"""`capuchin chat`: line by line, on a terminal and in a pipe."""

from __future__ import annotations

import subprocess
import time

from tests.cli.program import PROGRAM, Project
from tests.cli.terminal import Terminal


def test_each_line_of_a_pipe_is_one_message_of_one_conversation(shop: Project) -> None:
    ran = shop.run("chat", "notes", stdin="one\n\ntwo\n")

    assert (ran.code, ran.out) == (0, "You said one\nYou said two\n")
    short = ran.err.split()[-1]
    assert shop.run("show", short, "--json").json["title"].startswith("one")


def test_the_only_agent_needs_no_name(shop: Project) -> None:
    assert shop.run("chat", stdin="hello\n").out == "You said hello\n"


def test_an_empty_stdin_is_wrong_usage_and_starts_no_conversation(shop: Project) -> None:
    before = shop.run("list", "--json").json

    ran = shop.run("chat", "notes", stdin="")

    assert (ran.code, ran.out) == (2, "")
    assert "capuchin send AGENT TEXT" in ran.err
    assert shop.run("list", "--json").json == before


def test_a_pipe_that_never_speaks_ends_soon_with_the_other_way(shop: Project) -> None:
    started = time.monotonic()
    with subprocess.Popen(
        [*PROGRAM, "chat", "notes"],
        cwd=shop.folder,
        env=shop.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        err = process.stderr.read()
        code = process.wait()

    assert code == 2
    assert b"capuchin send AGENT TEXT" in err
    assert time.monotonic() - started < 30


def test_a_pipe_stops_with_4_where_a_person_is_needed(shop: Project) -> None:
    ran = shop.run("chat", "notes", stdin="note milk\nhello\n")

    assert (ran.code, ran.out) == (4, "Noting.\n")
    assert "probe.note waits for approval" in ran.err


def test_bytes_that_are_not_utf_8_are_refused(shop: Project) -> None:
    done = subprocess.run(
        [*PROGRAM, "chat", "notes"],
        cwd=shop.folder,
        env=shop.environ,
        input=b"\xff\xfe\n",
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert b"not UTF-8" in done.stderr


def test_a_reader_that_leaves_ends_the_chat(shop: Project) -> None:
    done = subprocess.run(
        f"(echo one; echo two) | {' '.join(PROGRAM)} chat notes | head -1; echo ${{PIPESTATUS[1]}}",
        shell=True,
        executable="/bin/bash",
        cwd=shop.folder,
        env=shop.environ,
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"You said one\n0\n"
    assert b"Traceback" not in done.stderr


def test_on_a_terminal_an_item_is_shown_whole_and_decided_by_its_word(shop: Project) -> None:
    with Terminal("chat", "notes", cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("> ")
        terminal.type("note tea")
        terminal.wait_for("or nothing to leave it")
        assert '{"word":"tea"}' in terminal.seen
        terminal.type("yes")
        terminal.wait_for("? ")
        terminal.type("approve")
        terminal.wait_for("It is noted.")
        terminal.wait_for("> ")
        terminal.press(b"\x04")

        assert terminal.end() == 0
    assert "tea" in (shop.data / "notes").read_text().split()


def test_on_a_terminal_a_denial_carries_its_reason(shop: Project) -> None:
    with Terminal("chat", "notes", cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("> ")
        terminal.type("note coffee")
        terminal.wait_for("or nothing to leave it")
        terminal.type("deny too much already")
        terminal.wait_for("It was refused.")
        terminal.wait_for("> ")
        terminal.press(b"\x04")

        assert terminal.end() == 0
    assert "coffee" not in (shop.data / "notes").read_text().split()


def test_ctrl_c_at_the_prompt_is_130_and_says_how_to_go_on(shop: Project) -> None:
    with Terminal("chat", "notes", cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("> ")
        terminal.type("hello")
        terminal.wait_for("You said hello")
        terminal.wait_for("> ")
        terminal.press(b"\x03")

        assert terminal.end() == 130
    assert "go on with: capuchin chat notes-" in terminal.seen
    assert "Traceback" not in terminal.seen
