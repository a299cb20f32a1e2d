"""What a namespace needs before conversations run in it, and what it forgets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    UpdateNamespaceRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.engine.contract import SEARCH_ATTRIBUTES
from capuchin_yaml.errors import ServerUnavailable
from capuchin_yaml.terminal_text import visible

KEEP_FOR_EVER_S = 36500 * 24 * 3600
_RPC_S = 10.0
_TYPES = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}


async def ensure_search_attributes(client: Client) -> tuple[str, ...]:
    """Make the search attributes that lists and inbox read; return the names that were missing.

    Raises:
        ServerUnavailable: they are missing and this user may not make them, or one exists with
            another type; the text holds the exact command.
    """
    try:
        found = await _search_attributes(client)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise _no_namespace(client.namespace) from error
        # Why: some clusters, Temporal Cloud among them, hide the operator service from users. A
        # conversation that set an unknown attribute would hang for ever, so a search has to tell.
        unknown = await _not_searchable(client)
        if unknown:
            raise _cannot_make(client.namespace, unknown, error) from error
        return ()
    wrong = [
        n for n, kind in SEARCH_ATTRIBUTES.items() if found.get(n, _TYPES[kind]) != _TYPES[kind]
    ]
    if wrong:
        raise ServerUnavailable(
            f"the namespace {client.namespace!r} has {', '.join(wrong)} with another type than"
            f" {', '.join(SEARCH_ATTRIBUTES[n] for n in wrong)}; use another namespace"
            " (TEMPORAL_NAMESPACE)"
        )
    missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in found}
    if missing:
        request = AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes={name: _TYPES[kind] for name, kind in missing.items()},
        )
        try:
            await client.operator_service.add_search_attributes(
                request, timeout=timedelta(seconds=_RPC_S)
            )
        except RPCError as error:
            # Why: another worker that starts at this moment may have made them.
            if error.status is not RPCStatusCode.ALREADY_EXISTS:
                raise _cannot_make(client.namespace, missing, error) from error
    return tuple(missing)


def ways_to_make(namespace: str, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the commands that make search attributes, one for each type."""
    names_of: dict[str, list[str]] = {}
    for name, kind in attributes.items():
        names_of.setdefault(kind, []).append(name)
    return tuple(
        f"temporal operator search-attribute create --namespace {namespace} --type {kind}"
        + "".join(f" --name {name}" for name in names)
        for kind, names in names_of.items()
    )


async def retention_note(client: Client) -> str | None:
    """Say what the namespace drops and when; None when it keeps everything.

    Raises:
        ServerUnavailable: the namespace does not exist or cannot be read.
    """
    seconds = await retention_s(client)
    if seconds >= KEEP_FOR_EVER_S:
        return None
    days, rest = divmod(seconds, 24 * 3600)
    period = f"{days} day{'s' if days != 1 else ''}" if days else f"{rest // 3600} hours"
    return (
        f"the namespace {client.namespace!r} drops the history of a conversation {period} after"
        " it was closed; open conversations are kept"
    )


async def retention_s(client: Client) -> int:
    """Seconds that the namespace keeps a closed conversation.

    Raises:
        ServerUnavailable: the namespace does not exist or cannot be read.
    """
    try:
        answer = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace),
            timeout=timedelta(seconds=_RPC_S),
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise _no_namespace(client.namespace) from error
        raise ServerUnavailable(
            f"the namespace {client.namespace!r} cannot be read ({visible(error.message)})"
        ) from error
    return answer.config.workflow_execution_retention_ttl.seconds


async def keep_for_ever(client: Client) -> None:
    """Let our own server keep closed conversations."""
    if await retention_s(client) < KEEP_FOR_EVER_S:
        await client.workflow_service.update_namespace(
            UpdateNamespaceRequest(
                namespace=client.namespace,
                config=NamespaceConfig(
                    workflow_execution_retention_ttl=Duration(seconds=KEEP_FOR_EVER_S)
                ),
            ),
            timeout=timedelta(seconds=_RPC_S),
        )


async def _search_attributes(client: Client) -> dict[str, int]:
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace),
        timeout=timedelta(seconds=_RPC_S),
    )
    return {name: int(kind) for name, kind in answer.custom_attributes.items()}


async def _not_searchable(client: Client) -> dict[str, str]:
    """Return the attributes, with their types, that no search in this namespace may name."""
    unknown: dict[str, str] = {}
    for name, kind in SEARCH_ATTRIBUTES.items():
        try:
            await client.count_workflows(f"{name} IS NULL", rpc_timeout=timedelta(seconds=_RPC_S))
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise ServerUnavailable(
                    f"the namespace {client.namespace!r} cannot be searched"
                    f" ({visible(error.message)})"
                ) from error
            unknown[name] = kind
    return unknown


def _no_namespace(namespace: str) -> ServerUnavailable:
    return ServerUnavailable(
        f"the server has no namespace {namespace!r}; make it with: temporal operator namespace"
        f" create --namespace {namespace}; or name another in TEMPORAL_NAMESPACE"
    )


def _cannot_make(namespace: str, missing: Mapping[str, str], error: RPCError) -> ServerUnavailable:
    commands = "".join(f"\n  {command}" for command in ways_to_make(namespace, missing))
    return ServerUnavailable(
        f"the namespace {namespace!r} lacks search attributes and this user may not make them"
        f" ({visible(error.message)}); have its administrator run:{commands}"
    )
