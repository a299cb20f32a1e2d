"""`capuchin up --detach` and `capuchin down`: started here, ended from anywhere."""

from __future__ import annotations

import os
import signal

from tests.cli.program import Project, processes_of, wait_until


def test_detached_it_goes_on_until_down(project: Project) -> None:
    started = project.run("up", "--detach")
    try:
        assert (started.code, started.out) == (0, "")
        assert "capuchin down" in started.err
        assert project.run("send", "notes", "hello").code == 0
    finally:
        ended = project.run("down")

    assert ended.code == 0
    assert processes_of(project.folder) == {}
    again = project.run("down")
    assert (again.code, again.err) == (0, "nothing runs for this project\n")


def test_detaching_from_a_broken_file_says_its_mistakes_and_leaves_nothing(
    project: Project,
) -> None:
    project.agent_file.write_text("apiVersion: capuchin/v1\ntols: []\n")

    ran = project.run("up", "--detach")

    assert ran.code == 1
    assert "notes.yaml:2:1" in ran.err
    assert processes_of(project.folder) == {}


def test_down_ends_an_up_of_another_terminal_too(project: Project) -> None:
    with project.up() as up:
        ran = project.run("down")

        assert ran.code == 0
        assert up.process.wait(30) == 0
    assert processes_of(project.folder) == {}


def test_down_now_does_not_wait_for_a_running_call(project: Project) -> None:
    with project.up("--grace", "120s") as up:
        project.run("send", "notes", "hello")
        with project.sending("long nap"):
            wait_until((project.data / "nap-began").exists)

            ran = project.run("down", "--now")

        assert ran.code == 0
        assert up.process.wait(30) == 0
    assert not (project.data / "nap-ended").exists()


def test_what_a_killed_up_left_of_a_detached_server_is_ended(project: Project) -> None:
    with project.up() as up:
        os.kill(up.process.pid, signal.SIGKILL)
        up.process.wait()
        ran = project.run("down")

    assert ran.code == 0
    wait_until(lambda: not processes_of(project.folder))
