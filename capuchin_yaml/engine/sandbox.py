"""The workflow sandbox of the SDK, entered once for each task instead of once for each payload.

The SDK asks every workflow instance for the serialization context of each payload, three times
over, and the sandboxed instance enters the sandbox to answer. Our converter seals without a
context and keeps large values itself, so the answer never matters. A quarter of the worker's own
processor time went there; docs/explanation/speed.md has the figures.
"""

from __future__ import annotations

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

_HOUSE = (
    "capuchin_yaml.engine",
    "capuchin_yaml.errors",
    "capuchin_yaml.events",
    "capuchin_yaml.items",
    "capuchin_yaml.messages",
    "capuchin_yaml.spec",
    "capuchin_yaml.tally",
)
"""Modules the sandbox takes as they are: pure, without state of their own."""


def sandbox() -> SandboxedWorkflowRunner:
    """Return the runner for our workflow: all restrictions of the SDK, our pure modules shared."""
    return _Sandbox(restrictions=SandboxRestrictions.default.with_passthrough_modules(*_HOUSE))


class _Sandbox(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _WithoutContexts(super().create_instance(det))


class _WithoutContexts(WorkflowInstance):
    """A sandboxed instance whose payloads are all converted alike."""

    def __init__(self, sandboxed: WorkflowInstance) -> None:
        self._sandboxed = sandboxed

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._sandboxed.activate(act)

    def get_serialization_context(self, command_info: object) -> None:
        return None

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    def get_info(self) -> Info:
        return self._sandboxed.get_info()

    def get_thread_id(self) -> int | None:
        return self._sandboxed.get_thread_id()
