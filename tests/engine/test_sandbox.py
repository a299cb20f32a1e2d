"""Workflow code runs in the SDK's sandbox, whatever we leave out around it."""

from __future__ import annotations

import random

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker, WorkflowInstance
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError

from capuchin_yaml.engine.sandbox import sandbox


@workflow.defn
class Careless:
    """Does what workflow code must not."""

    @workflow.run
    async def run(self, what: str) -> str:
        """Return how it was stopped."""
        try:
            match what:
                case "chance":
                    return str(random.random())
                case _:
                    with open(what):  # noqa: ASYNC230 the mistake is the point
                        return "opened"
        except RestrictedWorkflowAccessError:
            return "refused"


@pytest.mark.parametrize("what", ["chance", __file__])
async def test_what_replay_cannot_repeat_is_refused(temporal: Client, what: str) -> None:
    async with Worker(
        temporal, task_queue="careless", workflows=[Careless], workflow_runner=sandbox()
    ):
        said = await temporal.execute_workflow(
            Careless.run, what, id=f"careless-{len(what)}", task_queue="careless"
        )

    assert said == "refused"


def test_the_sdk_asks_an_instance_for_what_we_answer_and_nothing_else() -> None:
    assert WorkflowInstance.__abstractmethods__ == {
        "activate",
        "get_external_store_context",
        "get_info",
        "get_serialization_context",
    }
