"""The demo shop as a person has it: the shipped agents, no key, and the ledger of refunds."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

from temporalio.client import Client

from capuchin_yaml.client.connection import connect
from capuchin_yaml.client.home import Home
from tests.cli.program import PROGRAM, Project, Up, clean_environ, is_alive, wait_until

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
    """How a conversation stands."""
    ran = project.run("show", conversation, "--json")
    assert ran.code == 0, ran.err
    status: str = ran.json["status"]
    return status


def wait_idle(project: Project, conversation: str) -> None:
    """Wait until the agent has answered."""
    wait_until(lambda: status_of(project, conversation) == "idle")


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
        conversation = process.stderr.readline().split()[1]
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


def kill_everything(project: Project, up: Up) -> None:
    """End `up`, its workers, the server and the server's guard at once."""
    record = server_record(project)
    workers = up.workers()
    up.process.kill()
    up.process.wait()
    for pid in (*workers, record["pid"], record["guard_pid"]):
        with contextlib.suppress(ProcessLookupError):  # it may have followed `up` by itself
            kill(pid)


async def sealed_client(project: Project) -> Client:
    """A client of the project's server with the project's key."""
    return (await connect(Home.find(project.folder))).temporal


async def history(project: Project, conversation: str) -> list[bytes]:
    """Every event of the conversation's history, byte for byte."""
    handle = (await sealed_client(project)).get_workflow_handle(conversation)
    found = await handle.fetch_history()
    return [event.SerializeToString(deterministic=True) for event in found.events]
