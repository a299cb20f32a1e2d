"""What may happen before anything does, and what changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from capuchin_yaml.policy.compare import Change, changes
from capuchin_yaml.policy.judge import Floor
from capuchin_yaml.policy.plan import Cap, tool_plan_json, tool_plans
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, Limits, PolicyName, RuleSpec
from tests.policy.test_gating import READ, WRITE, tool
from tests.policy.test_rule_check import with_schema

BIG = "args.n > 5"


def agent(*rules: RuleSpec, policy: PolicyName = "auto", **more: Any) -> AgentSpec:
    approval = ApprovalSpec(policy, rules=rules)
    return AgentSpec(
        **{"name": "a", "prompt": "p", "tools": (WRITE,), "approval": approval, **more}
    )


@pytest.mark.parametrize(
    ("rules", "policy", "floor", "course"),
    [
        ((), "auto", Floor(), "runs"),
        ((), "all", Floor(), "asks"),
        ((RuleSpec("deny"),), "auto", Floor(), "never"),
        ((RuleSpec("deny", when=BIG),), "auto", Floor(), "depends"),
        ((), "auto", Floor((RuleSpec("deny", "*"),)), "never"),
        ((), "auto", Floor((RuleSpec("ask", "*"),)), "asks"),
        ((), "auto", Floor((RuleSpec("ask", when=BIG),)), "depends"),
        ((), "auto", Floor((RuleSpec("deny", "other.*"),)), "runs"),
        ((), "auto", Floor(problem="broken"), "asks"),
        ((RuleSpec("deny"),), "auto", Floor((RuleSpec("ask"),)), "never"),
    ],
)
def test_the_course_of_a_tool(
    rules: tuple[RuleSpec, ...], policy: PolicyName, floor: Floor, course: str
) -> None:
    [plan] = tool_plans(agent(*rules, policy=policy), floor)

    assert plan.course == course


def test_the_clauses_stand_in_the_order_in_which_they_are_looked_at() -> None:
    spec = agent(
        RuleSpec("allow", when=BIG), RuleSpec("deny", when="args.n > 9"), RuleSpec("ask", "a.write")
    )

    [plan] = tool_plans(spec, Floor((RuleSpec("ask", when="args.n > 1"),)))

    assert [c.source for c in plan.clauses] == ["floor 1", "rule 2", "rule 1", "rule 3"]
    assert tool_plan_json(plan)["clauses"][1] == {
        "source": "rule 2",
        "answer": "deny",
        "when": "args.n > 9",
        "reason": "",
    }


PAY = with_schema(
    {"properties": {"cents": {"type": "integer", "maximum": 900}, "rate": {"type": "number"}}}
)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("args.cents > 500", Cap(500, "cents", "call", "rule 1")),
        ("args.cents >= 500", Cap(499, "cents", "call", "rule 1")),
        ("args.rate > 1.5", Cap(1.5, "rate", "call", "rule 1")),
        ("args.rate >= 1.5", None),
        (
            "conversation.total.cents + args.cents > 500",
            Cap(500, "cents", "conversation", "rule 1"),
        ),
        ("conversation.calls >= 3", Cap(3, "calls", "conversation", "rule 1")),
        ("conversation.calls > 3", Cap(4, "calls", "conversation", "rule 1")),
        ("args.cents > 500 && tool == 'x'", None),
        ("args.cents * 2 > 500", None),
        ("conversation.total.cents > 500", None),
        ("!(args.cents > 500)", None),
        ("args.cents < 500", None),
        ("args.cents + args.cents > 500", None),
    ],
)
def test_a_cap_is_claimed_only_where_it_is_certain(when: str, expected: Cap | None) -> None:
    spec = agent(RuleSpec("deny", when=when), tools=(PAY,))

    [plan] = tool_plans(spec, Floor())

    schema = Cap(900, "cents", "call", "the tool's schema")
    assert plan.caps == ((schema,) if expected is None else (schema, expected))


def test_a_rule_that_only_asks_caps_nothing() -> None:
    [plan] = tool_plans(agent(RuleSpec("ask", when="args.rate > 5"), tools=(PAY,)), Floor())

    assert [cap.what for cap in plan.caps] == ["cents"]


def kinds(old: AgentSpec, new: AgentSpec) -> list[tuple[str, str]]:
    return [(change.kind, change.what) for change in changes(old, new)]


def test_nothing_changed() -> None:
    assert changes(agent(), agent()) == ()


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (agent(policy="all"), agent(), "loosened"),
        (agent(), agent(policy="all"), "tightened"),
        (agent(RuleSpec("deny", when=BIG)), agent(), "loosened"),
        (agent(), agent(RuleSpec("deny", when=BIG)), "tightened"),
        (agent(RuleSpec("deny")), agent(policy="all"), "loosened"),
        (
            agent(RuleSpec("allow", when=BIG), policy="all"),
            agent(RuleSpec("allow", when=BIG), policy="auto"),
            "loosened",
        ),
    ],
)
def test_a_change_of_approval_is_named_by_its_direction(
    old: AgentSpec, new: AgentSpec, kind: str
) -> None:
    assert kinds(old, new) == [(kind, "a.write")]


def test_the_loosened_stands_first() -> None:
    old = agent(tools=(READ, WRITE), policy="all", version="1")
    new = agent(tools=(WRITE, tool("a.wipe", "destructive")), version="2", limits=Limits(9))

    assert kinds(old, new) == [
        ("loosened", "a.write"),
        ("loosened", "a.wipe"),
        ("loosened", "limits.max_steps"),
        ("removed", "a.read"),
        ("changed", "version"),
    ]


def test_another_package_or_config_is_a_change() -> None:
    other = dataclasses.replace(WRITE, distribution_version="2", config={"x": 1})

    assert [c.text for c in changes(agent(), agent(tools=(other,)))] == [
        "d 1 → d 2",
        "another config",
    ]


def test_a_tool_that_may_do_more_is_loosened() -> None:
    worse = dataclasses.replace(WRITE, effect="destructive")

    assert changes(agent(), agent(tools=(worse,))) == (
        Change("loosened", "a.write", "was write, is destructive"),
    )
