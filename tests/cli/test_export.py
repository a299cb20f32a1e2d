"""`capuchin export`: the listing, to stdout or whole into a file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import Project


def test_the_listing_goes_to_stdout(project: Project) -> None:
    ran = project.run("export", "agents/notes.yaml")

    assert ran.code == 0
    assert (ran.json["v"], ran.json["name"], ran.json["version"]) == (1, "notes", "1.0.0")
    assert ran.json["packages"] == [{"distribution": "capuchin-probe", "version": "1.0"}]
    assert "You take notes" not in ran.out


def test_twice_gives_the_same_bytes(project: Project) -> None:
    first = project.run("export", "agents/notes.yaml").out

    assert project.run("export", "agents/notes.yaml").out == first


def test_a_file_gets_the_same_listing(project: Project) -> None:
    ran = project.run("export", "agents/notes.yaml", "-o", "listing.json")

    written = (project.folder / "listing.json").read_text()
    assert (ran.code, ran.out) == (0, "")
    assert json.loads(written) == project.run("export", "agents/notes.yaml").json


def test_a_file_with_mistakes_is_refused_and_nothing_is_written(project: Project) -> None:
    project.agent_file.write_text("apiVersion: capuchin/v1\ntols: []\n")

    ran = project.run("export", "agents/notes.yaml", "-o", "listing.json")

    assert (ran.code, ran.out) == (1, "")
    assert "error[unknown-key]" in ran.err
    assert not (project.folder / "listing.json").exists()


def test_a_place_that_cannot_be_written_is_named(project: Project) -> None:
    ran = project.run("export", "agents/notes.yaml", "-o", "nowhere/listing.json")

    assert (ran.code, ran.out) == (1, "")
    assert "cannot write nowhere/listing.json" in ran.err


def test_an_earlier_listing_survives_a_failed_write(project: Project) -> None:
    target = project.folder / "listing.json"
    target.write_text("before")
    project.agent_file.write_text("tols: []\n")

    assert project.run("export", "agents/notes.yaml", "-o", "listing.json").code == 1
    assert target.read_text() == "before"
    assert not list(Path(project.folder).glob(".listing*"))
