"""`capuchin schema`: what editors know."""

from __future__ import annotations

import json

from tests.cli.program import Project


def test_the_schema_knows_the_installed_tools(project: Project) -> None:
    schema = project.run("schema").json

    assert "probe.look" in schema["$defs"]["identity"]["enum"]


def test_the_schema_can_be_written_to_a_file(project: Project) -> None:
    ran = project.run("schema", "-o", "agent.schema.json")

    assert (ran.code, ran.out) == (0, "")
    assert json.loads((project.folder / "agent.schema.json").read_text())["$defs"]
