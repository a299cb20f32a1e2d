"""What new conversations get while files change: never a broken or a loosened version unasked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capuchin_yaml.cli.roster import OnDisk, Roster, Serving, first_roster, next_roster
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, ToolSpec

PATH = Path("agents/a.yaml")
TOOL = ToolSpec(
    identity="p.write",
    alias="write",
    description="",
    input_schema={},
    effect="write",
    idempotent=False,
    needs_approval=False,
    tool_version="1",
    distribution="p",
    distribution_version="1",
)
ASKS = AgentSpec(name="a", prompt="x", tools=(TOOL,), approval=ApprovalSpec(policy="all"))
LOOSE = replace(ASKS, approval=ApprovalSpec(policy="auto"))
BROKEN = OnDisk(PATH, None, problems="all of it", headline="agents/a.yaml:1:1: error")


def served(spec: AgentSpec = ASKS) -> Roster:
    """A roster of one agent."""
    return {"a": Serving(PATH, spec)}


def test_a_start_serves_every_good_file_and_names_every_bad_one() -> None:
    roster, problems = first_roster([OnDisk(PATH, ASKS), replace(BROKEN, path=Path("b.yaml"))])

    assert list(roster) == ["a"]
    assert problems == ("all of it",)


def test_a_changed_file_is_served() -> None:
    changed = replace(ASKS, prompt="y", version="2.0.0")

    step = next_roster(served(), [OnDisk(PATH, changed)])

    assert step.roster["a"].spec is changed
    assert step.news == ("a 2.0.0 is reloaded for new conversations: all: asks before every call",)


def test_an_unchanged_file_says_nothing() -> None:
    step = next_roster(served(), [OnDisk(PATH, ASKS)])

    assert (step.news, step.warnings, step.asks) == ((), (), ())


def test_a_broken_file_keeps_the_last_good_one_and_is_said_once() -> None:
    first = next_roster(served(), [BROKEN])
    again = next_roster(first.roster, [BROKEN])

    assert first.roster["a"].spec is ASKS
    assert first.roster["a"].problem == BROKEN.headline
    assert first.broke == ("a",)
    assert len(first.warnings) == 1
    assert (again.warnings, again.broke) == ((), ())


def test_a_mended_file_is_said() -> None:
    broken = next_roster(served(), [BROKEN]).roster

    step = next_roster(broken, [OnDisk(PATH, ASKS)])

    assert step.roster["a"].problem == ""
    assert step.news == ("agents/a.yaml is as it is served again",)


def test_a_loosened_file_waits_for_a_yes() -> None:
    step = next_roster(served(), [OnDisk(PATH, LOOSE)])

    [ask] = step.asks
    assert step.roster["a"].spec is ASKS
    assert "nobody agreed yet" in step.roster["a"].problem
    assert (ask.tools, ask.definition_hash) == (("p.write",), LOOSE.definition_hash)


def test_a_yes_is_for_that_very_version_only() -> None:
    accepted = frozenset({LOOSE.definition_hash})

    taken = next_roster(served(), [OnDisk(PATH, LOOSE)], accepted)
    other = next_roster(served(), [OnDisk(PATH, replace(LOOSE, prompt="z"))], accepted)

    assert taken.roster["a"].spec is LOOSE
    assert other.roster["a"].spec is ASKS


def test_a_removed_file_is_served_no_more() -> None:
    step = next_roster(served(), [])

    assert step.roster == {}
    assert step.news == ("a is gone (agents/a.yaml); open conversations go on",)


def test_a_second_file_of_the_same_name_is_not_served() -> None:
    other = OnDisk(Path("agents/b.yaml"), replace(ASKS, prompt="other"))

    step = next_roster(served(), [OnDisk(PATH, ASKS), other])

    assert step.roster["a"].spec is ASKS
    assert step.warnings == (
        "agents/b.yaml: the name 'a' is taken by agents/a.yaml; names are unique in a project",
    )


def test_a_stand_in_is_what_conversations_pin() -> None:
    spec = replace(ASKS, model="anthropic:claude")
    serving = Serving(PATH, spec, "rehearsal", is_stand_in=True)

    assert serving.to_json()["spec"]["model"] == "rehearsal"
    assert serving.for_others().definition_hash == spec.definition_hash


def test_rules_that_only_moved_in_the_file_are_told_at_their_new_place() -> None:
    step = next_roster(served(), [OnDisk(PATH, ASKS, rule_places=("agents/a.yaml:9",))])

    assert step.roster["a"].rule_places == ("agents/a.yaml:9",)
    assert step.roster["a"].to_json()["rules"] == ["agents/a.yaml:9"]
    assert step.roster != served()
