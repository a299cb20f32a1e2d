"""The TUI of `capuchin up` in a terminal: typed, read and decided as a person does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project, processes_of, wait_until
from tests.e2e.demo import (
    WISH,
    demo_project,
    kill,
    kill_everything,
    refunds,
    server_record,
    wait_idle,
)
from tests.e2e.screen import GLASSES, PtyGlass, Screen, TmuxGlass, on_screen
from tests.e2e.street import street_data, street_project


@pytest.mark.parametrize("glass", GLASSES)
def test_the_demo_talk_is_typed_read_and_approved(
    glass: type[PtyGlass] | type[TmuxGlass], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = demo_project(tmp_path_factory.mktemp("typed"))
    args = ("up", "agents/billing.yaml")
    with on_screen(glass, *args, cwd=project.folder, environ=project.environ) as screen:
        screen.wait_for("● server", "● worker")
        screen.type(WISH)
        screen.press("Enter")
        screen.wait_for("billing.lookup_order", "✔ ok", "waits for a person", "1 waiting (F2)")
        assert "REHEARSAL" in screen.text

        screen.press("F2")
        screen.wait_for("billing.issue_refund", '"amount_cents": 4200', "end of the item")
        assert refunds(project) == []
        decide(screen, "a")
        screen.wait_for("approved by ann")
        wait_until(lambda: refunds(project) == [("A-1001", 4200)])

        screen.press("Escape")
        screen.wait_for("idle", "issue_refund as refund")
        screen.press("C-q")
        screen.wait_ended()
    assert processes_of(project.folder) == {}
    assert refunds(project) == [("A-1001", 4200)]


def decide(screen: Screen, key: str) -> None:
    """Open the item on show and press its answer key once that is taken."""
    screen.press("Enter")
    screen.wait_for("● a approve")
    screen.press(key)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that a terminal of this module has up."""
    return street_project(tmp_path_factory.mktemp("street"))


@pytest.fixture(scope="module")
def screen(street: Project) -> Iterator[Screen]:
    """The first terminal: the TUI of `up`."""
    with on_screen(PtyGlass, "up", cwd=street.folder, environ=street.environ) as screen:
        screen.wait_for("● server", "● worker")
        yield screen
    wait_until(lambda: not processes_of(street.folder), lambda: str(processes_of(street.folder)))


def test_a_conversation_from_a_second_terminal_is_seen_and_decided_in_the_first(
    street: Project, screen: Screen
) -> None:
    sent = street.run("send", "street", "sign Zelda", "--json").json
    screen.wait_for("sign Zelda", "needs you", "1 waiting (F2)")

    screen.press("F2")
    screen.wait_for("street.sign", '"word": "Zelda"', "end of the item")
    decide(screen, "d")
    screen.wait_for("a reason helps the agent")
    screen.type("not in her name")
    screen.press("C-s")
    screen.wait_for("denied by ann", "not in her name")
    screen.press("Escape")

    wait_idle(street, sent["conversation"])
    assert "not in her name" in street.run("show", sent["conversation"]).out
    assert street.run("inbox", "--json").json == []
    screen.wait_gone("waiting (F2)")


def test_what_tools_print_is_in_a_log_and_never_on_the_screen(
    street: Project, screen: Screen
) -> None:
    """Case: print, logging, warnings, raw writes and child processes paint over the TUI."""
    sent = street.run("send", "street", "noise", "--json").json
    screen.wait_for("noise")

    assert sent["status"] == "idle"
    assert "NOISE" not in screen.text
    logs = "".join(path.read_text() for path in (street.home / "log").glob("worker*.log"))
    for word in ("print", "stderr", "logging", "warning", "fd1", "fd2", "child"):
        assert f"NOISE-{word}" in logs
    assert "NOISE-tty" not in screen.text


def test_a_loosened_agent_waits_in_the_inbox_for_a_yes(tmp_path: Path) -> None:
    """Case: an edited file that asks less than before is used without a word."""
    project = street_project(tmp_path)
    agent = tmp_path / "agents" / "street.yaml"
    with on_screen(PtyGlass, "up", cwd=tmp_path, environ=project.environ) as screen:
        screen.wait_for("● server", "● worker")
        loosened = agent.read_text().replace("[street.sign]", "[street.noise]")
        agent.write_text(loosened)
        screen.wait_for("1 waiting (F2)")
        asked = project.run("send", "street", "sign Ann", "--json").json

        screen.press("F2")
        screen.wait_for("loosens its approval: street.sign", "end of the question")
        screen.press("Enter")
        screen.wait_for("● u use")
        screen.press("u")
        screen.wait_for("is reloaded")
        alone = project.run("send", "street", "sign Ben", "--json").json

    assert asked["status"] == "waiting"
    assert alone["status"] == "idle"
    assert (street_data(project) / "signed").read_text() == "Ben"


def test_an_open_tui_outlives_its_server_and_a_fresh_one_shows_the_same_approval(
    tmp_path: Path,
) -> None:
    """Case: a screen stays frozen when the server dies, and the approval is gone afterwards."""
    project = street_project(tmp_path)
    with on_screen(PtyGlass, "up", cwd=tmp_path, environ=project.environ) as screen:
        screen.wait_for("● server", "● worker")
        screen.type("hello there")
        screen.press("Enter")
        screen.wait_for("You said hello there")
        kill(server_record(project)["pid"])
        screen.wait_for("server away")
        screen.wait_for("● server", "● worker")
        screen.type("sign Zelda")
        screen.press("Enter")
        screen.wait_for("1 waiting (F2)")
        kill_everything(project)
        screen.wait_ended()

    with on_screen(PtyGlass, "up", cwd=tmp_path, environ=project.environ) as screen:
        screen.wait_for("● worker", "hello there", "needs you", "1 waiting (F2)")
        screen.press("F2")
        screen.wait_for('"word": "Zelda"', "end of the item")
        decide(screen, "a")
        screen.wait_for("approved by ann")
        wait_until((street_data(project) / "signed").exists)
        screen.press("g")
        screen.wait_for("You said hello there", "It came back: signed")
    assert (street_data(project) / "signed").read_text() == "Zelda"


def test_a_tui_that_was_killed_begins_again_where_it_was_with_its_draft(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    project = demo_project(tmp_path_factory.mktemp("killed"))
    with project.up("--no-tui", "agents/billing.yaml"):
        glass = PtyGlass("tui", cwd=project.folder, environ=project.environ)
        screen = Screen(glass)
        try:
            screen.wait_for("● server", "● worker")
            screen.type("hello")
            screen.press("Enter")
            screen.wait_for("idle", "turn 1")
            # It says that a conversation is being started for as long as that is so.
            screen.wait_gone("starting a conversation")
            screen.type("half a thought")
            # What was typed is written down within a second.
            drafts = project.home / "drafts.json"
            wait_until(lambda: drafts.exists() and "half a thought" in drafts.read_text())
            kill(glass.process.pid)
        finally:
            screen.close()
        with on_screen(PtyGlass, "tui", cwd=project.folder, environ=project.environ) as again:
            again.wait_for("hello", "turn 1", "half a thought")
            assert "also open" not in again.text
            again.press("C-q")
            again.wait_ended()
