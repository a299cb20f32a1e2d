"""The operator's floor where people look: plan, inbox and doctor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Project, wait_until

FLOOR = """\
floor:
  - {tool: probe.*, then: deny, reason: Notes are closed.}
  - {tool: mail.send, then: deny}
"""


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """A folder to be XDG_CONFIG_HOME, with a floor in it."""
    config = tmp_path / "config" / "capuchin" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(FLOOR)
    config.chmod(0o600)
    return tmp_path / "config"


def test_plan_and_doctor_say_that_there_is_a_floor(project: Project, operator: Path) -> None:
    planned = project.run("plan", "agents/notes.yaml", XDG_CONFIG_HOME=str(operator))
    examined = project.run("doctor", XDG_CONFIG_HOME=str(operator))

    assert "the operator's floor of this machine counts" in planned.out + planned.err
    assert "Notes are closed." in planned.out
    assert "a floor of 2 rules over every agent" in examined.out


def test_the_inbox_says_what_the_floor_makes_of_a_call_that_waits_already(
    shop: Project, operator: Path
) -> None:
    [item] = shop.run("send", "notes", "note mezzanine", "--json").json["items"]
    wait_until(lambda: item["id"] in [row["id"] for row in shop.run("inbox", "--json").json])

    listed = shop.run("inbox", XDG_CONFIG_HOME=str(operator))
    shown = shop.run("inbox", "show", item["id"], XDG_CONFIG_HOME=str(operator))
    as_json = shop.run("inbox", "show", item["id"], "--json", XDG_CONFIG_HOME=str(operator))
    without = shop.run("inbox", "show", item["id"])

    assert "a floor of 2 rules counts before any of these runs" in listed.err
    assert "floor        deny: Notes are closed." in shown.out
    assert as_json.json["floor"] == ["deny: Notes are closed."]
    assert "floor" not in without.out


def test_an_unreadable_floor_is_said_too(shop: Project, operator: Path) -> None:
    (operator / "capuchin" / "config.yaml").write_text("floor: [")

    listed = shop.run("inbox", XDG_CONFIG_HOME=str(operator))

    assert "cannot be used, so every call asks" in listed.err
