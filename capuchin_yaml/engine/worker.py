"""A worker: serves the conversations of one project; nothing of them lives in it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import Activities, ModelSettings
from capuchin_yaml.engine.agents import AgentTable
from capuchin_yaml.engine.deployment import Deployment
from capuchin_yaml.engine.gate import GateActivities
from capuchin_yaml.engine.journal import Journal
from capuchin_yaml.engine.life_activities import LifeActivities
from capuchin_yaml.engine.model_calls import choices
from capuchin_yaml.engine.notices import NoticeActivities
from capuchin_yaml.engine.pauses import PauseBook
from capuchin_yaml.engine.people import PeopleActivities
from capuchin_yaml.engine.sandbox import sandbox
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.engine.scrub_boundary import ScrubBoundary
from capuchin_yaml.engine.scrub_logs import scrubbed_logs
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.engine.tool_runner import ToolRunner
from capuchin_yaml.engine.workflow import AgentWorkflow
from capuchin_yaml.errors import PluginUnavailable
from capuchin_yaml.models.registry import SECRET_VARIABLES, warm
from capuchin_yaml.tools.registry import Registry

logger = logging.getLogger("capuchin_yaml.worker")

WORKFLOW_TASKS_AT_ONCE = 32
"""They share one interpreter: a hundred at once on a busy machine each outlive their task's time,
and are done again from the beginning."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How one worker runs."""

    data_dir: Path
    """Under it each tool package has a folder of its own."""
    store: FolderStore | None = None
    models: ModelSettings = field(default_factory=ModelSettings)
    scrubber: Scrubber = field(default_factory=Scrubber)
    """Knows the secrets of this worker; `run_worker` adds the keys of its models."""
    grace_s: float = 30.0
    """Time that running tools and model calls get at a graceful stop."""
    own_server: bool = True
    """Whether the server is ours, so that running replies may be streamed ten times a second."""
    roll_over_events: int = contract.ROLL_OVER_EVENTS
    cached_conversations: int = 4_000
    concurrent_activities: int = 200
    deployment: Deployment | None = None
    """The build that this worker is, where the server keeps builds apart."""


async def run_worker(
    client: Client,
    *,
    project: str,
    agents: AgentTable,
    registry: Registry,
    settings: WorkerSettings,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    hurry: asyncio.Event | None = None,
) -> None:
    """Serve until `stop` is set, then drain: no new work, running calls get the grace time.

    `ready` is set once the worker polls. Whoever sets `hurry` ends the grace time, and then cuts
    the running activities off. `client` must seal with the project's key.
    """
    for name in SECRET_VARIABLES:
        settings.scrubber.add(name, os.environ.get(name, ""))
    with scrubbed_logs(settings.scrubber):
        await _serve(client, project, agents, registry, settings, stop, ready, hurry)


async def _serve(
    client: Client,
    project: str,
    agents: AgentTable,
    registry: Registry,
    settings: WorkerSettings,
    stop: asyncio.Event,
    ready: asyncio.Event | None,
    hurry: asyncio.Event | None,
) -> None:
    await _warm(agents, settings.models, registry)
    stream_every_s = 0.1 if settings.own_server else 1.0
    settings.models.stream_every_s = stream_every_s
    pauses = PauseBook(client)
    activities = Activities(
        client,
        agents,
        registry,
        settings.models,
        pauses,
        roll_over_events=settings.roll_over_events,
        scrubber=settings.scrubber,
    )
    life = LifeActivities(client, pauses)
    people = PeopleActivities(activities.operator)
    gate, notices = GateActivities(activities.operator), NoticeActivities(activities.operator)
    tools = ToolRunner(
        client,
        registry,
        settings.data_dir,
        Journal(settings.data_dir),
        settings.store,
        scrubber=settings.scrubber,
        grace_over=hurry or asyncio.Event(),
    )
    with concurrent.futures.ThreadPoolExecutor(
        settings.concurrent_activities, thread_name_prefix="judge"
    ) as threads:
        worker = Worker(
            client,
            task_queue=contract.task_queue(project),
            workflows=[AgentWorkflow],
            activities=[
                activities.pin_definition,
                activities.judge,
                activities.call_model,
                people.check_decision,
                gate.ask_gate,
                notices.notify,
                tools.call_tool,
                tools.preview_tool,
                life.until_resumed,
                life.fetch_closed,
            ],
            activity_executor=threads,
            interceptors=[ScrubBoundary(settings.scrubber)],
            workflow_runner=sandbox(),
            deployment_config=settings.deployment.config() if settings.deployment else None,
            max_cached_workflows=settings.cached_conversations,
            max_concurrent_activities=settings.concurrent_activities,
            max_concurrent_workflow_tasks=WORKFLOW_TASKS_AT_ONCE,
            workflow_task_poller_behavior=PollerBehaviorAutoscaling(initial=4),
            activity_task_poller_behavior=PollerBehaviorAutoscaling(initial=4),
            # Why: the queue of a killed worker holds its tasks for this long.
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
            graceful_shutdown_timeout=timedelta(seconds=settings.grace_s),
            max_heartbeat_throttle_interval=timedelta(seconds=stream_every_s),
            default_heartbeat_throttle_interval=timedelta(seconds=stream_every_s),
        )
        async with worker:
            _warn_of_groups(agents, activities.operator)
            logger.info("serving %s: %s", project, ", ".join(agents.names()) or "no agents")
            if ready is not None:
                ready.set()
            await stop.wait()
            logger.info("stopping: running calls get %g s", settings.grace_s)
            asyncio.get_running_loop().call_later(settings.grace_s, tools.grace_over.set)
    await tools.stop()
    await activities.stop()


def _warn_of_groups(agents: AgentTable, operator: LiveOperatorConfig) -> None:
    """Say which agents wait for people whom the operator's config does not know."""
    config = operator.now()
    for name in agents.names():
        served = agents.get(name)
        groups = served.spec.approval.groups() if served is not None else ()
        for group in config.people.unknown(groups):
            logger.warning(
                "%s asks the group %s, which %s does not have: nobody can decide for it",
                name,
                group,
                config.path,
            )


async def _warm(agents: AgentTable, models: ModelSettings, registry: Registry) -> None:
    """Load what the first verdict, call and reply would wait for."""
    import jsonschema

    del jsonschema
    served = [agents.get(name) for name in agents.names()]
    names = {models.forced or models.default}
    for agent in served:
        if agent is not None and agent.spec.model is not None:
            names |= {choice.name for choice in choices(agent.spec, agent.spec.model)}
    for model in sorted(names):
        await warm(model)
    entries = {t.identity.partition(".")[0] for a in served if a is not None for t in a.spec.tools}
    for entry in sorted(entries):
        try:
            await asyncio.to_thread(registry.package, entry)
        except PluginUnavailable as error:
            logger.warning("%s", error)
