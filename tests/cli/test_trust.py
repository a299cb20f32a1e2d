"""`capuchin trust`, and what an ungranted need keeps from happening."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capuchin_yaml.cli.agents_on_disk import on_disk_from_json
from capuchin_yaml.spec import AgentSpec, ToolSpec
from tests.cli.program import Project, agent_text
from tests.policy.test_gating import READ

NEEDY = agent_text().replace(
    "  - probe.look\n", "  - {use: probe.look, config: {key: {env: LOOK_KEY}}}\n"
)


def needy(project: Project) -> str:
    """Give the project an agent that needs a variable; returns where the operator's config is."""
    project.agent_file.write_text(NEEDY)
    return str(project.folder / "config")


def config_of(project: Project) -> Path:
    return project.folder / "config" / "capuchin" / "config.yaml"


def test_trust_shows_the_needs_and_asks_nobody_where_nobody_is(project: Project) -> None:
    config = needy(project)

    ran = project.run("trust", "agents/notes.yaml", XDG_CONFIG_HOME=config)

    assert ran.code == 1
    assert ran.out == "notes (agents/notes.yaml) needs\n  env LOOK_KEY for probe.look\n"
    assert "capuchin trust --yes" in ran.err
    assert not config_of(project).exists()


def test_trust_yes_grants_once_and_for_exactly_these_needs(project: Project) -> None:
    config = needy(project)

    first = project.run("trust", "--yes", "agents/notes.yaml", XDG_CONFIG_HOME=config)
    again = project.run("trust", "agents/notes.yaml", XDG_CONFIG_HOME=config)
    project.agent_file.write_text(NEEDY.replace("LOOK_KEY", "PATH"))
    other = project.run("trust", "--json", "agents/notes.yaml", XDG_CONFIG_HOME=config)

    assert (first.code, again.code) == (0, 0)
    assert again.out == "notes (agents/notes.yaml): all that it needs is granted\n"
    assert [one["granted"] for one in other.json] == [False]


def test_an_agent_without_needs_asks_for_nothing(project: Project) -> None:
    ran = project.run("trust")

    assert (ran.code, ran.out) == (0, "")


def test_an_agent_without_its_grant_is_not_served(project: Project) -> None:
    spec = AgentSpec(name="notes", prompt="p", tools=(wanting(),))

    agent = on_disk_from_json(
        {"path": "notes.yaml", "spec": spec.to_json(), "problems": "", "headline": ""}
    )

    assert agent.spec is None
    assert agent.headline == (
        "notes needs env LOOK_KEY for a.read, which is not granted here; "
        "type: capuchin trust notes.yaml"
    )


def wanting() -> ToolSpec:
    return replace(READ, config={"key": {"env": "LOOK_KEY"}})
