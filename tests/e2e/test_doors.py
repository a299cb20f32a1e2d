"""Who has no key, or is not this user, moves nothing, starts nothing, and breaks nothing."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from capuchin_yaml.client.processes import listeners
from capuchin_yaml.engine import contract
from tests.cli.program import Project, processes_of
from tests.e2e.demo import WISH, failed_tasks, history, refunds, server_record
from tests.e2e.stranger import NOBODY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def item(demo: Project) -> dict[str, Any]:
    """A refund that waits for a person."""
    sent = demo.run("send", "billing", WISH, "--json").json
    [item] = sent["items"]
    return {**item, "conversation": sent["conversation"], "refunds": refunds(demo)}


@pytest.fixture
def nobodys_home() -> Iterator[Path]:
    """A folder that the other user owns, with a key of its own."""
    folder = Path(tempfile.mkdtemp(prefix="capuchin-nobody-"))
    key = folder / "own-key"
    key.write_text("ab" * 32 + "\n")
    key.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.chown(key, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


async def assert_untouched(demo: Project, item: dict[str, Any]) -> None:
    """The item waits as it did, nothing ran, and no workflow task failed."""
    waiting = {row["id"]: row for row in demo.run("inbox", "--json").json}
    assert waiting[item["id"]]["digest"] == item["digest"]
    assert refunds(demo) == item["refunds"]
    assert failed_tasks(await history(demo, item["conversation"])) == 0


def decide_payload(item: dict[str, Any]) -> dict[str, Any]:
    """A decision as somebody without the key would write it."""
    return {
        "conversation": item["conversation"],
        "id": uuid.uuid4().hex,
        "by": "eve",
        "client": "x",
        "sent_at": "2026-11-30T00:00:00+00:00",
        "item": item["id"],
        "digest": item["digest"],
        "choice": "approve",
        "reason": "",
        "result": "",
    }


def ports_of(demo: Project) -> set[int]:
    """Every port that a process of this project listens on."""
    ports = {p for name, p in server_record(demo).items() if name.endswith("port") and p}
    for pid in processes_of(demo.folder):
        ports |= {listener.port for listener in listeners(pid) or ()}
    return ports


def posted(port: int, path: str, body: str) -> str:
    """What a port answers to the request that a page of another origin can make."""
    request = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall((request + body).encode())
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except OSError:
            pass
    return answer.decode(errors="replace")


async def test_no_port_takes_a_decision_from_a_web_page(
    demo: Project, item: dict[str, Any]
) -> None:
    flow = f"workflows/{item['conversation']}"
    update = {"input": {"name": "decide", "args": [decide_payload(item)]}}
    paths = [
        f"{root}/namespaces/default/{flow}/{act}"
        for root in ("/api/v1", "")
        for act in ("update/decide", "signal/decide", "terminate", "cancel")
    ]
    ports = ports_of(demo)
    assert {server_record(demo)["port"], server_record(demo)["http_port"]} <= ports

    answers = {
        (port, path): posted(port, path, json.dumps({"request": update, **update}))
        for port in ports
        for path in paths
    }

    for door, answer in answers.items():
        if answer.startswith("HTTP/"):
            assert answer.split()[1] in ("403", "404"), (door, answer)
    await assert_untouched(demo, item)


@workflow.defn(name="Burglar", sandboxed=False)
class Burglar:
    """Has our activities run from a workflow of its own."""

    @workflow.run
    async def run(self, queue: str, request: dict[str, Any]) -> list[str]:
        """What each activity answered; empty when it ran."""
        answers = []
        for name in (contract.CALL_TOOL, contract.CALL_MODEL, contract.PIN_DEFINITION):
            try:
                await workflow.execute_activity(
                    name,
                    request,
                    task_queue=queue,
                    start_to_close_timeout=timedelta(seconds=10),
                    retry_policy=RetryPolicy(maximum_attempts=1),
                )
                answers.append("")
            except ActivityError as error:
                answers.append(str(error.cause))
        return answers


async def test_a_client_without_the_key_decides_starts_and_runs_nothing(
    demo: Project, item: dict[str, Any]
) -> None:
    eve = await Client.connect(f"127.0.0.1:{server_record(demo)['port']}")
    queue = contract.task_queue(project_of(demo))
    handle = eve.get_workflow_handle(item["conversation"])

    for name in (contract.DECIDE, contract.SEND_MESSAGE, contract.CANCEL_TURN, contract.CLOSE):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(name, decide_payload(item))
        assert "seal" in str(refused.value.cause)
    with pytest.raises(WorkflowQueryFailedError, match="seal"):
        await handle.query(contract.STATE, {"conversation": item["conversation"], "start": 0})
    started = await eve.start_workflow(
        contract.WORKFLOW,
        {"agent": "billing", "conversation": "eve"},
        id=f"eve-{uuid.uuid4().hex}",
        task_queue=queue,
    )
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(started.result(), 20)
    own_queue = f"eve-{uuid.uuid4().hex}"
    request = {
        "conversation": item["conversation"],
        "tool": "billing.issue_refund",
        "arguments": json.dumps(item["args"]),
        "call_id": item["id"],
    }
    async with Worker(
        eve, task_queue=own_queue, workflows=[Burglar], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        answers = await eve.execute_workflow(
            "Burglar", args=[queue, request], id=own_queue, task_queue=own_queue, result_type=list
        )

    assert all(answers)
    await assert_untouched(demo, item)


def project_of(demo: Project) -> str:
    """The project's name."""
    name: str = json.loads((demo.home / "home.json").read_text())["project"]
    return name


async def test_another_user_reads_nothing_and_decides_nothing(
    demo: Project, item: dict[str, Any], nobodys_home: Path
) -> None:
    files = [str(path) for path in demo.home.rglob("*") if path.is_file()]
    digest = ("--digest", item["digest"])
    approve = ["inbox", "approve", item["id"], *digest]
    here = tried_by_nobody(demo.folder, nobodys_home, [["list"], approve], files)
    abroad = tried_by_nobody(
        nobodys_home,
        nobodys_home,
        [approve, ["send", item["conversation"], "hello"], ["send", "billing", WISH]],
        [],
        TEMPORAL_ADDRESS=f"127.0.0.1:{server_record(demo)['port']}",
        CAPUCHIN_PROJECT=project_of(demo),
        CAPUCHIN_KEY_FILE=str(nobodys_home / "own-key"),
    )

    modes = {stat.S_IMODE(path.stat().st_mode) for path in map(Path, files)}
    assert modes == {0o600}
    assert stat.S_IMODE(demo.home.stat().st_mode) == 0o700
    if os.geteuid() == 0:
        assert here["uid"] == NOBODY
        assert here["read"] == []
        for ran in here["ran"]:
            assert (ran["code"], ran["out"]) == (1, "")
            assert f"{demo.home} belongs to another user" in ran["err"]
    for ran in abroad["ran"]:
        assert ran["code"] in (1, 3), ran
        assert ran["out"] == ""
    await assert_untouched(demo, item)


def tried_by_nobody(
    folder: Path, home: Path, verbs: list[list[str]], files: list[str], **environ: str
) -> dict[str, Any]:
    """What comes of verbs run in `folder` by another user whose own folder is `home`."""
    job = {
        "folder": str(folder),
        "home": str(home),
        "environ": {"HOME": str(home), "TEMPORAL_CONFIG_FILE": os.devnull, **environ},
        "verbs": verbs,
        "files": files,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.stranger", json.dumps(job)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TEMPORAL_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_state_folder_that_came_with_a_download_is_refused_by_name(
    demo: Project, tmp_path: Path
) -> None:
    download = tmp_path / "download"
    shutil.copytree(demo.folder / "agents", download / "agents")
    shutil.copytree(
        demo.home,
        download / ".capuchin",
        ignore=shutil.ignore_patterns("*.pipe", "*.lock"),
    )
    theirs = Project(download, download, {**demo.environ, "HOME": str(download)})

    for verb in (["up"], ["list"], ["inbox"], ["send", "billing", "hello"], ["down"], ["tui"]):
        ran = theirs.run(*verb)

        assert ran.code != 0
        assert ran.out == ""
        if verb != ["tui"]:  # refused before that: no terminal is here
            assert str(download / ".capuchin") in ran.err
            assert "rm -r" in ran.err
    doctor = theirs.run("doctor")
    assert doctor.code == 1
    assert str(download / ".capuchin") in doctor.out
    assert theirs.run("validate").code == 0
