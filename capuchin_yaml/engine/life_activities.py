"""What a worker does for a conversation between its turns: read a pause, fetch a closed run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.activities import check_origin
from capuchin_yaml.engine.pauses import PauseBook
from capuchin_yaml.spec import JsonValue


@dataclass(slots=True)
class LifeActivities:
    """The activities of one worker that serve conversations while no turn runs."""

    client: Client
    pauses: PauseBook

    @activity.defn(name=contract.UNTIL_RESUMED)
    async def until_resumed(self, request: contract.ReadPause) -> None:
        """Return once the agent is resumed; until then fail, so that the server asks again.

        Raises:
            ApplicationError: type `Paused`, retried.
        """
        check_origin(request, contract.ReadPause)
        mark = await self.pauses.paused(request.project, request.agent)
        if mark is not None:
            # Why benign: thousands of waiting conversations are no thousands of warnings.
            raise ApplicationError(
                f"{request.agent} is paused",
                type=contract.PAUSED,
                category=ApplicationErrorCategory.BENIGN,
            )

    @activity.defn(name=contract.FETCH_CLOSED)
    async def fetch_closed(self, request: contract.FetchClosed) -> dict[str, JsonValue]:
        """The state of the newest closed run of the same conversation."""
        check_origin(request, contract.FetchClosed)
        await self._check_closed(request)
        handle = self.client.get_workflow_handle(request.conversation, run_id=request.closed_run_id)
        answer: Any = await handle.query(
            contract.CLOSED_STATE,
            contract.Ask(conversation=request.conversation),
            result_type=dict,
        )
        if not isinstance(answer, dict):
            raise ApplicationError(
                "the closed run's answer does not carry the project's seal",
                type=contract.REFUSED,
                non_retryable=True,
            )
        return answer

    async def _check_closed(self, request: contract.FetchClosed) -> None:
        """Refuse a run that did not end by being closed, such as one that went on elsewhere."""
        found = await self.client.workflow_service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(
                namespace=self.client.namespace,
                execution=WorkflowExecution(
                    workflow_id=request.conversation, run_id=request.closed_run_id
                ),
            )
        )
        status = found.workflow_execution_info.status
        if status != WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED:
            raise ApplicationError(
                "it did not end by being closed", type=contract.REFUSED, non_retryable=True
            )
