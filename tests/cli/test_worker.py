"""`capuchin worker`: a worker alone, which drains and never rehearses."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.program import PROGRAM, Project, wait_until
from tests.cli.test_up import _start, _status


@contextmanager
def working(
    project: Project, *args: str, **environ: str
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A worker process and the file it writes to, once it polls."""
    log = project.folder / f"worker-{len(list(project.folder.glob('worker-*')))}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*PROGRAM, "worker", *args],
            cwd=project.folder,
            env={**project.environ, **environ},
            stdout=out,
            stderr=out,
        )
    try:
        wait_until(
            lambda: "polling" in log.read_text() or process.poll() is not None, log.read_text
        )
        assert process.poll() is None, log.read_text()
        yield process, log
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_two_workers_serve_one_project_and_one_may_be_killed(project: Project) -> None:
    with project.up() as up, working(project, "agents") as (first, _):
        asked = project.run("send", "notes", "note milk", "--json").json
        [item] = asked["items"]
        os.kill(first.pid, signal.SIGKILL)
        for pid in up.workers():
            os.kill(pid, signal.SIGKILL)
        with working(project, "agents"):
            ran = project.run("inbox", "approve", item["id"], "--digest", item["digest"])
            wait_until(lambda: _status(project, asked["conversation"]) == "idle")

    assert ran.code == 0
    assert (project.data / "notes").read_text() == "milk\n"


def test_sigterm_lets_the_running_call_finish(project: Project) -> None:
    with project.up():
        # Of its own project, so that the worker of `up` takes none of its calls.
        project.environ["CAPUCHIN_PROJECT"] = "alone"
        with working(project, "agents") as (process, log):
            conversation = _start(project, "nap")
            wait_until((project.data / "nap-began").exists)
            process.send_signal(signal.SIGTERM)

            assert process.wait(30) == 0
            assert (project.data / "nap-ended").exists()
            assert "stopped" in log.read_text()
        with working(project, "agents"):
            wait_until(
                lambda: _status(project, conversation) == "idle",
                lambda: project.run("show", conversation).out,
            )


def test_ctrl_c_is_130(shop: Project) -> None:
    with working(shop, "agents", CAPUCHIN_PROJECT="alone") as (process, log):
        process.send_signal(signal.SIGINT)

        assert process.wait(30) == 130
        assert "Traceback" not in log.read_text()


def test_without_a_key_it_does_not_start(shop: Project) -> None:
    ran = shop.run("worker", "agents", CAPUCHIN_MODEL="anthropic:claude-opus-4-8")

    assert ran.code == 1
    assert "ANTHROPIC_API_KEY is not set; a worker does not rehearse" in ran.err


def test_without_a_model_it_does_not_start_and_says_how_to_rehearse_on_purpose(
    shop: Project,
) -> None:
    ran = shop.run("worker", "agents", CAPUCHIN_MODEL="")

    assert ran.code == 1
    assert "CAPUCHIN_MODEL=rehearsal" in ran.err


def test_a_file_with_mistakes_is_refused(project: Project) -> None:
    project.agent_file.write_text("apiVersion: capuchin/v1\ntols: []\n")

    ran = project.run("worker", "agents")

    assert ran.code == 1
    assert "error[unknown-key]" in ran.err


def test_without_a_server_it_is_3(project: Project) -> None:
    ran = project.run("worker", "agents")

    assert ran.code == 3
    assert "capuchin up" in ran.err


def test_without_a_path_it_is_wrong_usage(project: Project) -> None:
    assert project.run("worker").code == 2
