"""Rules that a tool can never meet with an answer of their own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from capuchin_yaml.policy.gating import answers
from capuchin_yaml.policy.judge import Floor
from capuchin_yaml.policy.plan import tool_plans
from capuchin_yaml.policy.rule_failure import as_it_answers
from capuchin_yaml.policy.rules import Facts, Meter, match
from capuchin_yaml.policy.sentence import policy_sentence
from capuchin_yaml.spec import AgentSpec, ApprovalSpec, RuleAnswer, RuleSpec
from capuchin_yaml.tally import Tally
from tests.policy.test_rule_check import with_schema

LOOKUP = with_schema(
    {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    },
    "shop.lookup",
)
FREE = with_schema({"type": "object", "properties": {}}, "shop.free")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("args.cents > 5", True),
        ("args.id.startsWith('A') == (args.cents > 5)", True),
        ("conversation.total.cents > 5", True),
        ("conversation.total.id > 5", True),
        ("args.id == 'x'", False),
        ("has(args.cents)", False),
        ("args.cents > 5 || args.id == 'x'", False),
        ("args.id == 'x' && args.cents > 5", False),
        ("conversation.calls > 5", False),
    ],
)
def test_only_a_condition_that_fails_at_every_call_always_answers(
    condition: str, fails: bool
) -> None:
    rule = RuleSpec("allow", when=condition)

    answered = as_it_answers(rule, LOOKUP)
    matched, _ = match(rule, LOOKUP, {"id": "x"}, Tally(), Facts(NOW), Meter())

    assert (answered.then, answered.when) == (("ask", None) if fails else ("allow", condition))
    if fails:
        assert matched == "failed"


def test_a_tool_with_free_arguments_may_be_given_what_the_rule_reads() -> None:
    rule = RuleSpec("deny", when="args.cents > 5")

    assert as_it_answers(rule, FREE) == rule


@pytest.mark.parametrize(
    ("then", "course", "answer"),
    [("deny", "never", "deny"), ("ask", "asks", "ask"), ("allow", "asks", "ask")],
)
def test_the_plan_says_what_becomes_of_a_call_that_no_rule_can_read(
    then: RuleAnswer, course: str, answer: RuleAnswer
) -> None:
    rule = RuleSpec(then, when="args.cents > 5")
    spec = AgentSpec("a", "p", tools=(LOOKUP,), approval=ApprovalSpec("auto", rules=(rule,)))

    [plan] = tool_plans(spec, Floor())

    assert plan.course == course
    assert plan.clauses[0].reason.endswith("because this tool has no args.cents")
    assert answers(spec, LOOKUP) == {answer}


def test_the_sentence_tells_the_tools_apart_that_a_rule_is_about() -> None:
    pay = with_schema(
        {"properties": {"cents": {"type": "integer"}}, "additionalProperties": False}, "shop.pay"
    )
    rule = RuleSpec("deny", when="args.cents > 5")
    spec = AgentSpec("a", "p", tools=(LOOKUP, pay), approval=ApprovalSpec("auto", rules=(rule,)))

    assert policy_sentence(spec) == (
        "auto: everything runs without asking; "
        "rules refuse every call of shop.lookup, refuse some calls of shop.pay"
    )


def test_the_floor_too_is_planned_as_it_answers() -> None:
    spec = AgentSpec("a", "p", tools=(LOOKUP,), approval=ApprovalSpec("auto"))

    [plan] = tool_plans(spec, Floor((RuleSpec("ask", when="args.cents > 5"),)))

    assert (plan.course, plan.clauses[0].when) == ("asks", None)
