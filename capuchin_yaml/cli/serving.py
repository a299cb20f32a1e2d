"""What every worker process does: connect sealed, and serve agents until told to stop."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from capuchin_yaml.cli.answering_model import answering_model, forced_model
from capuchin_yaml.spec import AgentSpec, JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.cli.running_calls import RunningCalls
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.client.target import Target
    from capuchin_yaml.engine.agents import AgentTable
    from capuchin_yaml.engine.deployment import Deployment
    from capuchin_yaml.engine.scrub_output import ScrubbedLog
    from capuchin_yaml.tools.registry import Registry

LAST_CALL_S = 3600.0
"""Longest that a worker waits for its last call when nobody is in a hurry."""


async def serve(
    home: Home,
    *,
    project: str,
    target: Target,
    agents: AgentTable,
    registry: Registry,
    stop: asyncio.Event,
    ready: asyncio.Event,
    hurry: asyncio.Event,
    deployment: Deployment | None = None,
    output: ScrubbedLog | None = None,
) -> None:
    """Poll until `stop` is set and the running calls have ended; `hurry` cuts them off.

    `output` is where this process's stdout and stderr lead, if that is a log.

    Raises:
        ServerUnavailable: the server does not answer.
        UnsafeState: the state folder or its key is not ours alone, or the open conversations
            are sealed with another key.
    """
    from capuchin_yaml.cli.running_calls import RunningCalls
    from capuchin_yaml.client.connection import connect_temporal
    from capuchin_yaml.client.project_store import project_store
    from capuchin_yaml.client.same_key import refuse_another_key
    from capuchin_yaml.engine.activities import ModelSettings
    from capuchin_yaml.engine.scrub import Scrubber
    from capuchin_yaml.engine.scrub_logs import scrubbed_output
    from capuchin_yaml.engine.worker import WorkerSettings, run_worker

    key = home.key()
    scrubber = Scrubber()
    scrubber.add("the project key", key)
    if output is not None:
        output.scrub_with(scrubber)
    store = project_store(home, target)
    client = await connect_temporal(
        target,
        key=key,
        store=store,
        identity=f"capuchin-worker@{socket.gethostname()}:{os.getpid()}",
    )
    if target.origin != "own":  # there the key lies beside the database
        await refuse_another_key(client, project)
    forced = forced_model()
    settings = WorkerSettings(
        data_dir=home.data_dir,
        store=store,
        scrubber=scrubber,
        # Why: a forced model without its key is answered by the stand-in, as every agent's is.
        models=ModelSettings(forced=None if forced is None else answering_model(None).name),
        # Why so long: the time that calls get is chosen when they are told to end, by `hurry`.
        grace_s=LAST_CALL_S,
        deployment=deployment,
        own_server=target.origin == "own",
    )
    calls = RunningCalls()
    cutting = asyncio.create_task(_cut_off_at(hurry, calls))
    with scrubbed_output(scrubber):
        await run_worker(
            calls.watched(client),
            project=project,
            agents=agents,
            registry=registry,
            settings=settings,
            stop=stop,
            ready=ready,
            hurry=hurry,
        )
    cutting.cancel()


async def _cut_off_at(hurry: asyncio.Event, calls: RunningCalls) -> None:
    await hurry.wait()
    calls.cut_off()


def swap(table: AgentTable, agents: Mapping[str, JsonValue]) -> None:
    """Make `agents`, by name and in the form of `Serving.to_json`, the whole table."""
    from capuchin_yaml.compiler.own_files import folder_of
    from capuchin_yaml.engine.agents import ServedAgent

    for name in table.names():
        if name not in agents:
            table.drop(name)
    for value in agents.values():
        folder = folder_of(Path(value["path"]).absolute())
        rules = tuple(str(place) for place in value.get("rules", ()))
        table.put(ServedAgent(AgentSpec.from_json(value["spec"]), folder, rules))
