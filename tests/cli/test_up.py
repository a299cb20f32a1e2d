"""`capuchin up` without a TUI: what it starts, what it says, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import (
    PROGRAM,
    Project,
    Up,
    agent_text,
    is_alive,
    processes_of,
    run,
    wait_until,
)


def children_of(up: Up, project: Project) -> dict[int, str]:
    """Every process that `up` has brought along."""
    return {p: w for p, w in processes_of(project.folder).items() if p != up.process.pid}


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)]
)
def test_a_signal_ends_everything_and_leaves_nothing(
    number: int, code: int, project: Project
) -> None:
    with project.up() as up:
        assert children_of(up, project)
        left = up.end(number)

    assert left == code
    assert children_of(up, project) == {}
    assert not (project.home / "worker.json").exists()


def test_after_kill_9_worker_and_server_end_by_themselves(project: Project) -> None:
    with project.up() as up:
        up.process.kill()
        up.process.wait()

        wait_until(lambda: not children_of(up, project), lambda: str(children_of(up, project)))

    with project.up():
        assert project.run("send", "notes", "hello").out == "You said hello\n"


def test_ctrl_c_during_the_start_leaves_nothing(project: Project) -> None:
    for said in ("reading the agents", "starting the server", "starting the worker"):
        with Up(project, [], {}) as up:
            up.wait_said(said)

            code = up.end(signal.SIGINT)

        assert code == 130
        assert "Traceback" not in up.said
        # The server ends with its guard, a moment later.
        wait_until(lambda: not children_of(up, project), lambda: str(children_of(up, project)))


def test_nohup_is_respected(project: Project) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        up = Up(project, [], {})
    finally:
        signal.signal(signal.SIGHUP, before)
    with up:
        up.wait_ready()
        up.process.send_signal(signal.SIGHUP)

        assert project.run("send", "notes", "hello").code == 0
        assert up.end(signal.SIGTERM) == 0


def test_ctrl_c_twice_does_not_wait_for_a_running_call(project: Project) -> None:
    with project.up("--grace", "60s") as up:
        conversation = _start(project, "long nap")
        wait_until((project.data / "nap-began").exists)
        up.process.send_signal(signal.SIGINT)
        up.wait_said("stopping")

        code = up.end(signal.SIGINT)

    assert code == 130
    assert not (project.data / "nap-ended").exists()
    assert children_of(up, project) == {}
    assert conversation


def test_a_running_call_finishes_in_the_grace_time_and_its_result_is_kept(
    project: Project,
) -> None:
    with project.up("--grace", "30s") as up:
        conversation = _start(project, "nap")
        wait_until((project.data / "nap-began").exists)

        assert up.end(signal.SIGTERM) == 0
        assert (project.data / "nap-ended").exists()

    with project.up():
        wait_until(lambda: _status(project, conversation) == "idle")
        shown = project.run("show", conversation, "--json").json
    results = [e for e in shown["events"] if e["kind"] == "tool_ended"]
    assert [(r["status"], r["text"]) for r in results] == [("ok", "rested")]


@pytest.mark.parametrize(
    ("choice", "typed", "status", "text"),
    [
        ("happened", ("--result", "it was posted"), "ok", "it was posted"),
        ("failed", (), "error", "The call failed."),
    ],
)
def test_a_call_cut_off_at_the_end_of_the_grace_time_asks_a_person_what_happened(
    choice: str, typed: tuple[str, ...], status: str, text: str, project: Project
) -> None:
    with project.up("--grace", "1s") as up:
        conversation = _start(project, "post slow")
        wait_until((project.data / "posts").exists)
        up.end(signal.SIGTERM)

    with project.up():
        wait_until(lambda: _status(project, conversation) == "waiting")
        [item] = project.run("inbox", "--json").json
        told = project.run("send", conversation, "hello")
        answered = project.run("inbox", "answer", item["id"], choice, *typed)
        wait_until(lambda: _status(project, conversation) == "idle")
        events = project.run("show", conversation, "--json").json["events"]

    assert item["kind"] == "outcome"
    assert told.code == 4
    assert "capuchin inbox answer" in told.err
    assert answered.code == 0
    last = [e for e in events if e["kind"] == "tool_ended"][-1]
    assert (last["status"], text in last["text"]) == (status, True), last
    assert (project.data / "posts").read_text() == "slow\n"


def test_a_program_that_a_tool_left_running_ends_with_up(project: Project) -> None:
    with project.up() as up:
        item = project.run("send", "notes", "child", "--json").json
        assert item["status"] == "idle", item
        left = int((project.data / "child").read_text())
        assert is_alive(left)

        up.end(signal.SIGINT)

    assert not is_alive(left)


def test_an_approval_outlives_worker_server_and_up(project: Project) -> None:
    with project.up() as up:
        asked = project.run("send", "notes", "note milk", "--json").json
        before = project.run("inbox", "--json").json
        for pid in up.workers():
            os.kill(pid, signal.SIGKILL)
        up.wait_said("the worker runs again")
        server = json.loads((project.home / "server.json").read_text())
        os.kill(server["pid"], signal.SIGKILL)
        up.wait_said("the server runs again")
        assert project.run("inbox", "--json").json == before
        up.process.kill()
        up.process.wait()
    wait_until(lambda: not children_of(up, project))

    with project.up():
        assert project.run("inbox", "--json").json == before
        [item] = before
        decided = project.run("inbox", "approve", item["id"], "--digest", item["digest"])
        assert decided.code == 0
        wait_until(lambda: _status(project, asked["conversation"]) == "idle")
    assert (project.data / "notes").read_text() == "milk\n"


def test_every_mistake_of_every_file_is_said_and_nothing_is_started(project: Project) -> None:
    (project.folder / "agents" / "bad.yaml").write_text("apiVersion: capuchin/v1\ntols: []\n")
    (project.folder / "agents" / "worse.yaml").write_text(
        agent_text("worse").replace("probe.look", "probe.loook")
    )

    ran = project.run("up")

    assert (ran.code, ran.out) == (1, "")
    assert "bad.yaml:2:1" in ran.err
    assert "worse.yaml" in ran.err
    assert "probe.look" in ran.err
    assert not project.home.exists()


def test_a_project_that_was_up_starts_its_server_while_the_agents_are_read(
    project: Project,
) -> None:
    """What a restart takes is what its people wait for after a crash."""
    with project.up() as up:
        up.end(signal.SIGTERM)
    module = project.packages / "capuchin_probe" / "__init__.py"
    module.write_text("import time\nopen('importing', 'w').close()\ntime.sleep(300)\n")
    with Up(project, ["--grace", "60s"], {}) as up:
        wait_until((project.folder / "importing").exists)
        wait_until(lambda: any("start-dev" in words for words in children_of(up, project).values()))
        assert "starting the server" not in up.said

        code = up.end(signal.SIGINT)

    assert code == 130
    wait_until(lambda: not children_of(up, project), lambda: str(children_of(up, project)))


def test_a_mistake_in_a_project_that_was_up_leaves_no_server(project: Project) -> None:
    with project.up() as up:
        up.end(signal.SIGTERM)
    project.agent_file.write_text("apiVersion: capuchin/v1\ntols: []\n")

    ran = project.run("up")

    assert ran.code == 1
    assert "notes.yaml:2:1" in ran.err
    wait_until(lambda: not processes_of(project.folder), lambda: str(processes_of(project.folder)))
    project.agent_file.write_text(agent_text())
    with project.up():
        assert project.run("send", "notes", "hello").out == "You said hello\n"


def test_two_files_with_one_name_are_refused(project: Project) -> None:
    (project.folder / "agents" / "second.yaml").write_text(agent_text())

    ran = project.run("up")

    assert ran.code == 1
    assert "the name 'notes' is taken by agents/notes.yaml" in ran.err


def test_a_server_that_the_environment_names_is_used_and_left_running(
    project: Project, shop: Project
) -> None:
    port = json.loads((shop.home / "server.json").read_text())["port"]
    project.environ["TEMPORAL_ADDRESS"] = f"127.0.0.1:{port}"

    with project.up() as up:
        assert project.run("send", "notes", "hello").out == "You said hello\n"
        up.end(signal.SIGTERM)

    assert not (project.home / "server.json").exists()
    assert processes_of(project.folder) == {}
    assert shop.run("send", "notes", "hello").code == 0


def test_a_forced_model_that_nobody_offers_is_named(project: Project) -> None:
    ran = project.run("up", CAPUCHIN_MODEL="antropic:claude")

    assert ran.code == 1
    assert "error: CAPUCHIN_MODEL: no model provider is named 'antropic'" in ran.err


def test_nothing_to_run_is_wrong_usage(tmp_path: Path) -> None:
    ran = run("up", cwd=tmp_path)

    assert (ran.code, ran.out) == (2, "")
    assert "capuchin init" in ran.err


def test_a_second_up_is_refused_and_says_what_to_type(shop: Project) -> None:
    ran = shop.run("up")

    assert ran.code == 1
    assert "capuchin tui" in ran.err
    assert "capuchin down" in ran.err


def test_without_a_key_up_says_plainly_that_it_rehearses(project: Project) -> None:
    text = project.agent_file.read_text()
    project.agent_file.write_text(text + "model: anthropic:claude-opus-4-8\n")
    project.environ.pop("CAPUCHIN_MODEL")

    with project.up() as up:
        said = up.said
        answer = project.run("send", "notes", "hello", "--json")

    assert "rehearsal answers for notes" in said
    assert "ANTHROPIC_API_KEY is not set" in said
    assert answer.json["rehearsal"] is True
    assert "rehearsal" in answer.err


def test_other_terminals_are_told_the_agents(shop: Project) -> None:
    [agent] = json.loads((shop.home / "agents.json").read_text())["agents"]

    assert agent["name"] == "notes"
    assert agent["variables"]["who"]["default"] == "somebody"
    assert agent["sentence"] == "denylist: asks before probe.note; everything else runs"
    assert (shop.home / "agents.json").stat().st_mode & 0o777 == 0o600


def test_the_web_ui_is_opened_on_request_only_and_what_that_opens_is_said(
    project: Project, shop: Project
) -> None:
    with project.up("--temporal-ui") as up:
        assert "Temporal's Web UI is open at http://127.0.0.1:" in up.said
        assert "can read and end conversations" in up.said

    assert json.loads((shop.home / "server.json").read_text())["ui_port"] == 0


def test_a_folder_that_cannot_be_written_is_named_with_the_setting(project: Project) -> None:
    blocked = project.folder / "file"
    blocked.write_text("")

    ran = project.run("up", CAPUCHIN_HOME=str(blocked / "state"))

    assert ran.code == 1
    assert str(blocked) in ran.err
    assert "CAPUCHIN_HOME" in ran.err
    assert "Traceback" not in ran.err


def test_a_module_in_the_current_folder_is_never_imported(project: Project) -> None:
    for name in ("yaml.py", "temporalio.py", "capuchin_yaml.py"):
        (project.folder / name).write_text("raise SystemExit('imported')\n")

    with (project.folder / "out").open("wb") as out:
        # The console script, as a person starts it: `python -m` would look here first.
        process = subprocess.Popen(
            [str(Path(PROGRAM[0]).parent / "capuchin"), "up"],
            cwd=project.folder,
            env=project.environ,
            stdout=out,
            stderr=out,
        )
    try:
        said = project.folder / "out"
        wait_until(lambda: "ready at" in said.read_text() or process.poll() is not None)
        assert "ready at" in said.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_ctrl_c_during_an_import_that_hangs_ends_at_once(project: Project) -> None:
    module = project.packages / "capuchin_probe" / "__init__.py"
    module.write_text("import time\nopen('importing', 'w').close()\ntime.sleep(300)\n")
    with Up(project, ["--grace", "60s"], {}) as up:
        wait_until((project.folder / "importing").exists)

        code = up.end(signal.SIGINT)

    assert code == 130
    assert children_of(up, project) == {}


def _start(project: Project, text: str) -> str:
    """Send a message without waiting for its answer, and return the conversation."""
    with project.sending(text) as conversation:
        return conversation


def _status(project: Project, conversation: str) -> str:
    """How it stands; empty while nobody can say, as when a worker has just been stopped."""
    ran = project.run("show", conversation, "--json")
    return str(ran.json["status"]) if ran.out else ""
