"""`capuchin init`: a project that runs at once, and never a lost file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import Project, clean_environ, run


def test_what_it_writes_is_valid_and_runs_without_a_key(tmp_path: Path) -> None:
    made = run("init", "new", cwd=tmp_path)
    project = Project(tmp_path / "new", tmp_path, clean_environ(tmp_path))
    with project.up() as up:
        answer = project.run("send", "hello", "hi", "--json")
        said = up.said

    assert made.code == 0
    assert "cd new && capuchin up" in made.err
    assert project.run("validate").code == 0
    assert answer.code == 0
    assert answer.json["rehearsal"] is True
    assert "rehearsal answers for hello" in said


def test_the_agent_names_a_schema_that_lies_beside_it(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)

    first = (tmp_path / "agent.yaml").read_text().splitlines()[0]
    named = tmp_path / first.partition("$schema=")[2]
    assert json.loads(named.read_text())["title"]


def test_no_file_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("mine")

    ran = run("init", cwd=tmp_path)

    assert (ran.code, ran.out) == (1, "")
    assert "agent.yaml is there already; nothing was written" in ran.err
    assert (tmp_path / "agent.yaml").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["agent.yaml"]


def test_a_gitignore_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")

    ran = run("init", cwd=tmp_path)

    assert ran.code == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert "left .gitignore as it is" in ran.err


def test_a_link_in_the_place_of_the_agent_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").symlink_to(tmp_path / "elsewhere")

    assert run("init", cwd=tmp_path).code == 1
    assert not (tmp_path / "elsewhere").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ran = run("init", "file/below", cwd=tmp_path)

    assert (ran.code, ran.out) == (1, "")
    assert "cannot write" in ran.err
    assert "Traceback" not in ran.err
