"""Which tools ask, what loosens, and the sentence that says so."""

from __future__ import annotations

from typing import Any

import pytest

from capuchin_yaml.policy.gating import answers, asks, loosened
from capuchin_yaml.policy.sentence import policy_sentence
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, Effect, PolicyName, RuleSpec, ToolSpec


def tool(identity: str, effect: Effect = "write", alias: str = "", shy: bool = False) -> ToolSpec:
    return ToolSpec(
        identity=identity,
        alias=alias or identity.partition(".")[2],
        description="d",
        input_schema={"type": "object"},
        effect=effect,
        idempotent=False,
        needs_approval=shy,
        tool_version="1",
        distribution="d",
        distribution_version="1",
    )


def agent(
    *tools: ToolSpec, policy: PolicyName = "default", listed: tuple[str, ...] = ()
) -> AgentSpec:
    return AgentSpec(name="a", prompt="p", tools=tools, approval=ApprovalSpec(policy, listed))


READ, WRITE, WIPE = tool("a.read", "read"), tool("a.write"), tool("a.wipe", "destructive")


@pytest.mark.parametrize(
    ("policy", "listed", "expected"),
    [
        ("default", (), [False, True, True]),
        ("auto", (), [False, False, False]),
        ("all", (), [True, True, True]),
        ("allowlist", ("a.write",), [True, False, True]),
        ("allowlist", (), [True, True, True]),
        ("denylist", ("a.write",), [False, True, False]),
        ("denylist", ("write",), [False, True, False]),
    ],
)
def test_each_policy(policy: PolicyName, listed: tuple[str, ...], expected: list[bool]) -> None:
    spec = agent(READ, WRITE, WIPE, policy=policy, listed=listed)

    assert [asks(spec, t) for t in spec.tools] == expected


def test_an_identity_means_every_entry_and_an_alias_only_one() -> None:
    first, second = tool("a.write", alias="one"), tool("a.write", alias="two")

    by_identity = agent(first, second, policy="denylist", listed=("a.write",))
    by_alias = agent(first, second, policy="denylist", listed=("one",))

    assert [asks(by_identity, t) for t in (first, second)] == [True, True]
    assert [asks(by_alias, t) for t in (first, second)] == [True, False]


def test_the_authors_wish_tightens_auto() -> None:
    assert asks(agent(tool("a.shy", "read", shy=True), policy="auto"), tool("a.shy", shy=True))


def test_loosened_names_what_asked_before_and_would_run_alone_now() -> None:
    old = agent(READ, WRITE, WIPE)
    new = agent(READ, WRITE, WIPE, policy="denylist", listed=("a.wipe",))

    assert loosened(old, new) == ("a.write",)
    assert loosened(new, old) == ()


def test_a_new_tool_that_runs_alone_is_new_power_unless_it_only_reads() -> None:
    old = agent(READ, policy="auto")

    assert loosened(old, agent(READ, WRITE, policy="auto")) == ("a.write",)
    assert loosened(old, agent(READ, tool("b.read", "read"), policy="auto")) == ()
    assert loosened(old, agent(READ, WRITE, policy="all")) == ()


def test_a_new_alias_does_not_hide_that_a_tool_asked_before() -> None:
    old = agent(WRITE, policy="all")
    new = agent(tool("a.write", alias="other"), policy="auto")

    assert loosened(old, new) == ("a.write",)


def test_the_sentence_says_what_asks_and_what_runs() -> None:
    listed = agent(READ, WRITE, policy="denylist", listed=("a.write",))

    assert policy_sentence(listed) == "denylist: asks before a.write; everything else runs"
    assert policy_sentence(agent(policy="all")) == "all: the agent has no tools"
    assert policy_sentence(agent(READ, policy="auto")) == "auto: everything runs without asking"
    assert policy_sentence(agent(READ, policy="all")) == "all: asks before every call"
    assert policy_sentence(agent(READ, WRITE)) == (
        "no approval block: asks before a.write; a.read runs alone"
    )
    shy = agent(READ, tool("a.shy", shy=True), policy="auto")
    assert policy_sentence(shy) == (
        "auto: asks before a.shy; a.read runs alone (a.shy: by its author's wish)"
    )


def ruled(*rules: RuleSpec, policy: PolicyName = "auto") -> AgentSpec:
    approval = ApprovalSpec(policy, rules=rules)
    return AgentSpec(name="a", prompt="p", tools=(READ, WRITE), approval=approval)


BIG = "args.n > 5"


@pytest.mark.parametrize(
    ("rules", "policy", "expected"),
    [
        ((), "auto", {"allow"}),
        ((RuleSpec("deny"),), "auto", {"deny"}),
        ((RuleSpec("allow"), RuleSpec("deny")), "auto", {"deny"}),
        ((RuleSpec("deny", when=BIG),), "auto", {"allow", "deny"}),
        ((RuleSpec("ask", when=BIG),), "auto", {"allow", "ask"}),
        ((RuleSpec("allow", when=BIG),), "all", {"allow", "ask"}),
        ((RuleSpec("allow"),), "all", {"allow"}),
        ((RuleSpec("allow"), RuleSpec("ask")), "all", {"allow"}),
        ((RuleSpec("deny", tool="a.read"),), "all", {"ask"}),
    ],
)
def test_what_rules_can_answer(
    rules: tuple[RuleSpec, ...], policy: PolicyName, expected: set[str]
) -> None:
    assert answers(ruled(*rules, policy=policy), WRITE) == expected


@pytest.mark.parametrize(
    ("old", "new", "loose"),
    [
        ([RuleSpec("deny", when=BIG)], [RuleSpec("deny", when="args.n  >  5")], False),
        ([RuleSpec("deny", when=BIG)], [], True),
        ([RuleSpec("deny", when=BIG)], [RuleSpec("deny", when="args.n > 9")], True),
        ([RuleSpec("deny", when=BIG)], [RuleSpec("ask", when=BIG)], True),
        ([], [RuleSpec("ask", when=BIG)], False),
        ([RuleSpec("ask", when=BIG)], [RuleSpec("ask")], False),
        ([RuleSpec("deny")], [], True),
    ],
)
def test_a_rule_that_held_calls_back_and_is_gone_loosens(
    old: list[RuleSpec], new: list[RuleSpec], loose: bool
) -> None:
    assert bool(loosened(ruled(*old), ruled(*new))) is loose


def test_a_new_rule_that_lets_calls_run_loosens() -> None:
    before, after = ruled(policy="all"), ruled(RuleSpec("allow", "a.write", BIG), policy="all")

    assert loosened(before, after) == ("a.write",)


def test_the_sentence_says_what_rules_do() -> None:
    spec = ruled(RuleSpec("deny", "a.write", BIG), RuleSpec("ask", "a.read"))

    assert policy_sentence(spec) == (
        "auto: everything runs without asking; rules refuse some calls of a.write, "
        "ask before every call of a.read"
    )


@pytest.mark.parametrize(
    ("old", "new", "is_looser"),
    [
        ({"quorum": 2}, {"quorum": 1}, True),
        ({"quorum": 1}, {"quorum": 2}, False),
        ({"approvers": "finance"}, {}, True),
        ({"approvers": "finance"}, {"approvers": "everybody"}, True),
        ({}, {"approvers": "finance"}, False),
        ({"exclude_requester": True}, {}, True),
        ({}, {"escalate_to": "friends", "on_timeout": "escalate", "timeout_s": 5.0}, True),
    ],
)
def test_fewer_or_other_people_who_decide_are_looser(
    old: dict[str, Any], new: dict[str, Any], is_looser: bool
) -> None:
    before, after = (
        AgentSpec("a", "p", tools=(WRITE,), approval=ApprovalSpec(policy="all", **given))
        for given in (old, new)
    )

    assert (loosened(before, after) == (WRITE.identity,)) is is_looser


def test_a_rule_that_loses_its_group_is_looser() -> None:
    asking = RuleSpec("ask", tool=WRITE.identity, when="args.n > 5", approvers="finance")
    without = RuleSpec("ask", tool=WRITE.identity, when="args.n > 5")
    before, after = (
        AgentSpec("a", "p", tools=(WRITE,), approval=ApprovalSpec(policy="all", rules=(rule,)))
        for rule in (asking, without)
    )

    assert loosened(before, after) == (WRITE.identity,)
    assert loosened(after, before) == ()
