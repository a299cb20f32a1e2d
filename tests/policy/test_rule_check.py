"""What is said of a condition before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.policy.cel_types import Scope, scope_of
from capuchin_yaml.policy.rule_check import check_condition
from capuchin_yaml.policy.rule_parts import contradiction, implies
from capuchin_yaml.policy.rule_reach import hidden_by, never_matches
from capuchin_yaml.spec import RuleSpec, ToolSpec, VariableSpec
from tests.policy.test_gating import tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "cents": {"type": "integer", "minimum": 1, "maximum": 1000},
        "rate": {"type": "number"},
        "currency": {"enum": ["EUR", "USD"]},
        "note": {"type": "string"},
        "who": {"$ref": "#/$defs/Who"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["cents", "rate", "currency", "who", "lines"],
    "additionalProperties": False,
    "$defs": {
        "Who": {
            "type": "object",
            "properties": {"age": {"type": "integer"}, "nick": {"type": "string"}},
            "required": ["age"],
        },
        "Line": {"type": "object", "properties": {"qty": {"type": "integer"}}},
    },
}


def with_schema(schema: dict[str, Any], identity: str = "shop.pay") -> ToolSpec:
    import dataclasses

    return dataclasses.replace(tool(identity), input_schema=schema)


PAY = scope_of(
    [with_schema(SCHEMA)],
    {"city": VariableSpec(required=True), "street": VariableSpec()},
    ("tenant",),
)


def said(condition: str, scope: Scope = PAY) -> list[tuple[str, str]]:
    return [(p.id, condition[p.start : p.end]) for p in check_condition(condition, scope).problems]


@pytest.mark.parametrize(
    "condition",
    [
        "args.cents > 500",
        "args.rate > 500",
        "args.rate > 500 && args.rate <= args.cents",
        "args.rate * 2 > 3 && 1 + args.rate != 2",
        "args.rate in [1, 2]",
        "-args.rate < -5",
        "has(args.note) && args.note.matches('^a')",
        "args.who.age in [1, 2]",
        "args.lines.exists(l, has(l.qty) && l.qty > 3)",
        "conversation.calls > 3 || conversation.total.cents + args.cents > 50",
        "conversation.total.rate + args.rate > 50",
        "conversation.untrusted && tool == 'shop.pay' && alias != 'x'",
        "variables.city == 'Ulm' && injected.tenant == 7",
        "now.getHours('Europe/Berlin') < 8",
    ],
)
def test_a_sound_condition_has_no_problem(condition: str) -> None:
    assert said(condition) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("args.cent > 5", [("rule-unknown-name", "cent")]),
        ("args.who.agee > 5", [("rule-unknown-name", "agee")]),
        ("has(args.nope)", [("rule-unknown-name", "nope")]),
        ("args.lines.exists(l, l.qy > 3)", [("rule-unknown-name", "qy")]),
        ("cents > 5", [("rule-unknown-name", "cents")]),
        ("argz.cents > 5", [("rule-unknown-name", "argz")]),
        ("args.note.contain('x')", [("rule-unknown-name", "contain")]),
        ("variables.town == 'x'", [("rule-unknown-name", "town")]),
        ("injected.tennant == 'x'", [("rule-unknown-name", "tennant")]),
        ("conversation.total.note > 1", [("rule-unknown-name", "note")]),
        ("args.cents > 'x'", [("rule-type", ">")]),
        ("args.rate > 5 && args.cents == 'x'", [("rule-type", "==")]),
        ("args.rate > 5 && args.rate == 'x'", [("rule-type", "==")]),
        ("args['note'] == 'x'", [("rule-type", "[")]),
        ("'note' in args", [("rule-type", "in")]),
        ("args.note == null", [("rule-type", "==")]),
        ("args.rate + args.cents > 5", [("rule-type", "+")]),
        ("args.cents", [("rule-type", "args.cents")]),
        ("args.cents = 5", [("rule-syntax", "=")]),
        ("args.cents > 5 and true", [("rule-syntax", "and")]),
        ("not args.cents", [("rule-syntax", "not")]),
        ("(args.cents > 5", [("rule-syntax", "")]),
        ("  ", [("rule-syntax", "  ")]),
        ("args.note == 'x'", [("rule-optional-name", "args.note")]),
        ("args.lines.exists(l, l.qty > 2)", [("rule-optional-name", "l.qty")]),
        ("args.who.nick == 'x'", [("rule-optional-name", "args.who.nick")]),
        ("variables.street == 'x'", [("rule-optional-name", "variables.street")]),
        (
            "args.cent > 5 && args.rate > 'x'",
            [("rule-unknown-name", "cent"), ("rule-type", ">")],
        ),
    ],
)
def test_a_problem_stands_at_its_own_words(condition: str, expected: list[tuple[str, str]]) -> None:
    assert said(condition) == expected


def test_places_do_not_move_when_a_literal_is_widened() -> None:
    assert said("args.rate * 2 > 3 && args.cent > 1") == [("rule-unknown-name", "cent")]


def test_a_widened_literal_is_what_runs() -> None:
    assert check_condition("args.rate * 2 > 3", PAY).runs == "args.rate * 2.0 > 3.0"


def test_a_rule_about_several_tools_may_name_what_one_of_them_has() -> None:
    other = with_schema({"properties": {"to": {"type": "string"}}, "required": ["to"]}, "m.send")
    both = scope_of([with_schema(SCHEMA), other], {}, ())

    assert said("has(args.to) && args.to == 'x'", both) == []
    assert said("args.to == 'x'", both) == [("rule-optional-name", "args.to")]
    assert said("args.too == 'x'", both) == [("rule-unknown-name", "too")]


def test_a_tool_with_free_arguments_is_not_checked_by_name() -> None:
    free = scope_of([with_schema({"type": "object", "additionalProperties": True})], {}, ())

    assert said("args.anything > 5", free) == []


@pytest.mark.parametrize(
    ("condition", "never"),
    [
        ("false", True),
        ("1 > 2 && args.cents > 1", True),
        ("args.currency == 'GBP'", True),
        ("'GBP' == args.currency && args.cents > 1", True),
        ("args.cents > 1000", True),
        ("args.cents >= 1000", False),
        ("args.cents < 1", True),
        ("2000 < args.cents", True),
        ("args.currency == 'GBP' || args.cents > 1", False),
        ("args.currency != 'GBP'", False),
        ("args.currency == 'USD'", False),
        ("tool == 'shop.other'", True),
        ("alias == 'pay'", False),
        ("!(args.currency == 'GBP')", False),
        ("true", False),
        ("args.cents > 5 && args.cents < 3", True),
        ("args.cents > 5 && 5 >= args.cents", True),
        ("args.cents == 5 && args.cents != 5", True),
        ("args.currency == 'USD' && args.currency == 'EUR'", True),
        ("args.cents >= 5 && args.cents <= 5", False),
        ("args.cents > 5 && (args.cents < 3 || true)", False),
        ("conversation.calls < 0", True),
        ("conversation.calls < 1", False),
    ],
)
def test_a_condition_that_no_valid_call_meets_is_found(condition: str, never: bool) -> None:
    constant = check_condition(condition, PAY).constant

    assert (never_matches(condition, constant, PAY, ["pay"]) is not None) is never


ANY, SOME = RuleSpec("ask"), RuleSpec("ask", when="args.n > 1")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([ANY, SOME], {1: 0}),
        ([SOME, ANY], {}),
        ([SOME, SOME], {1: 0}),
        ([SOME, RuleSpec("allow", when="args.n  >  1")], {1: 0}),
        ([RuleSpec("deny"), SOME], {1: 0}),
        ([SOME, RuleSpec("deny")], {0: 1}),
        ([ANY, RuleSpec("deny", when="args.n > 1")], {}),
        ([RuleSpec("deny"), RuleSpec("deny", when="args.n > 1")], {1: 0}),
        ([RuleSpec("ask", tool="a.x"), RuleSpec("ask", tool="a.y")], {}),
        ([RuleSpec("ask", tool="a.*"), RuleSpec("allow", tool="x")], {1: 0}),
        ([RuleSpec("ask", tool="a.x"), RuleSpec("ask", tool="a.y"), ANY], {2: 1}),
        ([SOME, RuleSpec("allow", when="args.n > 5")], {1: 0}),
        ([SOME, RuleSpec("allow", when="args.n >= 5 && args.m == 'x'")], {1: 0}),
        ([SOME, RuleSpec("allow", when="args.n >= 1")], {}),
        ([SOME, RuleSpec("allow", when="args.n > 5 || args.m == 'x'")], {}),
        ([SOME, RuleSpec("deny", when="args.n > 5")], {}),
        ([RuleSpec("allow", when="args.n > 5"), RuleSpec("deny", when="args.n > 1")], {0: 1}),
        ([RuleSpec("ask", when="args.m != 'a'"), RuleSpec("ask", when="args.m == 'b'")], {1: 0}),
    ],
)
def test_a_rule_in_the_shadow_of_another_is_found(
    rules: list[RuleSpec], expected: dict[int, int]
) -> None:
    tools = [tool("a.x"), tool("a.y")]

    assert hidden_by(rules, [None] * len(rules), tools) == expected


_comparisons = st.builds(
    lambda name, sign, number, turned: (
        f"{number} {sign} {name}" if turned else f"{name} {sign} {number}"
    ),
    st.sampled_from(["a", "b"]),
    st.sampled_from([">", "<", ">=", "<=", "==", "!="]),
    st.integers(-2, 2),
    st.booleans(),
)
_conditions = st.lists(_comparisons, min_size=1, max_size=3).map(" && ".join)


@given(_conditions, _conditions)
def test_what_is_said_of_two_conditions_is_so_for_every_value(one: str, other: str) -> None:
    def holds(condition: str, a: int, b: int) -> bool:
        return eval(condition.replace("&&", "and"), {"a": a, "b": b}) is True

    values = [(a, b) for a in range(-4, 5) for b in range(-4, 5)]

    if implies(one, other):
        assert all(holds(other, *v) for v in values if holds(one, *v))
    if contradiction(one) is not None:
        assert not any(holds(one, *v) for v in values)


@given(st.text(max_size=60))
def test_no_text_makes_the_check_raise_or_point_outside(condition: str) -> None:
    for problem in check_condition(condition, PAY).problems:
        assert 0 <= problem.start <= problem.end <= len(condition)


pieces = st.sampled_from(
    ["args.", "cents", "rate", "note", " > ", " == ", "&&", "||", "(", ")", "2", "'x'", "has(", "!"]
)


@given(st.lists(pieces, max_size=12).map("".join))
def test_no_arrangement_of_its_words_makes_the_check_raise(condition: str) -> None:
    for problem in check_condition(condition, PAY).problems:
        assert 0 <= problem.start <= problem.end <= len(condition)
