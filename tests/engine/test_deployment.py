"""Worker Deployments: conversations go to the build that the operator made current."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from capuchin_yaml.engine.deployment import Deployment, deployment_from
from capuchin_yaml.errors import RequestRefused
from tests.engine.house import House, Talk, open_house


async def make_current(client: Client, deployment: Deployment) -> None:
    """Do what `temporal worker deployment set-current-version` does, once the build polls."""
    import asyncio

    service = client.workflow_service
    async with asyncio.timeout(20):
        while True:
            try:
                await service.describe_worker_deployment(
                    DescribeWorkerDeploymentRequest(
                        namespace=client.namespace, deployment_name=deployment.name
                    ),
                    retry=False,
                )
                await service.set_worker_deployment_current_version(
                    SetWorkerDeploymentCurrentVersionRequest(
                        namespace=client.namespace,
                        deployment_name=deployment.name,
                        build_id=deployment.build_id,
                        ignore_missing_task_queues=True,
                    ),
                    retry=False,
                )
            except RPCError:
                await asyncio.sleep(0.2)
            else:
                return


async def ran_on(talk: Talk) -> list[str]:
    """The builds of the conversation's workflow tasks, in order, repeats left out."""
    builds: list[str] = []
    for event in (await talk.handle.fetch_history()).events:
        done = event.workflow_task_completed_event_attributes
        build = done.deployment_version.build_id
        if build and build not in builds[-1:]:
            builds.append(build)
    return builds


async def serve_build(house: House, deployment: Deployment) -> None:
    """Restart the worker of the house as another build, and make that current."""
    await house.stop_worker()
    house.settings = replace(house.settings, deployment=deployment)
    await house.start_worker()
    await make_current(house.client, deployment)


async def test_an_open_conversation_moves_to_the_current_build(
    temporal: Client, tmp_path: Path
) -> None:
    name = f"d{secrets.token_hex(4)}"
    async with open_house(temporal, tmp_path, serve=False) as house:
        house.agent("plain", house.script(default={"say": "done"}))
        await serve_build(house, Deployment(name, "one"))
        talk = await house.talk("plain", "hello")
        await talk.idle()
        await serve_build(house, Deployment(name, "two"))
        await talk.send("more")
        await talk.idle()

        assert await ran_on(talk) == ["one", "two"]
        assert await talk.failed_tasks() == 0


def test_a_deployment_is_read_from_the_environment() -> None:
    environ = {"CAPUCHIN_DEPLOYMENT": "shop", "CAPUCHIN_BUILD_ID": "1.2.0+abc"}

    assert deployment_from({}) is None
    assert deployment_from(environ) == Deployment("shop", "1.2.0+abc", "auto")
    assert deployment_from({**environ, "CAPUCHIN_VERSIONING": "pinned"}) == Deployment(
        "shop", "1.2.0+abc", "pinned"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"CAPUCHIN_BUILD_ID": ""},
        {"CAPUCHIN_DEPLOYMENT": "a.b"},
        {"CAPUCHIN_VERSIONING": "maybe"},
    ],
)
def test_what_cannot_be_used_is_refused_by_name(wrong: dict[str, str]) -> None:
    environ = {"CAPUCHIN_DEPLOYMENT": "shop", "CAPUCHIN_BUILD_ID": "1"}

    with pytest.raises(RequestRefused, match=next(iter(wrong))):
        deployment_from({**environ, **wrong})
