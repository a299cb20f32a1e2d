"""Histories against the installed code: whether open conversations would go on after a deploy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.runtime import Runtime
from temporalio.worker import Replayer, WorkflowRunner
from temporalio.workflow import NondeterminismError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.sandbox import sandbox
from capuchin_yaml.engine.storage import StoredValueMissing
from capuchin_yaml.engine.workflow import AgentWorkflow

_TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one history went on the installed code."""

    conversation: str
    run_id: str
    problem: str = ""
    """Why it cannot go on; empty when it can."""


async def replay_histories(
    histories: AsyncIterator[WorkflowHistory],
    converter: DataConverter,
    *,
    runtime: Runtime | None = None,
    runner: WorkflowRunner | None = None,
) -> AsyncIterator[Replayed]:
    """Replay each history on `AgentWorkflow` as installed here; nothing is sent anywhere.

    `converter` must seal with the key of the project that the histories are of; `runtime` says
    where the SDK's own logs go (stdout without one).
    """
    replayer = Replayer(
        workflows=[AgentWorkflow],
        workflow_runner=runner or sandbox(),
        data_converter=converter,
        runtime=runtime,
    )
    async for history in histories:
        problem = await _unreadable(history, converter)
        # Why: the SDK's replayer waits for ever for a first task that was never completed.
        if not problem and any(e.event_type == _TASK_COMPLETED for e in history.events):
            result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
            problem = _words(result.replay_failure)
        yield Replayed(history.workflow_id, history.run_id, problem)


async def _unreadable(history: WorkflowHistory, converter: DataConverter) -> str:
    """Say why a history cannot be judged: it is not ours, or what it refers to is not here."""
    if not history.events:
        return "it has no events"
    started = history.events[0].workflow_execution_started_event_attributes
    if started.workflow_type.name != contract.WORKFLOW:
        return f"it is a history of {started.workflow_type.name!r}, no conversation"
    try:
        given = await converter.decode(started.input.payloads)
    except StoredValueMissing as error:
        return str(error)
    if any(isinstance(value, contract.Unsealed) for value in given):
        return (
            "its payloads do not carry this project's seal; point CAPUCHIN_KEY_FILE at the key"
            " that it was made with"
        )
    return ""


def _words(failure: Exception | None) -> str:
    if failure is None:
        return ""
    said = " ".join(str(failure).split())[:500]
    if isinstance(failure, NondeterminismError):
        return f"the installed code takes another course than the history: {said}"
    return f"{type(failure).__name__}: {said}"
