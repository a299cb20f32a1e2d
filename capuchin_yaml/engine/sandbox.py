"""The workflow sandbox of the SDK, entered once for each task instead of once for each payload,
and kept from a course that no replay could take.

The SDK asks every workflow instance for the serialization context of each payload, three times
over, and the sandboxed instance enters the sandbox to answer. Our converter seals without a
context and keeps large values itself, so the answer never matters. A quarter of the worker's own
processor time went there; docs/explanation/speed.md has the figures.

Local activities: when a query rides on the task that runs one, the SDK answers the query first
and tells the workflow of the result in the task after, together with updates that came meanwhile
and after them. A replay may tell the result before them, so the history would block the talk for
good. Such a task is given back: the server sends it again, from the history, in the order that
every later replay has, too. tests/engine/test_change.py races for it and replays.

Tasks that gave no command: a replay takes such a task together with the one behind it, and the SDK
tells the workflow of all that happened in both at once, requests first. So what happened is told
one by one, in the order of history, and requests after it: that order is the same however tasks
are put together (docs/decisions/0019-one-thing-at-a-time.md).

The clock: a local activity's result comes with the time of the task that tells of it, or with that
of the activity's end in a replay, and the two differ whenever a query rode along. So the clock
stands while local activities run: their results are told at the time of what was told before.
"""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
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
    "capuchin_yaml.signed",
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
        self._was_asked = False
        self._time = Timestamp()

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        was_asked = self._was_asked
        self._was_asked = any(job.HasField("query_workflow") for job in act.jobs)
        if was_asked and not act.is_replaying and _is_mixed(act):
            return _given_back(act)
        return self._one_by_one(act)

    def _one_by_one(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Tell the workflow each thing that happened by itself, and requests after them."""
        if len(act.jobs) < 2 or any(job.HasField("initialize_workflow") for job in act.jobs):
            return self._tell(act)
        requests = [j for j in act.jobs if _is_request(j)]
        questions = [j for j in act.jobs if j.HasField("query_workflow")]
        events = [j for j in act.jobs if not (_is_request(j) or j.HasField("query_workflow"))]
        whole = WorkflowActivationCompletion(run_id=act.run_id)
        for jobs in (*([job] for job in (*events, *requests)), questions):
            if jobs:
                part = WorkflowActivation()
                part.CopyFrom(act)
                del part.jobs[:]
                part.jobs.extend(jobs)
                done = self._tell(part)
                if done.HasField("failed"):
                    return done
                whole.successful.MergeFrom(done.successful)
        return whole

    def _tell(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Tell the workflow, at a time that a replay knows as well."""
        if any(_is_local_result(job) for job in act.jobs):
            act.timestamp.CopyFrom(self._time)
        elif not all(job.HasField("query_workflow") for job in act.jobs):
            self._time.CopyFrom(act.timestamp)
        return self._sandboxed.activate(act)

    def get_serialization_context(self, command_info: object) -> None:
        return None

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)

    def get_info(self) -> Info:
        return self._sandboxed.get_info()

    def get_thread_id(self) -> int | None:
        return self._sandboxed.get_thread_id()


def _is_request(job: WorkflowActivationJob) -> bool:
    return job.HasField("do_update") or job.HasField("signal_workflow")


def _is_local_result(job: WorkflowActivationJob) -> bool:
    return job.HasField("resolve_activity") and job.resolve_activity.is_local


def _is_mixed(act: WorkflowActivation) -> bool:
    """Whether a local activity's result comes together with something else than queries."""
    results = others = 0
    for job in act.jobs:
        if _is_local_result(job):
            results += 1
        elif not job.HasField("query_workflow"):
            others += 1
    return bool(results and others)


def _given_back(act: WorkflowActivation) -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion(run_id=act.run_id)
    completion.failed.failure.message = "given back: its order depends on a query"
    # Why this cause: it says that the code is well (client/diagnosis.py).
    completion.failed.force_cause = (
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE
    )
    return completion
