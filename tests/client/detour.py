"""Connections to a real server that answer as a server does in a moment or a place of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, ServiceClient


class Detour(ServiceClient):
    """Passes every call on to the server that `temporal` is connected with."""

    def __init__(self, temporal: Client) -> None:
        super().__init__(temporal.service_client.config)
        self._temporal = temporal

    def client(self) -> Client:
        """A client that speaks through this connection."""
        return Client(
            self, namespace=self._temporal.namespace, data_converter=self._temporal.data_converter
        )

    async def _rpc_call(
        self,
        rpc: str,
        req: Any,
        resp_type: Any,
        *,
        service: str,
        retry: bool,
        metadata: Mapping[str, str | bytes],
        timeout: timedelta | None,
    ) -> Any:
        return await self._temporal.service_client._rpc_call(
            rpc,
            req,
            resp_type,
            service=service,
            retry=retry,
            metadata=metadata,
            timeout=timeout,
        )

    @property
    def worker_service_client(self) -> Any:
        """No worker runs on this connection."""
        raise NotImplementedError

    def update_rpc_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        """Nobody changes it."""

    def update_api_key(self, api_key: str | None) -> None:
        """Nobody changes it."""


class LateServer(Detour):
    """Answers the first time of each call from the run before the newest.

    So a server does that looks up the newest run just before the conversation rolls over.
    """

    def __init__(self, temporal: Client, run_before: str, *, for_ever: bool = False) -> None:
        super().__init__(temporal)
        self._run_before = run_before
        self._for_ever = for_ever
        """As after the newest run was deleted."""
        self.asked_before: list[str] = []
        """The calls that were answered from the run before."""

    async def _rpc_call(self, rpc: str, req: Any, resp_type: Any, **how: Any) -> Any:
        is_late = rpc in ("query_workflow", "describe_workflow_execution") and (
            not req.execution.run_id and (self._for_ever or rpc not in self.asked_before)
        )
        if not is_late:
            return await super()._rpc_call(rpc, req, resp_type, **how)
        self.asked_before.append(rpc)
        req.execution.run_id = self._run_before
        try:
            return await super()._rpc_call(rpc, req, resp_type, **how)
        finally:
            req.execution.run_id = ""


class NoOperatorService(Detour):
    """Has no operator service, as Temporal Cloud and clusters behind a proxy."""

    async def _rpc_call(self, rpc: str, req: Any, resp_type: Any, **how: Any) -> Any:
        if how["service"] == "operator":
            raise RPCError("unknown service", RPCStatusCode.UNIMPLEMENTED, b"")
        return await super()._rpc_call(rpc, req, resp_type, **how)
