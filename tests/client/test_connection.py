"""A client connects quickly, sealed and quietly, or says what to type."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import Runtime

from capuchin_yaml.client.cluster import ensure_search_attributes, retention_note, ways_to_make
from capuchin_yaml.client.connection import (
    connect,
    connect_temporal,
    connect_unsealed,
    sdk_runtime,
)
from capuchin_yaml.client.dev_server import temporal_program
from capuchin_yaml.client.home import Home, project_name
from capuchin_yaml.client.server import Server
from capuchin_yaml.client.target import Target
from capuchin_yaml.engine.contract import SEARCH_ATTRIBUTES
from capuchin_yaml.errors import ServerUnavailable
from tests.client.detour import NoOperatorService

KEY = b"k" * 32
_LEAVES = """
import asyncio, os, signal, sys
from pathlib import Path
from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.home import Home
from capuchin_yaml.client.server import find_or_start

async def main():
    home = Home.find(Path(sys.argv[1]))
    async with await find_or_start(home) as server:
        client = await connect_temporal(server.target, key=home.key())
        os.kill(server.record.pid, signal.SIGKILL)
        await server.wait_ended()
        try:
            async with asyncio.timeout(3):
                await client.count_workflows()
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)

asyncio.run(main())
"""


async def namespace(server: Server, client: Client, name: str, days: int) -> Client:
    """Make a namespace as somebody else's cluster has it, and connect to it."""
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(
            namespace=name,
            workflow_execution_retention_period=Duration(seconds=days * 24 * 3600),
        )
    )
    target = Target(address=server.target.address, namespace=name)
    async with asyncio.timeout(30):
        while True:
            found = await connect_unsealed(target)
            try:
                await retention_note(found)
            except ServerUnavailable:
                await asyncio.sleep(0.05)
            else:
                return found


async def attributes_are_known(client: Client) -> None:
    """Wait until the server's own cache has seen new search attributes."""
    async with asyncio.timeout(60):
        while missing := await ensure_search_attributes(client):
            assert set(missing) <= set(SEARCH_ATTRIBUTES)
            await asyncio.sleep(0.05)


async def test_what_a_client_sends_is_sealed_with_the_key_of_its_project(
    dev_server: Server, temporal: Client
) -> None:
    stranger = await connect_temporal(dev_server.target, key=KEY)
    [payload] = await temporal.data_converter.encode(["refund"])
    [forged] = await stranger.data_converter.encode(["refund"])

    assert await temporal.data_converter.decode([payload], [str]) == ["refund"]
    assert await temporal.data_converter.decode([forged]) != ["refund"]


async def test_a_program_gets_the_conversations_of_the_project_it_stands_in(
    dev_home: Home, dev_server: Server
) -> None:
    async with await connect(dev_home, program="test") as capuchin:
        assert capuchin.project == project_name(dev_home)
        assert capuchin.address == dev_server.target.address
        assert await capuchin.list() == []


async def test_our_own_server_keeps_everything_and_has_the_search_attributes(
    temporal: Client,
) -> None:
    assert await retention_note(temporal) is None
    assert await ensure_search_attributes(temporal) == ()


@pytest.mark.parametrize(
    ("origin", "advice"), [("own", "capuchin up"), ("environment", "TEMPORAL_ADDRESS")]
)
async def test_a_server_that_is_down_is_an_error_within_two_seconds(
    origin: str, advice: str
) -> None:
    target = Target(address="127.0.0.1:1", origin="own" if origin == "own" else "environment")
    began = time.monotonic()

    with pytest.raises(ServerUnavailable, match=advice) as failure:
        await connect_temporal(target, key=KEY)

    assert time.monotonic() - began < 2
    assert "127.0.0.1:1 (connection refused)" in str(failure.value)


async def test_a_server_that_says_nothing_is_an_error_after_two_seconds() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        with pytest.raises(ServerUnavailable, match="did not answer within 2 s"):
            await connect_temporal(Target(address=f"127.0.0.1:{silent.getsockname()[1]}"), key=KEY)


@pytest.mark.parametrize("address", ["nosuch.invalid:7233", "", "a b", "http://[", "x\x1b[2J:1"])
async def test_an_address_that_cannot_be_reached_is_an_error_in_words(address: str) -> None:
    with pytest.raises(ServerUnavailable) as failure:
        await connect_temporal(Target(address=address, origin="environment"), key=KEY)

    assert "\x1b" not in str(failure.value)


async def test_credentials_that_are_not_accepted_are_an_error_in_words(dev_server: Server) -> None:
    target = Target(address=dev_server.target.address, tls=True, api_key="x", origin="environment")

    with pytest.raises(ServerUnavailable, match=dev_server.target.address):
        await connect_temporal(target, key=KEY)


def test_the_process_has_one_runtime_that_logs_to_python() -> None:
    assert sdk_runtime() is sdk_runtime() is Runtime.default()


def test_nothing_reaches_stdout_when_the_server_goes_away(project: Home) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _LEAVES, str(project.project_dir)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ran.stdout == ""
    assert "Error" in ran.stderr
    assert ran.returncode == 0


async def test_missing_search_attributes_of_a_cluster_are_made(
    dev_server: Server, temporal: Client
) -> None:
    client = await namespace(dev_server, temporal, "bare", 3)

    assert set(await ensure_search_attributes(client)) == set(SEARCH_ATTRIBUTES)
    await attributes_are_known(client)


async def test_the_commands_for_an_administrator_do_what_they_say(
    dev_server: Server, temporal: Client
) -> None:
    client = await namespace(dev_server, temporal, "locked", 3)

    for command in ways_to_make("locked", SEARCH_ATTRIBUTES):
        program, *words = command.split()
        assert program == "temporal"
        made = await asyncio.create_subprocess_exec(
            *(str(temporal_program()), *words, "--address", dev_server.target.address),
            stdout=subprocess.DEVNULL,
        )
        assert await made.wait() == 0

    await attributes_are_known(client)


async def test_a_search_attribute_of_another_type_is_an_error(
    dev_server: Server, temporal: Client
) -> None:
    client = await namespace(dev_server, temporal, "clash", 3)
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace="clash",
            search_attributes={"CapuchinDue": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD},
        ),
        timeout=timedelta(seconds=10),
    )

    with pytest.raises(ServerUnavailable, match="CapuchinDue with another type than Datetime"):
        await ensure_search_attributes(client)


async def test_a_cluster_without_operator_service_is_asked_by_a_search(
    dev_server: Server, temporal: Client
) -> None:
    client = await namespace(dev_server, temporal, "walled", 3)
    walled = NoOperatorService(client).client()

    with pytest.raises(ServerUnavailable, match="--type Keyword --name CapuchinProject"):
        await ensure_search_attributes(walled)

    await ensure_search_attributes(client)
    await attributes_are_known(client)
    async with asyncio.timeout(60):
        while True:
            try:
                assert await ensure_search_attributes(walled) == ()
                break
            except ServerUnavailable:
                await asyncio.sleep(0.05)


async def test_what_a_namespace_forgets_is_said(dev_server: Server, temporal: Client) -> None:
    client = await namespace(dev_server, temporal, "forgetful", 3)

    note = await retention_note(client)

    assert note is not None
    assert "'forgetful'" in note
    assert "3 days after it was closed" in note


async def test_a_namespace_that_is_missing_is_named_with_its_command(dev_server: Server) -> None:
    client = await connect_unsealed(Target(address=dev_server.target.address, namespace="absent"))

    for ask in (ensure_search_attributes, retention_note):
        with pytest.raises(ServerUnavailable, match="namespace create --namespace absent"):
            await ask(client)
