"""Prints what each recorded history makes the workflow command, as one digest a file.

Run in processes with other time zones and hash seeds by test_histories.py: the digests must be
the same everywhere, down to every byte of every argument.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.workflow import Info

from capuchin_yaml.client.connection import sdk_runtime
from capuchin_yaml.engine.replay import replay_histories
from capuchin_yaml.engine.sandbox import sandbox
from capuchin_yaml.engine.sealing import sealed_converter
from tests.engine.record import HISTORIES, KEY


class Listening(WorkflowRunner):
    """The workers' own sandbox, and a digest of all that comes out of it."""

    def __init__(self) -> None:
        self._sandbox = sandbox()
        self.heard = hashlib.sha256()
        self.commands = 0

    def prepare_workflow(self, defn: workflow._Definition) -> None:
        """As the sandbox."""
        self._sandbox.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """As the sandbox, listened to."""
        return _Heard(self._sandbox.create_instance(det), self)


class _Heard(WorkflowInstance):
    def __init__(self, inner: WorkflowInstance, listener: Listening) -> None:
        self._inner = inner
        self._listener = listener

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        completion = self._inner.activate(act)
        for command in completion.successful.commands:
            self._listener.heard.update(command.SerializeToString(deterministic=True))
            self._listener.commands += 1
        return completion

    def get_serialization_context(self, command_info: object) -> None:
        return None

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()


def history_of(file: Path) -> WorkflowHistory:
    """Read one recorded history."""
    value = json.loads(file.read_text())
    started = value["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], value)


async def replayed(file: Path) -> tuple[str, str, int]:
    """Replay one file; return the problem, the digest of the commands, and their number."""
    listener = Listening()

    async def one() -> AsyncIterator[WorkflowHistory]:
        yield history_of(file)

    replays = replay_histories(one(), sealed_converter(KEY), runtime=sdk_runtime(), runner=listener)
    [found] = [r async for r in replays]
    return found.problem, listener.heard.hexdigest(), listener.commands


async def main() -> None:
    """Replay every file and print one JSON object."""
    found = {}
    for file in sorted(HISTORIES.glob("*.json")):
        problem, digest, commands = await replayed(file)
        found[file.name] = [problem, digest, commands]
    print(json.dumps(found))  # noqa: T201 a program of its own


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
    # Why: the SDK's native threads may still log into an interpreter that is shutting down,
    # which aborts a process that has answered.
    os._exit(0)
