"""Whatever is killed while a person is asked: the same question is there again, once."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.program import processes_of, wait_until
from tests.e2e.demo import (
    WISH,
    as_bytes,
    demo_project,
    failed_tasks,
    history,
    kill,
    kill_everything,
    refunds,
    server_record,
    start,
    wait_idle,
    wait_status,
)
from tests.e2e.street import street_data, street_project


async def test_a_pending_approval_outlives_every_kill_and_is_carried_out_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Case: approvals that lived in memory are lost, or asked anew, after a restart."""
    project = demo_project(tmp_path_factory.mktemp("crashes"))
    with project.up("--no-tui") as up:
        conversation = project.run("send", "billing", WISH, "--json").json["conversation"]
        [item] = project.run("inbox", "--json").json
        before = as_bytes(await history(project, conversation))

        async def assert_unchanged() -> None:
            assert project.run("inbox", "--json").json == [item]
            now = as_bytes(await history(project, conversation))
            assert now[: len(before)] == before

        kill(*up.workers())
        up.wait_said("the worker runs again")
        await assert_unchanged()

        kill(server_record(project)["pid"])
        up.wait_said("the server runs again")
        await assert_unchanged()

        kill(*up.workers(), server_record(project)["pid"])
        wait_until(lambda: up.said.count("the server runs again") == 2)
        wait_until(lambda: up.said.count("the worker runs again") == 2)
        await assert_unchanged()

        kill_everything(project)
    with project.up("--no-tui"):
        await assert_unchanged()
        whole = project.run("inbox", "show", item["id"], "--json").json
        decided = project.run("inbox", "approve", item["id"], "--digest", item["digest"])
        wait_idle(project, conversation)

        assert whole["arguments"] == item["arguments"]
        assert decided.code == 0
        assert refunds(project) == [("A-1001", 4200)]
        whole_history = await history(project, conversation)
        assert as_bytes(whole_history)[: len(before)] == before
        assert failed_tasks(whole_history) == 0


def test_past_the_grace_time_a_call_is_asked_about_and_the_answer_settles_it(
    tmp_path: Path,
) -> None:
    """Case: a graceful stop fails the running call and nobody can say what became of it."""
    project = street_project(tmp_path)
    walks = street_data(project) / "walk-began"
    with project.up("--grace", "0.5s") as up:
        conversation = start(project, "street", "sleepwalk")
        wait_until(walks.exists)
        assert up.end(signal.SIGTERM) == 0
    assert processes_of(project.folder) == {}

    with project.up():
        wait_status(project, conversation, "waiting")
        [item] = project.run("inbox", "--json").json
        answered = project.run(
            *("inbox", "answer", item["id"], "happened", "--digest", item["digest"]),
            *("--result", "home again"),
        )
        wait_idle(project, conversation)
        shown = project.run("show", conversation, "--json").json

    assert (item["kind"], item["tool"]) == ("outcome", "street.sleepwalk")
    assert answered.code == 0
    [ended] = [e for e in shown["events"] if e["kind"] == "tool_ended"][-1:]
    assert "home again" in ended["text"]
    assert walks.read_text() == "1"


def test_the_time_to_decide_runs_on_while_everything_is_down(tmp_path: Path) -> None:
    """Case: after a restart a deadline is forgotten, starts anew, or counts as a yes."""
    project = street_project(tmp_path)
    agent = tmp_path / "agents" / "street.yaml"
    agent.write_text(agent.read_text().replace("[street.sign]}", "[street.sign], timeout: 4s}"))
    with project.up():
        sent = project.run("send", "street", "sign Ann", "--json").json
        [item] = project.run("inbox", "--json").json
        kill_everything(project)
    due = datetime.fromisoformat(item["due"])
    wait_until(lambda: datetime.now(UTC) > due)

    with project.up():
        wait_idle(project, sent["conversation"])
        late = project.run("inbox", "approve", item["id"], "--digest", item["digest"])
        events = project.run("show", sent["conversation"], "--json").json["events"]

    [decided] = [e for e in events if e["kind"] == "item_decided"]
    assert decided["choice"] == "expired"
    assert late.code == 1
    assert "expired" in late.err
    assert not (street_data(project) / "signed").exists()
