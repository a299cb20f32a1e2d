"""Needs, grants, and what binds them."""

from __future__ import annotations

import dataclasses

import pytest

from capuchin_yaml.policy.needs import Grant, Need, grant_of, is_granted, may_have, needs_of
from capuchin_yaml.spec import AgentSpec
from tests.policy.test_gating import READ, WRITE

DB = Need("SALES_DB", "a.read")


def agent() -> AgentSpec:
    config = {"database": {"env": "SALES_DB"}, "list": [{"env": "OTHER"}, {"env": 3}, "env"]}
    return AgentSpec(name="a", prompt="p", tools=(dataclasses.replace(READ, config=config), WRITE))


def test_every_variable_of_a_config_is_a_need() -> None:
    assert needs_of(agent()) == (Need("OTHER", "a.read"), DB)


def test_an_agent_without_needs_is_granted() -> None:
    assert is_granted("a", (), ())


@pytest.mark.parametrize(
    "needs",
    [
        (),
        (Need("SALES_DB", "a.write"),),
        (Need("PATH", "a.read"),),
        (DB, Need("OTHER", "a.read")),
    ],
)
def test_a_grant_is_for_exactly_its_needs(needs: tuple[Need, ...]) -> None:
    grants = (grant_of("a", needs),)

    assert not is_granted("a", (DB,), grants)
    assert is_granted("a", needs, grants)


def test_a_grant_is_for_one_agent() -> None:
    assert not is_granted("b", (DB,), (grant_of("a", (DB,)),))


def test_a_grant_that_was_changed_by_hand_counts_for_nothing() -> None:
    whole = grant_of("a", (DB,))
    changed = Grant("a", whole.hash, (*whole.needs, "env PATH for a.read"))

    assert may_have(DB, (whole,))
    assert not may_have(DB, (changed,))
    assert not may_have(Need("PATH", "a.read"), (changed,))
