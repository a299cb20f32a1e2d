"""The order in which a workflow is told of things is that of history, however tasks were cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance

from capuchin_yaml.engine.sandbox import _WithoutContexts
from tests.engine.commands import replayed

RACED = Path(__file__).parent / "raced"


class Heard(WorkflowInstance):
    """Notes what it is told, and answers each time with one command."""

    def __init__(self, failing: str = "") -> None:
        self.told: list[list[str]] = []
        self.times: list[int] = []
        self._failing = failing

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        self.told.append(list(names(act)))
        self.times.append(act.timestamp.seconds)
        done = WorkflowActivationCompletion(run_id=act.run_id)
        if self._failing in self.told[-1]:
            done.failed.failure.message = "no"
        else:
            done.successful.commands.add().start_timer.seq = len(self.told)
        return done

    def get_serialization_context(self, command_info: object) -> None:
        raise AssertionError

    def get_external_store_context(self, command_info: object) -> None:  # type: ignore[override]  # never asked
        raise AssertionError

    def get_info(self) -> None:  # type: ignore[override]  # never asked
        raise AssertionError

    def get_thread_id(self) -> int | None:
        return None


def names(act: WorkflowActivation) -> Iterator[str]:
    """The jobs of an activation in words."""
    for job in act.jobs:
        match job.WhichOneof("variant"):
            case "resolve_activity":
                yield f"result {job.resolve_activity.seq}"
            case "do_update":
                yield f"update {job.do_update.id}"
            case "query_workflow":
                yield f"query {job.query_workflow.query_id}"
            case other:
                yield str(other)


def activation(*jobs: str) -> WorkflowActivation:
    """An activation with these jobs, in this order."""
    act = WorkflowActivation(run_id="run", history_length=34)
    for job in jobs:
        kind, _, which = job.partition(" ")
        match kind:
            case "result":
                act.jobs.add().resolve_activity.seq = int(which)
            case "local":
                act.jobs.add().resolve_activity.seq = int(which)
                act.jobs[-1].resolve_activity.is_local = True
            case "update":
                act.jobs.add().do_update.id = which
            case "query":
                act.jobs.add().query_workflow.query_id = which
            case _:
                act.jobs.add().initialize_workflow.workflow_id = which
    return act


def test_results_come_one_by_one_then_requests_then_questions() -> None:
    inner = Heard()

    done = _WithoutContexts(inner).activate(
        activation("update a", "result 4", "query x", "result 5", "update b", "query y")
    )

    assert inner.told == [
        ["result 4"],
        ["result 5"],
        ["update a"],
        ["update b"],
        ["query x", "query y"],
    ]
    assert [c.start_timer.seq for c in done.successful.commands] == [1, 2, 3, 4, 5]


def test_the_beginning_of_a_run_is_told_whole() -> None:
    inner = Heard()

    _WithoutContexts(inner).activate(activation("initialize w", "update a"))

    assert inner.told == [["initialize_workflow", "update a"]]


def test_a_part_that_fails_fails_the_task() -> None:
    inner = Heard(failing="result 5")

    done = _WithoutContexts(inner).activate(activation("result 4", "result 5", "result 6"))

    assert done.failed.failure.message == "no"
    assert inner.told[-1] == ["result 5"]


def test_the_clock_stands_while_local_activities_run() -> None:
    heard = Heard()
    live = _WithoutContexts(heard)
    for second, jobs in ((1, ["start"]), (2, ["result 1"]), (3, ["query a"]), (4, ["local 2"])):
        act = activation(*jobs)
        act.timestamp.seconds = second
        live.activate(act)
    replayed = _WithoutContexts(heard)
    for second, jobs in ((1, ["start"]), (2, ["result 1"]), (3, ["local 2", "update b"])):
        act = activation(*jobs)
        act.timestamp.seconds, act.is_replaying = second, True
        replayed.activate(act)

    assert heard.told[3] == heard.told[6] == ["result 2"]
    assert heard.times == [1, 2, 3, 2, 1, 2, 2, 3]


async def test_an_update_behind_the_result_of_a_task_without_commands_replays() -> None:
    """A talk that was blocked for good once its server and worker had been killed."""
    problem, _, commands = await replayed(RACED / "an-update-behind-a-result.json")

    assert (problem, commands > 0) == ("", True)
