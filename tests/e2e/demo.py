"""The demo shop as a person has it: the shipped agents, no key, and the ledger of refunds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from capuchin_yaml.client.connection import connect, connect_temporal
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.key import read_named_key
from capuchin_yaml.client.target import Target
from capuchin_yaml.errors import ServerUnavailable, WorkerUnavailable
from tests.cli.program import (
    PROGRAM,
    Project,
    clean_environ,
    is_alive,
    processes_of,
    wait_until,
)

T = TypeVar("T")
AGENTS = Path(__file__).parents[2] / "agents"
WISH = "I need a refund for order A-1001"


def demo_project(folder: Path) -> Project:
    """A project with the shipped agents; without a key they are rehearsed."""
    shutil.copytree(AGENTS, folder / "agents")
    return Project(folder, folder, clean_environ(folder))


def refunds(project: Project) -> list[tuple[str, int]]:
    """Order and cents of each row in the ledger."""
    path = project.home / "data" / "billing" / "ledger.db"
    if not path.exists():
        return []
    with sqlite3.connect(path) as db:
        return db.execute("SELECT order_id, amount_cents FROM refunds").fetchall()


def status_of(project: Project, conversation: str) -> str:
    """How a conversation stands, as its own workflow says."""

    async def ask() -> str:
        return (await (await fleet_of(project)).conversation(conversation).state()).status

    return _elsewhere(ask())


def wait_status(project: Project, conversation: str, status: str) -> None:
    """Wait until a conversation stands like this; server and workers may be away meanwhile."""

    def is_so() -> bool:
        with contextlib.suppress(ServerUnavailable, WorkerUnavailable):
            return status_of(project, conversation) == status
        return False

    wait_until(is_so)


def wait_idle(project: Project, conversation: str) -> None:
    """Wait until the agent has answered."""
    wait_status(project, conversation, "idle")


def start(project: Project, agent: str, text: str) -> str:
    """Send a message without waiting for its answer, and return the conversation."""
    with subprocess.Popen(
        [*PROGRAM, "send", agent, text],
        cwd=project.folder,
        env=project.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("conversation "), first + process.stderr.read()
        conversation = first.split()[1]
        process.terminate()
    return conversation


def server_record(project: Project) -> dict[str, int]:
    """What the state folder says of the server."""
    record: dict[str, int] = json.loads((project.home / "server.json").read_text())
    return record


def kill(*pids: int) -> None:
    """End processes as `kill -9` does, and wait until they are gone."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def kill_everything(project: Project) -> None:
    """End `up`, its workers, the server and the server's guard at once, as `kill -9` does."""
    up = json.loads((project.home / "worker.json").read_text())
    server = server_record(project)
    workers = [worker["pid"] for worker in up["workers"]]
    for pid in (up["pid"], *workers, server["pid"], server["guard_pid"]):
        with contextlib.suppress(ProcessLookupError):  # some follow `up` by themselves
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(project.folder), lambda: str(processes_of(project.folder)))


async def fleet_of(project: Project) -> Capuchin:
    """The project's conversations, reached with the project's key."""
    address = project.environ.get("TEMPORAL_ADDRESS")
    if address is None:
        return await connect(Home.find(project.folder))
    target = Target(address=address, namespace=project.environ["TEMPORAL_NAMESPACE"])
    key = read_named_key(Path(project.environ["CAPUCHIN_KEY_FILE"]))
    client = await connect_temporal(target, key=key)
    return Capuchin(client, project=project.environ["CAPUCHIN_PROJECT"])


async def history(project: Project, conversation: str) -> list[HistoryEvent]:
    """Every event of the conversation's history on the server."""
    temporal = (await fleet_of(project)).temporal
    return list((await temporal.get_workflow_handle(conversation).fetch_history()).events)


def as_bytes(events: Iterable[HistoryEvent]) -> list[bytes]:
    """Each event byte for byte."""
    return [event.SerializeToString(deterministic=True) for event in events]


def failed_tasks(events: Iterable[HistoryEvent]) -> int:
    """Workflow tasks that failed; one that only timed out with its worker is none."""
    return sum(e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED for e in events)


def _elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Run async work in a thread of its own, so that sync and async tests can ask alike."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
