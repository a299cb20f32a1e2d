"""A connected, sealed Temporal client, quickly or with a clear error."""

from __future__ import annotations

import asyncio
import functools
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from temporalio.client import Client
from temporalio.converter import DataConverter, StorageDriver
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError

from capuchin_yaml.client.home import Home, project_name
from capuchin_yaml.client.identity import client_name
from capuchin_yaml.client.target import Target
from capuchin_yaml.engine.sealing import sealed_converter
from capuchin_yaml.errors import ServerUnavailable
from capuchin_yaml.terminal_text import visible

if TYPE_CHECKING:
    from capuchin_yaml.client.fleet import Capuchin

CONNECT_S = 2.0
"""Time a server gets to answer; one that is down refuses at once."""
CORE_LOGGER = "temporalio.core"


async def connect(home: Home, *, program: str = "python") -> Capuchin:
    """Return a client of the project's conversations, on the server that a verb should talk to.

    Requests are recorded as coming from `program` on this machine. Large values are read from
    and written to the project's store, where it has one.

    Raises:
        ServerUnavailable: no server runs for this project, or it does not answer.
        UnsafeState: the state folder or its key is not ours alone.
    """
    from capuchin_yaml.client.fleet import Capuchin
    from capuchin_yaml.client.project_store import project_store
    from capuchin_yaml.client.server import find_server

    target = await find_server(home)
    temporal = await connect_temporal(
        target,
        key=home.key(),
        store=project_store(home, target),
        identity=client_name(program),
    )
    return Capuchin(temporal, project=project_name(home), program=program)


async def connect_temporal(
    target: Target,
    *,
    key: bytes,
    store: StorageDriver | None = None,
    identity: str | None = None,
    timeout_s: float = CONNECT_S,
) -> Client:
    """Return a client whose payloads are sealed with `key`, connected and answering.

    Raises:
        ServerUnavailable: the server did not answer in time, or refused us.
    """
    return await _connect(target, sealed_converter(key, store), identity, timeout_s)


async def connect_unsealed(target: Target, *, timeout_s: float = CONNECT_S) -> Client:
    """Return a client for looking after the server; it carries no conversation's data.

    Raises:
        ServerUnavailable: the server did not answer in time, or refused us.
    """
    return await _connect(target, DataConverter.default, None, timeout_s)


@functools.cache
def sdk_runtime() -> Runtime:
    """Return the process's one SDK runtime; its logs go to Python logging, never to stdout."""
    runtime = Runtime(
        telemetry=TelemetryConfig(
            logging=LoggingConfig(
                filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                forwarding=LogForwardingConfig(logger=logging.getLogger(CORE_LOGGER)),
            )
        )
    )
    # Why: code that asks for the default runtime would otherwise make one that prints to stdout.
    Runtime.set_default(runtime, error_if_already_set=False)
    return runtime


async def _connect(
    target: Target, converter: DataConverter, identity: str | None, timeout_s: float
) -> Client:
    if "://" in target.address:
        raise _unavailable(target, "an address is host:port, without a scheme")
    try:
        async with asyncio.timeout(timeout_s):
            client = await Client.connect(
                target.address,
                namespace=target.namespace,
                api_key=target.api_key,
                tls=target.tls,
                rpc_metadata=dict(target.headers),
                data_converter=converter,
                identity=identity,
                runtime=sdk_runtime(),
            )
            serves = await client.service_client.check_health(
                retry=False, timeout=timedelta(seconds=timeout_s)
            )
    except TimeoutError as error:
        raise _unavailable(target, f"it did not answer within {timeout_s:g} s") from error
    except (RuntimeError, ValueError, RPCError) as error:
        raise _unavailable(target, _cause(error)) from error
    if not serves:
        raise _unavailable(target, "it says that it does not serve")
    return client


def _unavailable(target: Target, cause: str) -> ServerUnavailable:
    return ServerUnavailable(
        f"no Temporal server answers at {visible(target.address)} ({cause}); {target.what_to_type}"
    )


def _cause(error: Exception) -> str:
    text = visible(str(error), keep_newlines=False)
    for sign, meaning in (
        ("ConnectionRefused", "connection refused"),
        ("dns error", "no such host"),
        ("Unauthenticated", "it wants other credentials"),
        ("PermissionDenied", "it does not let us in"),
        ("InvalidCertificate", "its certificate is not trusted"),
    ):
        if sign in text:
            return meaning
    return text[:200]
