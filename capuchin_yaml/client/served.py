"""Which agents workers serve: each worker says so on the server, where every terminal sees it.

Who serves knows, so who serves writes. A mark is a workflow that nobody runs, as a pause is: one
for each agent, sealed, with what a form and a list need. The worker that wrote a mark ends it when
it stops; others that serve the same agent write it again within half a minute. A worker that was
killed leaves its marks: starting such an agent is refused by the workers that are there.
Decision: docs/decisions/0020-workers-say-what-they-serve.md
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from capuchin_yaml.client.link import READ_TIMEOUT, Link
from capuchin_yaml.client.visibility import found, memo_value, quoted
from capuchin_yaml.spec import JsonValue

MARK = "CapuchinServed"
"""Type of the workflow that nobody runs, and name of the memo in it."""
RENEWED_S = 30.0
"""How often a worker looks whether its marks are still there."""
MAX_MARKS = 500
_NEVER_RUNS = timedelta(days=3650)
"""Why a delay: the server then never even offers the mark to a worker."""


@dataclass(frozen=True, slots=True)
class Served:
    """One agent as the worker that wrote its mark told of it."""

    agent: str
    at: str
    """UTC, ISO 8601: when that worker began to serve it."""
    told: Mapping[str, JsonValue]
    """What it told: version, description, model, policy sentence, variables, injected names."""


def mark_id(project: str, agent: str) -> str:
    """The workflow id of an agent's mark; no conversation can have it."""
    return f"capuchin-served.{project}.{agent}"


class Marks:
    """The marks of one worker; `client` is sealed with the project's key."""

    def __init__(
        self, client: Client, project: str, agents: Mapping[str, Mapping[str, JsonValue]]
    ) -> None:
        self._client = client
        self._project = project
        self._agents = agents
        self._runs: dict[str, str] = {}
        """By agent: the run of the mark that is ours."""

    async def keep(self) -> None:
        """Write the marks, and again whenever one is gone; until cancelled, which ends ours."""
        try:
            for agent in self._agents:
                await self._write(agent, replaces=True)
            while True:
                await asyncio.sleep(RENEWED_S)
                for agent in self._agents:
                    await self._write(agent, replaces=False)
        finally:
            await asyncio.shield(self._end())

    async def _write(self, agent: str, *, replaces: bool) -> None:
        memo = {
            "project": self._project,
            "agent": agent,
            "at": datetime.now(UTC).isoformat(),
            "told": dict(self._agents[agent]),
        }
        policy = WorkflowIDConflictPolicy
        # Why suppressed: who cannot write it serves all the same, and tries again; and a mark
        # that another worker wrote tells the same.
        with contextlib.suppress(RPCError, WorkflowAlreadyStartedError):
            handle = await self._client.start_workflow(
                MARK,
                id=mark_id(self._project, agent),
                task_queue=f"capuchin-yaml.{self._project}.served",
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=policy.TERMINATE_EXISTING if replaces else policy.FAIL,
                start_delay=_NEVER_RUNS,
                memo={MARK: memo},
                rpc_timeout=READ_TIMEOUT,
            )
            self._runs[agent] = handle.result_run_id or ""

    async def _end(self) -> None:
        for agent, run_id in self._runs.items():
            handle = self._client.get_workflow_handle(
                mark_id(self._project, agent), run_id=run_id or None
            )
            with contextlib.suppress(RPCError):
                await handle.terminate("the worker stopped", rpc_timeout=READ_TIMEOUT)


async def served_agents(link: Link) -> Sequence[Served]:
    """Read all marks of the project from the server's lists.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    prefix = mark_id(link.project, "")
    query = f"WorkflowId STARTS_WITH {quoted(prefix)} AND ExecutionStatus = 'Running'"
    out: dict[str, Served] = {}
    async for info in found(link, query):
        agent = info.execution.workflow_id.removeprefix(prefix)
        mark: Any = await memo_value(link, info, MARK)
        if (
            isinstance(mark, Mapping)
            and mark.get("agent") == agent
            and mark.get("project") == link.project
            and isinstance(mark.get("told"), Mapping)
        ):
            out[agent] = Served(agent, str(mark.get("at", "")), mark["told"])
        if len(out) >= MAX_MARKS:
            break
    return sorted(out.values(), key=lambda s: s.agent)
