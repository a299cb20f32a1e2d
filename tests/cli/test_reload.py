"""Hot reload: changed files and changed package code, while conversations go on."""

from __future__ import annotations

import os
import signal

import pytest

from tests.cli.program import PROBE, Project, agent_text, wait_until
from tests.cli.terminal import Terminal


@pytest.fixture
def editable(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose tool package is installed in editable form."""
    return Project.make(tmp_path_factory.mktemp("editable"), editable=True)


def test_a_changed_agent_is_used_by_new_conversations_only(project: Project) -> None:
    with project.up() as up:
        old = project.run("send", "notes", "hello", "--json").json["conversation"]
        project.agent_file.write_text(agent_text().replace("1.0.0", "1.1.0"))
        up.wait_said("notes 1.1.0 is reloaded")

        project.run("send", old, "again")
        new = project.run("send", "notes", "hello", "--json").json["conversation"]

        versions = [_version(project, conversation) for conversation in (old, new)]
    assert versions == ["1.0.0", "1.1.0"]


def test_a_broken_file_keeps_the_last_good_one_and_is_shown(project: Project) -> None:
    with project.up() as up:
        project.agent_file.write_text(agent_text() + "tols: []\n")
        up.wait_said("has no key 'tols'; new conversations still get the version before")
        agent = project.run("send", "notes", "hello", "--json").json
        assert agent["status"] == "idle"
        assert "tols" in (project.home / "agents.json").read_text()

        project.agent_file.write_text(agent_text())
        up.wait_said("is as it is served again")

    assert "tols" not in (project.home / "agents.json").read_text()


def test_a_new_file_is_served_and_a_removed_one_is_not(project: Project) -> None:
    other = project.folder / "agents" / "other.yaml"
    with project.up() as up:
        other.write_text(agent_text("other"))
        up.wait_said("other 1.0.0 is new")
        assert project.run("send", "other", "hello").code == 0

        other.unlink()
        up.wait_said("other is gone")

        assert project.run("send", "other", "hello").code == 1


def test_without_a_terminal_a_loosened_approval_is_not_used_and_a_warning_says_what_to_type(
    project: Project,
) -> None:
    with project.up() as up:
        project.agent_file.write_text(agent_text(asks="probe.child"))
        up.wait_said("to use it: stop `capuchin up`")

        ran = project.run("send", "notes", "note milk", "--json")
        assert "loosens its approval: probe.note would run without asking" in up.said
    assert ran.json["status"] == "waiting"


def test_on_a_terminal_a_loosened_approval_is_used_after_a_yes(project: Project) -> None:
    args = ("up", "--no-tui")
    with Terminal(*args, cwd=project.folder, environ=project.environ) as terminal:
        terminal.wait_for("ready at")
        project.agent_file.write_text(agent_text(asks="probe.child"))
        terminal.wait_for("type yes to use it")
        asked = project.run("send", "notes", "note milk", "--json")
        terminal.type("yes")
        terminal.wait_for("is reloaded")
        alone = project.run("send", "notes", "note milk", "--json")
        terminal.process.send_signal(signal.SIGTERM)

        assert terminal.end() == 0
    assert asked.json["status"] == "waiting"
    assert alone.json["status"] == "idle"


def test_a_yes_answers_the_question_on_the_screen_and_no_earlier_one(project: Project) -> None:
    args = ("up", "--no-tui")
    with Terminal(*args, cwd=project.folder, environ=project.environ) as terminal:
        terminal.wait_for("ready at")
        project.agent_file.write_text(agent_text(asks="probe.child"))
        terminal.wait_for("type yes to use it")
        project.agent_file.write_text(agent_text(asks="probe.post"))
        terminal.wait_for("type yes to use it")
        terminal.type("yes")
        terminal.wait_for("is reloaded")
        served = (project.home / "agents.json").read_text()
        terminal.process.send_signal(signal.SIGTERM)
        terminal.end()

    assert "asks before probe.post" in served


def test_anything_but_yes_keeps_the_version_before(project: Project) -> None:
    args = ("up", "--no-tui")
    with Terminal(*args, cwd=project.folder, environ=project.environ) as terminal:
        terminal.wait_for("ready at")
        project.agent_file.write_text(agent_text(asks="probe.child"))
        terminal.wait_for("type yes to use it")
        terminal.type("")
        terminal.wait_for("still get the version before")
        asked = project.run("send", "notes", "note milk", "--json")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.end()

    assert asked.json["status"] == "waiting"


def test_changed_package_code_runs_in_a_second_worker_and_the_first_finishes_its_call(
    editable: Project,
) -> None:
    project = editable
    code = project.packages / "capuchin_probe" / "__init__.py"
    with project.up() as up:
        [old] = up.workers()
        napping = project.run("send", "notes", "look first", "--json").json["conversation"]
        started = _nap(project)
        code.write_text(PROBE.replace("seen {word}", "now seen {word}"))
        up.wait_said("the new package code runs")

        looked = project.run("send", "notes", "look second", "--json").json["conversation"]
        assert _results(project, looked) == ["now seen second"]
        assert _results(project, napping) == ["seen first"]
        wait_until(lambda: _status(project, started) == "idle")
        assert _results(project, started) == ["rested"]
        wait_until(lambda: old not in up.workers() and not os.path.exists(f"/proc/{old}"))


def test_package_code_that_does_not_import_leaves_the_old_worker_at_work(
    editable: Project,
) -> None:
    project = editable
    code = project.packages / "capuchin_probe" / "__init__.py"
    with project.up() as up:
        before = up.workers()
        code.write_text("raise RuntimeError('half written')\n")
        up.wait_said("the package code before is still the one that runs")
        assert "half written" in up.said
        looked = project.run("send", "notes", "look here", "--json").json["conversation"]
        assert _results(project, looked) == ["seen here"]
        assert up.workers() == before


def test_package_code_that_loosens_a_tool_is_asked_about(editable: Project) -> None:
    project = editable
    project.agent_file.write_text(
        agent_text().replace("approval: {policy: denylist, tools: [probe.note]}\n", "")
    )
    code = project.packages / "capuchin_probe" / "__init__.py"
    with project.up() as up:
        code.write_text(
            PROBE.replace('@tool(effect="write")\ndef note', '@tool(effect="read")\ndef note')
        )
        up.wait_said("probe.note would run without asking")

        ran = project.run("send", "notes", "note milk", "--json")
    assert ran.json["status"] == "waiting"


def _nap(project: Project) -> str:
    """Start a conversation that naps, and return it once it does."""
    from tests.cli.test_up import _start

    conversation = _start(project, "nap")
    wait_until((project.data / "nap-began").exists)
    return conversation


def _version(project: Project, conversation: str) -> str:
    version: str = project.run("show", conversation, "--json").json["definition"]["version"]
    return version


def _status(project: Project, conversation: str) -> str:
    """How it stands; empty while nobody can say, as when a worker has just been stopped."""
    ran = project.run("show", conversation, "--json")
    return str(ran.json["status"]) if ran.out else ""


def _results(project: Project, conversation: str) -> list[str]:
    events = project.run("show", conversation, "--json").json["events"]
    return [e["text"] for e in events if e["kind"] == "tool_ended"]
