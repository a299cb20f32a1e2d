"""`capuchin plan` and `capuchin policy`: what may happen, proved before it does."""

from __future__ import annotations

import subprocess

from tests.cli.program import Project, agent_text

RULES = """\
approval:
  policy: denylist
  tools: [probe.note]
  rules:
    - {tool: probe.nap, when: args.seconds > 60, then: deny, reason: Nobody sleeps that long.}
    - {tool: probe.post, then: deny}
"""


def ruled() -> str:
    lines = agent_text().splitlines(keepends=True)
    return "".join(RULES if line.startswith("approval") else line for line in lines)


def test_plan_says_what_runs_what_asks_and_what_never_happens(project: Project) -> None:
    project.agent_file.write_text(ruled())

    ran = project.run("plan", "agents/notes.yaml")

    assert ran.code == 0
    heads = [line for line in ran.out.splitlines() if line and not line.startswith(" ")]
    assert heads[1:] == ["runs alone", "depends on a rule", "asks", "never"]
    assert (
        "    refused when args.seconds > 60 (rule 1, line 18): Nobody sleeps that long.\n"
        in ran.out
    )
    assert "    at most 60 seconds in one call (rule 1)\n" in ran.out


def test_plan_as_json_is_one_document(project: Project) -> None:
    project.agent_file.write_text(ruled())

    plan = project.run("plan", "agents/notes.yaml", "--json").json

    courses = {tool["tool"]: tool["course"] for tool in plan["tools"]}
    assert plan["v"] == 1
    assert courses == {
        "probe.look": "runs",
        "probe.note": "asks",
        "probe.nap": "depends",
        "probe.post": "never",
        "probe.child": "runs",
    }


def test_plan_against_a_file_shows_the_loosened_first(project: Project) -> None:
    old = project.agent_file.with_name("old.txt")
    old.write_text(ruled())

    ran = project.run("plan", "agents/notes.yaml", "--against", str(old))

    first = ran.out.splitlines()[1]
    assert first.startswith("  LOOSENED  probe.nap")


def test_plan_against_a_git_revision(project: Project) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        subprocess.run(
            ["git", *identity, *words],
            cwd=project.agent_file.parent,
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    git("add", "notes.yaml")
    git("commit", "-q", "-m", "notes")
    project.agent_file.write_text(ruled())

    changed = project.run("plan", "agents/notes.yaml", "--against", "HEAD", "--json").json[
        "changes"
    ]

    assert {(c["kind"], c["what"]) for c in changed} == {
        ("tightened", "probe.nap"),
        ("tightened", "probe.post"),
    }


def test_plan_against_nothing_that_exists_is_wrong_usage(project: Project) -> None:
    ran = project.run("plan", "agents/notes.yaml", "--against", "no-such-thing")

    assert (ran.code, ran.out) == (2, "")
    assert "no file" in ran.err


def test_plan_of_a_file_with_mistakes_shows_them(project: Project) -> None:
    project.agent_file.write_text(agent_text() + "tols: []\n")

    ran = project.run("plan", "agents/notes.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert "error[unknown-key]" in ran.err


def test_policy_explain_names_the_rule_and_its_line(project: Project) -> None:
    project.agent_file.write_text(ruled())

    ran = project.run("policy", "explain", "agents/notes.yaml", "nap", '{"seconds": 90}')

    assert ran.code == 0
    assert ran.out == (
        'deny: probe.nap {"seconds":90}\n'
        "  decided by rule 1 (agents/notes.yaml:18): Nobody sleeps that long.\n"
    )


def test_policy_explain_refuses_what_is_no_json_and_no_tool(project: Project) -> None:
    no_json = project.run("policy", "explain", "agents/notes.yaml", "nap", "{")
    no_tool = project.run("policy", "explain", "agents/notes.yaml", "snooze")

    assert (no_json.code, no_tool.code) == (2, 2)
    assert "its tools are" in no_tool.err


def test_policy_test_shows_each_call_and_fails_when_one_does(project: Project) -> None:
    project.agent_file.write_text(ruled())
    cases = project.agent_file.with_name("notes.policy.yaml")
    cases.write_text(
        "agent: notes.yaml\ncalls:\n"
        "  - {tool: nap, args: {seconds: 5}, expect: allow}\n"
        "  - {tool: note, args: {word: hi}, expect: allow}\n"
    )

    ran = project.run("policy", "test", "agents/notes.policy.yaml")

    assert ran.code == 1
    assert ran.out.splitlines() == [
        'ok   agents/notes.policy.yaml:3: nap {"seconds": 5}: allow',
        'FAIL agents/notes.policy.yaml:4: note {"word": "hi"}: expected allow, got ask by policy: '
        "denylist: probe.note is on the list",
        "untested tools: probe.look, probe.post, probe.child",
        "untested rules: 1, 2 of agents/notes.yaml",
    ]
    assert ran.err == "1 of 2 calls as expected\n"
    assert (
        project.run("policy", "test", "agents/notes.policy.yaml", "--json").json["passed"] is False
    )
