"""`--profile` and `extends`, through the program."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.program import Project, agent_text

PROFILES = """\
profiles:
  careful: {approval: all, limits: {max_steps: 3}}
  ready: {model: {name: "anthropic:x", base_url: "http://localhost:1", api_key: {env: OUR_KEY}}}
"""


@pytest.fixture
def profiled(project: Project) -> Project:
    project.agent_file.write_text(agent_text() + PROFILES)
    return project


def test_a_profile_changes_what_the_plan_says(profiled: Project) -> None:
    plain = profiled.run("plan", "agents/notes.yaml", "--json").json
    careful = profiled.run("plan", "agents/notes.yaml", "--profile", "careful", "--json").json

    assert {tool["course"] for tool in careful["tools"]} == {"asks"}
    assert {tool["course"] for tool in plain["tools"]} != {"asks"}
    assert careful["limits"]["max_steps"] == 3
    assert plain["definition_hash"] != careful["definition_hash"]


def test_a_misspelt_profile_is_an_error_that_names_the_nearest(profiled: Project) -> None:
    ran = profiled.run("validate", "--profile", "carefull")

    assert ran.code == 1
    assert "error[unknown-profile]" in ran.out
    assert "did you mean 'careful'?" in ran.out


@pytest.mark.parametrize(
    "words", [("validate",), ("plan", "agents/notes.yaml"), ("export", "agents/notes.yaml")]
)
def test_a_profile_where_there_are_none_is_refused(
    project: Project, words: tuple[str, ...]
) -> None:
    ran = project.run(*words, "--profile", "careful")

    assert (ran.code, ran.out) == (1, "")
    assert "there are no profiles in" in ran.err


def test_a_mistake_in_a_profile_counts_when_it_is_not_chosen(profiled: Project) -> None:
    text = profiled.agent_file.read_text().replace("max_steps: 3", "max_steps: 0")
    profiled.agent_file.write_text(text)

    ran = profiled.run("validate")

    assert ran.code == 1
    assert "error[out-of-range]: limits.max_steps must be at least 1" in ran.out


def test_needs_are_those_of_the_profile_and_are_granted_for_it(profiled: Project) -> None:
    config = str(profiled.folder / "config")

    plain = profiled.run("trust", "agents/notes.yaml", XDG_CONFIG_HOME=config)
    noted = profiled.run("validate", "--profile", "ready", XDG_CONFIG_HOME=config)
    asked = ("trust", "--yes", "--profile", "ready", "agents/notes.yaml")
    granted = profiled.run(*asked, XDG_CONFIG_HOME=config)
    after = profiled.run("validate", "--profile", "ready", XDG_CONFIG_HOME=config)

    assert (plain.code, plain.out) == (0, "")
    assert "has not granted OUR_KEY for the model at http://localhost:1" in noted.out
    assert "capuchin trust agents/notes.yaml --profile ready" in noted.out
    assert "env OUR_KEY for the model at http://localhost:1" in granted.out
    assert "ungranted-need" not in after.out


def test_plan_against_a_revision_reads_the_other_files_of_that_revision(project: Project) -> None:
    folder = project.agent_file.parent
    base = folder / "base" / "all.yaml"
    base.parent.mkdir()
    base.write_text("approval: all\nprompt: {file: said.md}\n")
    (base.parent / "said.md").write_text("Take notes.\n")
    child = folder / "child.yaml"
    child.write_text(
        "apiVersion: capuchin/v1\nname: child\nextends: base/all.yaml\ntools: [probe.note]\n"
    )
    git = ["git", "-c", "user.name=ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    base.write_text("approval: auto\nprompt: {file: said.md}\n")
    (base.parent / "said.md").write_text("Take many notes.\n")

    ran = project.run("plan", "agents/child.yaml", "--against", "HEAD")

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[1].startswith("  LOOSENED  probe.note: asks → runs alone")
    assert "  changed   prompt: is another" in lines


def test_up_serves_the_profile_and_takes_up_a_change_of_the_file_below(project: Project) -> None:
    folder = project.agent_file.parent
    base = folder / "base" / "all.yaml"
    base.parent.mkdir()
    base.write_text("description: first\nprompt: Answer.\nmodel: rehearsal\n")
    head = "apiVersion: capuchin/v1\nname: child\nextends: base/all.yaml\n"
    (folder / "child.yaml").write_text(f"{head}profiles: {{live: {{version: 2.0.0}}}}\n")

    with project.up("--no-tui", "--profile", "live") as up:
        up.wait_said("child 2.0.0")
        assert project.run("send", "child", "hello").code == 0
        base.write_text("description: second\nprompt: Answer.\nmodel: rehearsal\n")
        up.wait_said("child 2.0.0 is reloaded")

        assert '"second"' in (project.home / "agents.json").read_text()


def test_up_with_a_profile_that_nobody_has_does_not_start(project: Project) -> None:
    ran = project.run("up", "--no-tui", "--profile", "live")

    assert ran.code == 1
    assert "no profile 'live': there are no profiles in agents/notes.yaml" in ran.err
