"""Variables of the environment reach a tool, and nothing else."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from capuchin_yaml.compiler.operator_config import read_operator_config
from capuchin_yaml.compiler.operator_grants import add_grants
from capuchin_yaml.engine.agents import ServedAgent
from capuchin_yaml.engine.call_secrets import Secrets
from capuchin_yaml.errors import ToolUnavailable
from capuchin_yaml.policy.needs import Need, grant_of
from tests.engine.house import House, Talk

SECRET = "postgres://ann:hunter2@db/sales"
GRANT = grant_of("spy", (Need("SALES_DB", "lab.setting"),))


def test_each_variable_is_replaced_wherever_it_stands() -> None:
    grants = (grant_of("a", (Need("A", "x.y"), Need("B", "x.y"))),)
    config: dict[str, Any] = {"url": {"env": "A"}, "more": [{"env": "B"}, {"n": 1}]}

    resolved = Secrets().resolved(config, "x.y", grants, {"A": "one", "B": "two"})

    assert resolved == {"url": "one", "more": ["two", {"n": 1}]}


@pytest.mark.parametrize(
    ("tool", "environ", "why"),
    [("x.z", {"A": "one"}, "not granted"), ("x.y", {}, "not set")],
)
def test_a_variable_that_is_not_granted_or_not_set_keeps_the_tool_from_being_entered(
    tool: str, environ: dict[str, str], why: str
) -> None:
    grants = (grant_of("a", (Need("A", "x.y"),)),)

    with pytest.raises(ToolUnavailable, match=why):
        Secrets().resolved({"url": {"env": "A"}}, tool, grants, environ)


def test_what_was_given_is_named_for_the_scrubber() -> None:
    given = Secrets()
    grants = (grant_of("a", (Need("A", "x.y"), Need("B", "x.y"))),)
    config: dict[str, Any] = {"a": {"env": "A"}, "b": {"env": "B"}}
    given.resolved(config, "x.y", grants, {"A": SECRET, "B": "no"})

    assert given.values == {"A": SECRET, "B": "no"}


def spy(house: House) -> None:
    """An agent whose tool says what it was given."""
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "setting", "args": {}}]}},
        default={"say": "ok"},
    )
    spec = house.agent("spy", model, "lab.setting")
    tool = dataclasses.replace(spec.tools[0], config={"database": {"env": "SALES_DB"}})
    house.agents.put(ServedAgent(dataclasses.replace(spec, tools=(tool,))))


async def result(talk: Talk) -> tuple[str, str]:
    await talk.idle()
    [found] = [e for e in await talk.entries() if e["kind"] == "result"]
    return found["status"], found["text"]


@pytest.fixture
def granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SALES_DB", SECRET)
    add_grants(read_operator_config(), [GRANT])


async def test_a_tool_gets_the_value_and_history_never_holds_it(
    house: House, granted: None
) -> None:
    spy(house)

    talk = await house.talk("spy", "go")

    assert await result(talk) == ("ok", "31 characters: [secret SALES_DB]")
    history = (await talk.handle.fetch_history()).to_json()
    assert SECRET not in history
    assert "hunter2" not in history
    assert json.loads(history)


async def test_a_tool_is_not_entered_without_the_grant(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALES_DB", SECRET)
    monkeypatch.setattr("capuchin_yaml.engine.tool_calls.UNAVAILABLE_TRIES", 0)
    spy(house)

    talk = await house.talk("spy", "go")

    status, text = await result(talk)
    assert status == "error"
    assert "has not granted SALES_DB to lab.setting" in text
