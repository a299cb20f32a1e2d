"""Which agents take up no new turn: a mark on the server, where every worker of a project sees it.

The mark is a workflow that nobody runs: as long as one with the agent's id is open, the agent is
paused. So a pause needs no worker and no shared disk, survives every restart, and is over for all
in one call. Decision: docs/decisions/0013-a-pause-is-a-mark-on-the-server.md
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.spec import JsonValue

MARK = "CapuchinPause"
"""Type of the workflow that nobody runs, and name of the memo in it."""
BELIEVED_S = 0.5
"""How long a worker believes what it read; whoever pauses waits this long before saying so."""
_TIMEOUT = timedelta(seconds=1)


def mark_id(project: str, agent: str) -> str:
    """The workflow id of an agent's mark; no conversation can have it."""
    return f"capuchin-pause.{project}.{agent}"


def mark_queue(project: str) -> str:
    """The task queue of the marks, on which nobody works."""
    return f"capuchin-yaml.{project}.pauses"


async def read_mark(client: Client, project: str, agent: str) -> dict[str, JsonValue] | None:
    """Return `{by, at, reason}` of a paused agent, None of one that is not.

    A mark without the project's seal, or of another agent, is none.

    Raises:
        RPCError: the server does not answer.
    """
    request = DescribeWorkflowExecutionRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=mark_id(project, agent)),
    )
    try:
        found = await client.workflow_service.describe_workflow_execution(
            request, retry=False, timeout=_TIMEOUT
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    info = found.workflow_execution_info
    if info.status != WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING:
        return None
    if MARK not in info.memo.fields:
        return None
    [memo] = await client.data_converter.decode([info.memo.fields[MARK]])
    return _told(memo, project, agent)


def _told(memo: Any, project: str, agent: str) -> dict[str, JsonValue] | None:
    if not isinstance(memo, Mapping):
        return None
    if memo.get("project") != project or memo.get("agent") != agent:
        return None
    return {name: str(memo.get(name, "")) for name in ("by", "at", "reason")}


@dataclass(slots=True)
class PauseBook:
    """What one worker has read of the marks, believed for `BELIEVED_S`."""

    client: Client
    _read: dict[tuple[str, str], tuple[float, dict[str, JsonValue] | None]] = field(
        default_factory=dict
    )

    async def paused(
        self, project: str, agent: str, *, ask_anew: bool = False
    ) -> dict[str, JsonValue] | None:
        """As `read_mark`, from memory where that is fresh enough.

        Raises:
            RPCError: the server does not answer.
        """
        now = time.monotonic()
        at, mark = self._read.get((project, agent), (0.0, None))
        if not ask_anew and at and now - at < BELIEVED_S:
            return mark
        mark = await read_mark(self.client, project, agent)
        self._read[project, agent] = now, mark
        return mark
