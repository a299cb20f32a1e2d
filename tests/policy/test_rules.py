"""Rules at work: order, failures, counting, bounds."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.policy.judge import CallContext, Floor, InstalledTool, judge_calls
from capuchin_yaml.policy.rules import Facts, Failed, evaluate, fitted, is_about
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, PolicyName, RuleSpec, ToolSpec
from capuchin_yaml.tally import Tally

PAY = ToolSpec(
    identity="shop.pay",
    alias="pay",
    description="",
    input_schema={
        "type": "object",
        "properties": {
            "cents": {"type": "integer"},
            "rate": {"type": "number"},
            "note": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    },
    effect="write",
    idempotent=False,
    needs_approval=False,
    tool_version="1",
    distribution="d",
    distribution_version="1",
)
SHY = dataclasses.replace(PAY, identity="shop.shy", alias="shy", needs_approval=True)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def agent(*rules: RuleSpec, policy: PolicyName = "auto") -> AgentSpec:
    approval = ApprovalSpec(policy, rules=rules)
    return AgentSpec(name="a", prompt="p", tools=(PAY, SHY), approval=approval)


def context(**more: Any) -> CallContext:
    facts = Facts(
        NOW, more.get("variables", {}), more.get("injected", {}), more.get("untrusted", False)
    )
    return CallContext({}, facts, more.get("tallies", {}), more.get("floor", Floor()))


def judged(
    spec: AgentSpec, *inputs: dict[str, Any], tool: str = "pay", **more: Any
) -> list[dict[str, Any]]:
    calls = [{"call_id": f"c:{i}", "tool": tool, "input": given} for i, given in enumerate(inputs)]
    return judge_calls(
        spec, "h", context(**more), calls, lambda _: InstalledTool("1", "d", "1", False)
    )


def verdict(spec: AgentSpec, given: dict[str, Any] | None = None, **more: Any) -> str:
    return str(judged(spec, given or {}, **more)[0]["verdict"])


ALLOW, ASK, DENY = RuleSpec("allow"), RuleSpec("ask"), RuleSpec("deny")


@pytest.mark.parametrize(
    ("rules", "policy", "expected"),
    [
        ((ALLOW, ASK), "all", "allow"),
        ((ASK, ALLOW), "auto", "ask"),
        ((ALLOW, ASK, DENY), "auto", "deny"),
        ((), "all", "ask"),
        ((RuleSpec("allow", when="args.cents > 5"),), "all", "ask"),
        ((RuleSpec("allow", tool="shop.other"),), "all", "ask"),
    ],
)
def test_a_rule_that_denies_goes_first_then_the_first_that_matches_then_the_policy(
    rules: tuple[RuleSpec, ...], policy: PolicyName, expected: str
) -> None:
    assert verdict(agent(*rules, policy=policy), {"cents": 1}) == expected


@pytest.mark.parametrize("then", ["allow", "ask", "deny"])
@pytest.mark.parametrize("when", ["args.note", "args.note == 'x'", "1", "args.cents + 'x' == ''"])
def test_a_condition_that_is_neither_true_nor_false_denies_or_asks(then: Any, when: str) -> None:
    spec = agent(RuleSpec(then, when=when), ALLOW)

    [answer] = judged(spec, {"cents": 5})

    assert answer["verdict"] == ("deny" if then == "deny" else "ask")
    assert "could not be evaluated" in answer["reason"]


def test_a_rule_cannot_loosen_what_the_author_of_the_tool_wants() -> None:
    assert verdict(agent(ALLOW), tool="shy") == "ask"


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        (None, True),
        ("*", True),
        ("shop.*", True),
        ("shop.pay", True),
        ("pay", True),
        ("sho.*", False),
        ("shop", False),
        ("shy", False),
        ("shop.pa", False),
    ],
)
def test_what_a_rule_is_about(name: str | None, matches: bool) -> None:
    assert is_about(RuleSpec("deny", tool=name), PAY) is matches


def test_the_reason_of_a_rule_is_told() -> None:
    [answer] = judged(agent(RuleSpec("deny", reason="Finance does it.")), {})

    assert (answer["decided_by"], answer["reason"]) == ("rule 1", "Finance does it.")


def test_a_rule_without_a_reason_tells_what_it_is() -> None:
    [answer] = judged(agent(RuleSpec("deny", tool="pay", when="args.cents > 1")), {"cents": 2})

    assert answer["reason"] == "rule 1 (pay: args.cents > 1) says deny"


TOTAL = RuleSpec("deny", when="conversation.total.cents + args.cents > 100")


def test_totals_count_the_earlier_calls_of_the_same_reply_in_order() -> None:
    answers = judged(agent(TOTAL), {"cents": 60}, {"cents": 50}, {"cents": 40})

    assert [a["verdict"] for a in answers] == ["allow", "deny", "allow"]


def test_totals_count_what_waits_as_if_it_ran() -> None:
    answers = judged(agent(TOTAL, ASK), {"cents": 60}, {"cents": 50})

    assert [a["verdict"] for a in answers] == ["ask", "deny"]


def test_totals_count_what_ran_before() -> None:
    tallies = {"shop.pay": Tally(2, {"cents": 90})}

    assert verdict(agent(TOTAL), {"cents": 11}, tallies=tallies) == "deny"
    assert verdict(agent(TOTAL), {"cents": 10}, tallies=tallies) == "allow"


def test_calls_are_counted_for_each_tool() -> None:
    spec = agent(RuleSpec("ask", when="conversation.calls >= 1"))

    assert verdict(spec, tallies={"shop.shy": Tally(3)}) == "allow"
    assert verdict(spec, tallies={"shop.pay": Tally(1)}) == "ask"


def test_a_condition_may_ask_for_everything_that_is_documented() -> None:
    when = (
        "tool == 'shop.pay' && alias == 'pay' && variables.city == 'Ulm' && injected.tenant == 7"
        " && conversation.untrusted && now > timestamp('2026-01-01T00:00:00Z')"
    )
    spec = agent(RuleSpec("deny", when=when))

    assert (
        verdict(spec, variables={"city": "Ulm"}, injected={"tenant": 7}, untrusted=True) == "deny"
    )
    assert verdict(spec, variables={"city": "Ulm"}, injected={"tenant": 7}) == "allow"


@pytest.mark.parametrize("rate", [6, 6.0, 6.5])
@pytest.mark.parametrize("when", ["args.rate > 5", "args.rate * 2.0 > 11.0", "args.rate > 5.5"])
def test_a_number_is_compared_and_reckoned_with_however_it_is_written(
    rate: float, when: str
) -> None:
    assert verdict(agent(RuleSpec("deny", when=when)), {"rate": rate}) == "deny"


def test_a_whole_number_written_with_a_point_stays_whole() -> None:
    assert fitted(PAY.input_schema, {"cents": 5.0, "rate": 5}) == {"cents": 5, "rate": 5.0}


@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        (Floor(), "allow"),
        (Floor((RuleSpec("deny", tool="*"),)), "deny"),
        (Floor((RuleSpec("ask"),)), "ask"),
        (Floor((RuleSpec("ask"), RuleSpec("deny", when="args.cents > 5"))), "deny"),
        (Floor((RuleSpec("deny", when="args.cents > 50"),)), "allow"),
        (Floor((RuleSpec("ask", when="args.missing > 5"),)), "ask"),
        (Floor(problem="it is no YAML"), "ask"),
        (Floor((RuleSpec("deny"),), "it is no YAML"), "deny"),
    ],
)
def test_the_floor_only_tightens(floor: Floor, expected: str) -> None:
    assert verdict(agent(ALLOW), {"cents": 9}, floor=floor) == expected


def test_the_floor_does_not_loosen_a_rule() -> None:
    assert verdict(agent(DENY), floor=Floor((RuleSpec("ask"),))) == "deny"


def test_a_condition_over_large_arguments_is_not_run_at_all() -> None:
    when = "args.tags.all(a, args.tags.all(b, (a + b + args.note).contains(args.note)))"
    large = {"tags": ["x" * 50] * 200, "note": "a" * 20_000}

    [answer] = judged(agent(RuleSpec("allow", when=when)), large)

    assert answer["verdict"] == "ask"
    assert "too large" in answer["reason"]


def test_the_iteration_budget_of_cel_makes_a_condition_fail() -> None:
    loop = "[0,1,2,3,4,5,6,7,8,9]"
    condition = "true"
    for name in "abcde":
        condition = f"{loop}.all({name}, {condition})"

    assert isinstance(evaluate(condition, {}), Failed)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.text(max_size=40), json_values)
def test_no_condition_and_no_value_makes_evaluation_raise(condition: str, value: Any) -> None:
    assert isinstance(evaluate(condition, {"args": value}), bool | Failed)


@given(st.dictionaries(st.sampled_from(["cents", "rate", "note", "x"]), json_values))
def test_arguments_of_any_shape_never_pass_a_rule_that_fails(given: dict[str, Any]) -> None:
    spec = agent(RuleSpec("deny", when="args.cents < 0"))

    [answer] = judged(spec, given)

    if answer["verdict"] == "allow":
        assert given["cents"] >= 0
