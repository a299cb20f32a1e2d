"""A connection on which the newest run is found late, as on a server while a run rolls over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.service import ServiceClient


class LateServer(ServiceClient):
    """Asks the first time of each call about the run before the newest; the server is real."""

    def __init__(self, temporal: Client, run_before: str) -> None:
        super().__init__(temporal.service_client.config)
        self._temporal = temporal
        self._run_before = run_before
        self.asked_before: list[str] = []
        """The calls that were answered from the run before."""

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
        if rpc in ("query_workflow", "describe_workflow_execution") and (
            not req.execution.run_id and rpc not in self.asked_before
        ):
            self.asked_before.append(rpc)
            req.execution.run_id = self._run_before
            try:
                return await self._call(rpc, req, resp_type, service, retry, metadata, timeout)
            finally:
                req.execution.run_id = ""
        return await self._call(rpc, req, resp_type, service, retry, metadata, timeout)

    async def _call(self, rpc: str, req: Any, resp_type: Any, service: str, *rest: Any) -> Any:
        retry, metadata, timeout = rest
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
