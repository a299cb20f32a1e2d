"""`capuchin validate`: every mistake, for people and for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.program import Project, agent_text, clean_environ, run

SIX = """\
apiVersion: capuchin/v1
name: Six Mistakes
promt: hello
prompt: You help {{ whom }}.
tools:
  - probe.loook
approval: {policy: denylist, tools: [probe.nothing]}
limits: {max_stepz: 3}
price: {type: per_call, amount: "0.25", currency: usd}
"""


def test_a_good_project_is_said_to_be_good(project: Project) -> None:
    ran = project.run("validate")

    assert (ran.code, ran.out, ran.err) == (0, "", "1 file: no mistakes\n")


def test_verbose_says_the_policy_of_each_agent(project: Project) -> None:
    ran = project.run("validate", "-v")

    assert ran.code == 0
    assert "notes: denylist: asks before probe.note; everything else runs\n" in ran.out


def test_all_mistakes_are_reported_at_once_in_file_order(project: Project) -> None:
    project.agent_file.write_text(SIX)

    ran = project.run("validate", "agents/notes.yaml", "--format", "concise")

    places = [line.split(": ")[0] for line in ran.out.splitlines()]
    assert ran.code == 1
    assert len(places) >= 6
    for place in (":2:7", ":3:1", ":4:21", ":6:5", ":8:10"):
        assert f"agents/notes.yaml{place}" in places
    lines = [int(place.split(":")[1]) for place in places]
    assert lines == sorted(lines)


def test_the_full_form_has_excerpt_caret_and_help(project: Project) -> None:
    project.agent_file.write_text(agent_text() + "tols: []\n")

    ran = project.run("validate")

    assert ran.code == 1
    assert "error[unknown-key]" in ran.out
    assert "^^^^" in ran.out
    assert "help: did you mean 'tools'?" in ran.out
    assert ran.err == "1 file: 1 error\n"


def test_json_is_one_document_also_with_a_broken_package_present(project: Project) -> None:
    (project.packages / "broken-1.0.dist-info").mkdir()
    (project.packages / "broken-1.0.dist-info" / "METADATA").write_text(
        "Name: broken\nVersion: 1\n"
    )
    (project.packages / "broken-1.0.dist-info" / "entry_points.txt").write_text(
        "[capuchin.tools]\nbroken = no_such_module\n"
    )
    project.agent_file.write_text(agent_text() + "tols: []\n")

    ran = project.run("validate", "--json")

    [found] = ran.json["diagnostics"]
    assert ran.code == 1
    assert (ran.json["v"], ran.json["files"]) == (1, ["agents/notes.yaml"])
    assert set(found) >= {
        *("id", "severity", "path", "line", "column", "end_line", "end_column", "message", "help")
    }


def test_json_names_the_agents_and_their_policies(project: Project) -> None:
    [agent] = project.run("validate", "--format", "json").json["agents"]

    assert agent["name"] == "notes"
    assert agent["sentence"].startswith("denylist:")
    assert len(agent["definition_hash"]) == 64


def test_sarif_and_github_are_forms_of_the_same_mistake(project: Project) -> None:
    project.agent_file.write_text(agent_text() + "tols: []\n")

    sarif = project.run("validate", "--format", "sarif")
    github = project.run("validate", "--format", "github")

    assert json.loads(sarif.out)["runs"][0]["results"][0]["ruleId"] == "unknown-key"
    assert github.out.startswith("::error file=agents/notes.yaml,line=")
    assert (sarif.code, github.code) == (1, 1)


def test_programs_get_the_edits_that_fix_makes(project: Project) -> None:
    project.agent_file.write_text(agent_text() + "lsting: {license: MIT}\n")

    [found] = project.run("validate", "--json").json["diagnostics"]
    [result] = json.loads(project.run("validate", "--format", "sarif").out)["runs"][0]["results"]

    [edit] = found["edits"]
    [replacement] = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert (edit["line"], edit["column"], edit["text"]) == (found["line"], 1, "listing")
    assert replacement["insertedContent"] == {"text": "listing"}


def test_a_name_used_twice_is_a_mistake(project: Project) -> None:
    (project.folder / "agents" / "second.yaml").write_text(agent_text())

    ran = project.run("validate", "--format", "concise")

    assert ran.code == 1
    assert "agents/second.yaml:1:1: error[name-taken]" in ran.out
    assert "agents/notes.yaml" in ran.out


def test_a_missing_file_is_a_mistake_and_not_wrong_usage(project: Project) -> None:
    ran = project.run("validate", "no.yaml", "--format", "concise")

    assert (ran.code, ran.out) == (
        1,
        "no.yaml:1:1: error[unreadable]: the agent file cannot be read: there is no such file\n",
    )


def test_nothing_to_check_is_wrong_usage(tmp_path: Path) -> None:
    assert run("validate", cwd=tmp_path).code == 2


def test_a_folder_without_agents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    ran = run("validate", cwd=tmp_path)

    assert (ran.code, ran.err) == (1, "error: no agent files in agents\n")


def test_a_folder_without_agents_beside_others_is_named(project: Project) -> None:
    (project.folder / "agent.yaml").mkdir()
    ran = project.run("validate", "agents", "agent.yaml")

    assert ran.code == 0
    assert "warning: no agent files in agent.yaml\n" in ran.err
    assert "no agent files in agents\n" not in ran.err


@pytest.mark.parametrize("format_", ["full", "concise", "json", "sarif", "github"])
def test_hostile_text_of_a_file_and_its_name_is_printed_visibly(
    format_: str, project: Project
) -> None:
    name = "evil\x1b[31m\u202e.yaml"
    (project.folder / name).write_text(
        'apiVersion: capuchin/v1\n"\\e[2J\u202e": 1\nname: "\\e]0;x"\n'
    )

    ran = project.run("validate", name, "--format", format_)

    assert ran.code == 1
    assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)


@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "POSIX"}])
def test_a_locale_without_utf_8_changes_no_exit_code(
    locale: dict[str, str], project: Project
) -> None:
    project.agent_file.write_text(agent_text() + "naïve: 1\n", encoding="utf-8")

    ran = project.run("validate", PYTHONCOERCECLOCALE="0", **locale)

    assert ran.code == 1
    assert "naïve" in ran.out or "na\\xefve" in ran.out


def test_a_read_only_machine_is_no_hindrance(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    for folder in (project.folder, project.folder / "agents"):
        folder.chmod(0o555)
    try:
        environ = {
            **clean_environ(Path("/nonexistent"), PYTHONPATH=str(project.packages)),
            "XDG_CONFIG_HOME": "/dev/null",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        checked = run("validate", cwd=project.folder, environ=environ)
        exported = run("export", "agents/notes.yaml", cwd=project.folder, environ=environ)
    finally:
        for folder in (project.folder, project.folder / "agents"):
            folder.chmod(0o755)

    assert (checked.code, exported.code) == (0, 0)
    assert os.listdir(project.folder / "agents") == ["notes.yaml"]
