"""`pause`, `reopen`, `migrate`, `delete` and `replay`: what they print, and how they end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.cli.program import Project, agent_text, wait_until
from tests.cli.terminal import Terminal


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project of this module's own, because a pause would hold up others."""
    project = Project.make(tmp_path_factory.mktemp("life"))
    with project.up("--no-tui"):
        yield project


def closed(shop: Project) -> str:
    """A conversation that was closed."""
    conversation = str(shop.run("send", "notes", "hello", "--json").json["conversation"])
    assert shop.run("close", conversation).code == 0
    return conversation


def test_a_pause_holds_turns_and_says_so_until_it_is_resumed(shop: Project) -> None:
    paused = shop.run("pause", "notes", "--reason", "deploy", "--json")
    sent = shop.run("send", "notes", "hello")
    resumed = shop.run("pause", "notes", "--resume")
    conversation = sent.err.split()[1]
    again = shop.run("pause", "notes", "--resume")

    assert (paused.code, paused.json["paused"]) == (0, True)
    assert paused.json["pause"]["by"] == "ann"
    assert (sent.code, sent.out) == (4, "")
    assert "notes is paused by ann: deploy" in sent.err
    assert resumed.out.startswith("resumed notes (paused by ann at ")
    assert (again.code, again.out) == (1, "")
    assert "was not paused" in again.err
    wait_until(lambda: "You said hello" in shop.run("show", conversation).out)


def test_an_agent_that_is_not_there_is_not_paused(shop: Project) -> None:
    ran = shop.run("pause", "nots")

    assert (ran.code, ran.out) == (1, "")
    assert "did you mean 'notes'?" in ran.err


def test_a_closed_conversation_is_opened_again_and_goes_on(shop: Project) -> None:
    conversation = closed(shop)
    refused = shop.run("send", conversation, "more")

    opened = shop.run("reopen", conversation)
    sent = shop.run("send", conversation, "more")
    again = shop.run("reopen", conversation)

    assert refused.code == 1
    assert "capuchin reopen" in refused.err
    assert opened.out.startswith(f"opened {conversation} again")
    assert (sent.code, sent.out) == (0, "You said more\n")
    assert (again.code, again.out) == (1, "")
    assert "is open" in again.err
    shown = shop.run("show", conversation).out
    assert "opened again by ann" in shown


def test_migrate_takes_the_file_on_disk_at_the_next_turn(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]
    before = shop.run("show", conversation, "--json").json["definition"]
    shop.agent_file.write_text(agent_text().replace("1.0.0", "1.1.0"))
    wait_until(lambda: '"1.1.0"' in (shop.home / "agents.json").read_text())

    migrated = shop.run("migrate", conversation, "--json")
    kept = shop.run("show", conversation, "--json").json["definition"]
    shop.run("send", conversation, "more")
    after = shop.run("show", conversation, "--json").json["definition"]

    assert migrated.json["from"] == {"version": "1.0.0", "hash": before["hash"]}
    assert kept == before
    assert (before["version"], after["version"]) == ("1.0.0", "1.1.0")


def test_delete_refuses_where_nobody_can_be_asked(shop: Project) -> None:
    conversation = closed(shop)
    ran = shop.run("delete", conversation)

    assert (ran.code, ran.out) == (2, "")
    assert "--yes" in ran.err
    assert shop.run("show", conversation).code == 0


def test_delete_refuses_an_open_conversation_and_close_ends_it_first(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]
    refused = shop.run("delete", conversation, "--yes")
    deleted = shop.run("delete", conversation, "--yes", "--close", "--json")

    assert refused.code == 1
    assert "is open" in refused.err
    assert (deleted.code, deleted.json["runs"]) == (0, 1)
    gone = shop.run("show", conversation)
    assert (gone.code, gone.out) == (1, "")


def test_delete_asks_for_the_id_on_a_terminal(shop: Project) -> None:
    conversation = closed(shop)
    with Terminal("delete", conversation, cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("to delete it for good: ")
        terminal.type("yes")
        assert terminal.end() == 1
    assert shop.run("show", conversation).code == 0


def test_replay_of_live_and_saved_histories(shop: Project) -> None:
    conversation = shop.run("send", "notes", "look up", "--json").json["conversation"]
    folder = shop.folder / "saved"
    live = shop.run("replay", conversation, "--save", str(folder), "--json")
    saved = shop.run("replay", str(folder))
    [file] = folder.glob("*.json")
    value = json.loads(file.read_text())
    for event in value["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled and scheduled["activityType"]["name"] == "call_tool":
            scheduled["activityType"]["name"] = "call_something_else"
    (folder / "changed.json").write_text(json.dumps(value))

    bad = shop.run("replay", str(folder / "changed.json"), str(file))

    assert (live.code, live.json) == (0, {"v": 1, "replayed": 1, "bad": []})
    assert saved.out == "1 of 1 histories of 1 conversations go on with the installed code\n"
    assert bad.code == 1
    assert bad.out.startswith("1 of 2 histories")
    assert f"error: {conversation} (run " in bad.err
    assert "takes another course" in bad.err


def test_replay_with_another_key_says_so(shop: Project) -> None:
    conversation = shop.run("send", "notes", "hello", "--json").json["conversation"]
    folder = shop.folder / "keyed"
    shop.run("replay", conversation, "--save", str(folder))
    key = shop.folder / "other.key"
    key.write_text(os.urandom(32).hex())
    key.chmod(0o600)

    ran = shop.run("replay", str(folder), CAPUCHIN_KEY_FILE=str(key))

    assert (ran.code, ran.out.split()[0]) == (1, "0")
    assert "do not carry this project's seal" in ran.err
