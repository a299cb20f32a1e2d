"""The same verbs on a server that is not ours: found by Temporal's settings, served by workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from capuchin_yaml.client.dev_server import free_ports, temporal_program
from tests.cli.program import PROGRAM, Project, Ran, run, wait_until
from tests.e2e.demo import kill, start, wait_idle
from tests.e2e.street import street_project

NAMESPACE = "street"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A stock server with a namespace of ours and nothing else prepared."""
    port, http, metrics = free_ports((0, 0, 0))
    command = [str(temporal_program()), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
    command += ["--port", str(port), "--http-port", str(http), "--metrics-port", str(metrics)]
    command += ["--namespace", NAMESPACE, "--log-level", "never"]
    log = tmp_path_factory.mktemp("cluster") / "log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def cluster(address: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose operator names that server and a key."""
    project = street_project(tmp_path_factory.mktemp("deployed"))
    key = project.folder / "project-key"
    key.write_text("5a" * 32 + "\n")
    key.chmod(0o600)
    project.environ |= {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        "CAPUCHIN_KEY_FILE": str(key),
        "CAPUCHIN_PROJECT": "street",
    }
    return project


class WorkerProcess:
    """One running `capuchin worker`."""

    def __init__(self, project: Project, name: str) -> None:
        self.log = project.folder / f"worker-{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, "worker", "agents"],
                cwd=project.folder,
                env=project.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def said(self) -> str:
        """What it has written so far."""
        return self.log.read_text()

    def wait_polling(self) -> None:
        """Wait until it takes work."""
        wait_until(
            lambda: "polling" in self.said or self.process.poll() is not None, lambda: self.said
        )
        assert "polling capuchin-yaml.street" in self.said

    def end(self, number: int) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextlib.contextmanager
def worker(project: Project, name: str) -> Iterator[WorkerProcess]:
    """A worker that polls; ended at the end."""
    running = WorkerProcess(project, name)
    try:
        running.wait_polling()
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_two_workers_share_the_conversations_and_one_may_be_killed_in_the_middle(
    cluster: Project,
) -> None:
    """Case: one worker's death fails every open turn although another one is ready."""
    with worker(cluster, "first") as first, worker(cluster, "second") as second:
        with ThreadPoolExecutor(4) as pool:
            talks = list(pool.map(lambda n: start(cluster, "street", f"slow {n}"), range(6)))
        kill(first.process.pid)
        for talk in talks:
            wait_idle(cluster, talk)
        answers = [cluster.run("show", talk).out for talk in talks]

        for n, answer in enumerate(answers):
            assert f"{n} at last" in answer
            assert "ended" not in answer
        signed = cluster.run("send", talks[0], "sign Ann", "--json").json["items"][0]
        assert cluster.run("inbox", "approve", signed["id"], "--digest", signed["digest"]).code == 0
        wait_idle(cluster, talks[0])
        assert second.end(signal.SIGTERM) == 0
    assert "stopped" in second.said
    assert (cluster.folder / ".capuchin" / "data" / "street" / "signed").read_text() == "Ann"


def test_without_a_worker_every_verb_says_so_soon_and_what_to_type(cluster: Project) -> None:
    """Case: with no poller a client waits for ever, or ends with an obscure error."""
    with worker(cluster, "short") as short:
        talk = cluster.run("send", "street", "hello", "--json").json["conversation"]
        short.end(signal.SIGTERM)

    verbs = (["send", talk, "again"], ["send", "street", "hello"], ["show", talk])
    with ThreadPoolExecutor(3) as pool:
        for ran, took_s in pool.map(lambda verb: timed(cluster, verb), verbs):
            assert ran.code == 3
            assert "capuchin worker" in ran.err
            assert "deadline" not in ran.err
            assert took_s < 20
    assert talk in cluster.run("list").out
    assert cluster.run("inbox").code == 0
    with worker(cluster, "again"):
        assert "You said hello" in cluster.run("show", talk).out


def timed(project: Project, verb: list[str]) -> tuple[Ran, float]:
    """How a verb ended, and the seconds it took."""
    began = time.monotonic()
    return project.run(*verb), time.monotonic() - began


def test_a_second_conversation_with_an_agent_is_started_by_its_name(cluster: Project) -> None:
    with worker(cluster, "named"):
        talks = {cluster.run("send", "street", "hi", "--json").json["conversation"] for _ in "12"}

    assert len(talks) == 2


def test_a_worker_never_rehearses_and_says_what_is_missing(cluster: Project) -> None:
    environ = {k: v for k, v in cluster.environ.items() if k != "CAPUCHIN_MODEL"}

    ran = run("worker", "agents", cwd=cluster.folder, environ=environ)

    assert ran.code == 1
    assert "a worker does not rehearse" in ran.err


def test_a_worker_with_another_key_does_not_start_beside_conversations_it_would_fail(
    cluster: Project,
) -> None:
    other = cluster.folder / "another-key"
    other.write_text("a5" * 32 + "\n")
    other.chmod(0o600)
    stranger = Project(
        cluster.folder, cluster.home, cluster.environ | {"CAPUCHIN_KEY_FILE": str(other)}
    )
    with worker(cluster, "ours"):
        talk = start(cluster, "street", "hello")
        wait_idle(cluster, talk)

        refused = stranger.run("worker", "agents")
        told = stranger.run("doctor", "agents", "--json")
        ours = cluster.run("doctor", "agents", "--json")

        wait_idle(cluster, start(cluster, "street", "hello"))
    assert refused.code == 1
    assert "sealed with another key" in refused.err
    found = {f["what"]: f for f in told.json["findings"]}["key"]
    assert (told.code, found["verdict"]) == (1, "missing")
    assert "CAPUCHIN_KEY_FILE" in found["text"]
    assert {f["what"]: f["verdict"] for f in ours.json["findings"]}["key"] == "ok"
    assert "CAPUCHIN_KEY_FILE" in refused.err
    assert "polling" not in refused.err


def test_a_namespace_that_is_missing_is_named_with_its_command(cluster: Project) -> None:
    ran = cluster.run("worker", "agents", TEMPORAL_NAMESPACE="nowhere")

    assert ran.code == 3
    assert "temporal operator namespace create --namespace nowhere" in ran.err


def test_up_uses_the_named_server_and_starts_none(cluster: Project, tmp_path: Path) -> None:
    with cluster.up("--no-tui", CAPUCHIN_HOME=str(tmp_path / "state")) as up:
        assert f"ready at {cluster.environ['TEMPORAL_ADDRESS']}" in up.said
        assert not os.path.exists(tmp_path / "state" / "temporal.db")
        sent = cluster.run("send", "street", "hello", CAPUCHIN_HOME=str(tmp_path / "state"))
        assert sent.out == "You said hello\n"
