"""Two people of a group decide a call from their own terminals, one of them with a signature."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.program import Project, agent_text, wait_until
from tests.cli.terminal import Terminal
from tests.engine.operator_file import make_key, write_operator_config


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose notes two of finance must approve, and whose operator is told of it."""
    folder = tmp_path_factory.mktemp("office")
    project = Project.make(folder)
    text = agent_text().replace(
        "tools: [probe.note]}", "tools: [probe.note], approvers: finance, quorum: 2}"
    )
    project.agent_file.write_text(text)
    _, public = make_key(folder, "bob")
    write_operator_config(
        folder / ".config",
        groups={"finance": ["ann", "bob", "cleo"]},
        people={"bob": {"keys": [public]}},
        notify=[{"bell": True}],
    )
    with project.up("--no-tui"):
        yield project


def asked(project: Project, word: str) -> dict[str, str]:
    [item] = project.run("send", "notes", f"note {word}", "--json").json["items"]
    found: dict[str, str] = item
    return found


def test_two_people_approve_and_each_is_told_how_many_are_needed(office: Project) -> None:
    item = asked(office, "shared")
    approve = ("inbox", "approve", item["id"], "--digest", item["digest"])
    first = office.run(*approve)
    shown = office.run("inbox", "show", item["id"])
    unsigned = office.run(*approve, CAPUCHIN_USER="bob")
    signed = office.run(
        *approve, CAPUCHIN_USER="bob", CAPUCHIN_SIGNING_KEY=str(office.folder / "id_bob")
    )
    wait_until(lambda: (office.data / "notes").exists())
    events = office.run("show", item["id"].partition(":")[0], "--json").json["events"]

    assert first.code == 0
    assert "by ann (not proven)" in first.out
    assert "1 of 2 approved; 1 more needed" in first.out
    assert "finance: ann, bob, cleo" in shown.out
    assert "1 of 2 approved: ann (not proven); 1 more needed" in shown.out
    assert unsigned.code == 1
    assert "decisions of bob must be signed" in unsigned.err
    assert (signed.code, signed.out.count("not proven")) == (0, 0)
    [decided] = [e for e in events if e["kind"] == "item_decided"]
    assert (decided["by"], decided["proven"]) == ("bob", True)


def test_who_is_not_in_the_group_is_told_who_is(office: Project) -> None:
    item = asked(office, "foreign")
    ran = office.run(
        *("inbox", "approve", item["id"], "--digest", item["digest"]), CAPUCHIN_USER="eve"
    )

    assert ran.code == 1
    assert "eve is not in the group finance; who is: ann, bob, cleo" in ran.err


def test_the_list_says_how_many_have_approved(office: Project) -> None:
    item = asked(office, "listed")
    office.run("inbox", "approve", item["id"], "--digest", item["digest"])

    def row() -> dict[str, object]:
        rows = office.run("inbox", "--json").json
        return next((r for r in rows if r["id"] == item["id"]), {})

    wait_until(lambda: row().get("votes") == 1)

    assert (row()["approvers"], row()["quorum"]) == (["finance"], 2)
    assert "1 of 2 approved  for finance" in office.run("inbox").out


def test_json_of_an_item_says_who_may_and_who_has(office: Project) -> None:
    item = asked(office, "counted")
    office.run("inbox", "approve", item["id"], "--digest", item["digest"])
    shown = office.run("inbox", "show", item["id"], "--json").json

    assert (shown["approvers"], shown["quorum"], shown["needed"]) == (["finance"], 2, 1)
    assert [(v["by"], v["proven"]) for v in shown["votes"]] == [("ann", False)]


def test_the_watch_rings_where_the_operator_wants_it(office: Project) -> None:
    with Terminal("inbox", "watch", cwd=office.folder, environ=office.environ) as terminal:
        before = asked(office, "before")
        terminal.wait_for(before["id"])
        asked(office, "rung")
        terminal.wait_for("\a")


def test_a_group_that_the_operator_does_not_have_is_named(project: Project) -> None:
    text = agent_text().replace("tools: [probe.note]}", "tools: [probe.note], approvers: nobody}")
    project.agent_file.write_text(text)
    doctor = project.run("doctor", "agents/notes.yaml")
    with project.up("--no-tui"):
        logs = [log.read_text() for log in (project.home / "log").iterdir()]

    assert doctor.code == 1
    assert "notes asks the group nobody, which is not in" in doctor.out
    assert any("notes asks the group nobody, which" in log for log in logs)
