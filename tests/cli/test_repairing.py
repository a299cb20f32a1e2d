"""`validate --fix`: what it writes, what it refuses to write, and the diff before."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from capuchin_yaml.cli.repairing import replace_file
from tests.cli.program import Project, agent_text

MISTAKEN = agent_text().replace("prompt:", "promt:") + "listng: {license: MIT}  # why\n"


def test_the_diff_shows_what_would_change_and_changes_nothing(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN)

    ran = project.run("validate", "--diff")

    assert ran.code == 1
    assert ran.err == "1 file would be changed\n"
    assert ran.out.startswith("--- agents/notes.yaml\n+++ agents/notes.yaml\n@@ ")
    assert "\n-listng: {license: MIT}  # why\n+listing: {license: MIT}  # why\n" in ran.out
    assert project.agent_file.read_text() == MISTAKEN
    assert project.run("validate", "--fix", "--diff").out == ran.out
    assert project.agent_file.read_text() == MISTAKEN


def test_a_repair_is_written_and_said_and_the_file_is_good_then(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN)

    ran = project.run("validate", "--fix")

    assert (ran.code, ran.out) == (0, "")
    assert "repaired agents/notes.yaml:" in ran.err
    assert "1 file: no mistakes\n" in ran.err
    assert project.agent_file.read_text() == MISTAKEN.replace("promt", "prompt").replace(
        "listng", "listing"
    )


def test_a_second_time_there_is_nothing_to_repair(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN)
    project.run("validate", "--fix")
    inode = project.agent_file.stat().st_ino

    again = project.run("validate", "--fix")
    shown = project.run("validate", "--diff")

    assert (again.code, again.err) == (0, "1 file: no mistakes\n")
    assert (shown.code, shown.out, shown.err) == (0, "", "nothing to repair\n")
    assert project.agent_file.stat().st_ino == inode


def test_what_is_left_is_reported_at_its_new_place(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN + "nobody: 1\n")

    ran = project.run("validate", "--fix", "--format", "concise")

    assert ran.code == 1
    assert [line.split("error")[1] for line in ran.out.splitlines()] == [
        "[unknown-key]: the agent has no key 'nobody'"
    ]


def test_a_report_says_when_something_could_be_repaired(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN)
    repairable = project.run("validate").err
    project.agent_file.write_text(agent_text() + "nobody: 1\n")
    not_repairable = project.run("validate").err

    assert repairable.endswith("--fix repairs what is certain; --diff shows it first\n")
    assert not_repairable == "1 file: 1 error\n"


def test_a_link_stays_a_link_and_mode_bits_stay(project: Project) -> None:
    real = project.folder / "real.yaml"
    real.write_text(MISTAKEN)
    real.chmod(0o640)
    project.agent_file.unlink()
    project.agent_file.symlink_to(real)

    ran = project.run("validate", "--fix")

    assert ran.code == 0
    assert project.agent_file.is_symlink()
    assert "prompt:" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_file_without_a_last_line_break_keeps_having_none(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN.rstrip("\n"))

    diff = project.run("validate", "--diff").out
    project.run("validate", "--fix")

    assert "\\ No newline at end of file\n" in diff
    assert project.agent_file.read_text().endswith("# why")


def test_a_file_that_was_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_bytes(b"theirs")

    with pytest.raises(click.ClickException, match="was changed while it was repaired"):
        replace_file(path, b"as it was read", b"repaired")

    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["agent.yaml"]


def test_a_folder_that_takes_no_file_is_said(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN)
    where = project.folder / "agents" / "gone" / "agent.yaml"

    with pytest.raises(OSError, match="No such file"):
        replace_file(where, b"", b"")
    assert project.agent_file.read_text() == MISTAKEN


def test_hostile_text_in_a_diff_is_visible(project: Project) -> None:
    project.agent_file.write_text(MISTAKEN + 'description: "\u202e"\n', encoding="utf-8")

    ran = project.run("validate", "--diff")

    assert "listng" in ran.out
    assert "\u202e" not in ran.out
