"""A program that talks to an agent while nobody is there to decide: it says so and ends."""

from __future__ import annotations

import pytest

from tests.cli.program import Project, wait_until


@pytest.mark.parametrize("has_timeout", [False, True])
def test_one_message_and_a_piped_talk_end_with_4_and_name_the_call_and_the_verb(
    project: Project, has_timeout: bool
) -> None:
    """Case: a run without a person hangs, or is denied and still ends with 0."""
    policy = f"{{policy: all{', timeout: 2s' if has_timeout else ''}}}"
    agent = project.agent_file.read_text()
    project.agent_file.write_text(agent.replace("{policy: denylist, tools: [probe.note]}", policy))
    assert policy in project.agent_file.read_text()

    with project.up():
        sent = project.run("send", "notes", "note milk")
        piped = project.run("chat", "notes", stdin="note milk\n")
        for ran in (sent, piped):
            [needed] = [line for line in ran.err.splitlines() if "a person is needed" in line]
            assert ran.code == 4
            assert "probe.note waits for approval" in needed
            assert "capuchin inbox approve" in needed
        if has_timeout:
            wait_until(lambda: not project.run("inbox", "--json").json)
            told = project.run("send", "notes", "note milk", "--json").json
            assert told["status"] == "waiting"
            states = {row["status"] for row in project.run("list", "--json").json}
            assert states == {"idle", "waiting"}

    assert not (project.data / "notes").exists()
