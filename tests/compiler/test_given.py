"""Values given at the start of a conversation are checked against the agent."""

from __future__ import annotations

import math

import pytest

from capuchin_yaml.compiler.load import check_injected, check_variables
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.spec import AgentSpec, JsonValue, VariableSpec

SPEC = AgentSpec(
    name="triage",
    prompt="Hi",
    variables={
        "company": VariableSpec("string", "Acme"),
        "count": VariableSpec("integer", required=True),
        "rate": VariableSpec("number", 0.5),
        "formal": VariableSpec("boolean", False),
        "tone": VariableSpec("string", "warm", enum=("warm", "plain")),
        "city": VariableSpec("string", required=False),
    },
    injected=("tenant",),
)


def test_defaults_are_filled_in_and_what_is_optional_stays_out() -> None:
    assert check_variables(SPEC, {"count": 3}) == {
        "company": "Acme",
        "count": 3,
        "rate": 0.5,
        "formal": False,
        "tone": "warm",
    }


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("count", "12", 12),
        ("count", "-3", -3),
        ("rate", "1.25", 1.25),
        ("rate", "1e-3", 0.001),
        ("rate", "7", 7),
        ("rate", 7, 7),
        ("formal", "true", True),
        ("formal", "false", False),
        ("company", "12", "12"),
        ("company", "", ""),
        ("tone", "plain", "plain"),
    ],
)
def test_text_is_read_as_the_declared_type(name: str, given: JsonValue, meant: JsonValue) -> None:
    found = check_variables(SPEC, {"count": 1, name: given})[name]

    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("count", "1.5"),
        ("count", "twelve"),
        ("count", True),
        ("count", 1.0),
        ("count", ""),
        ("count", "٣"),
        ("rate", "nan"),
        ("rate", "1e999"),
        ("rate", math.inf),
        ("formal", "yes"),
        ("formal", 1),
        ("company", 12),
        ("company", None),
        ("company", ["Acme"]),
        ("company", "\udcff"),
        ("company", "x" * 70_000),
        ("tone", "loud"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(name: str, given: JsonValue) -> None:
    with pytest.raises(RequestRefused, match=name):
        check_variables(SPEC, {"count": 1, name: given})


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(RequestRefused) as refused:
        check_variables(SPEC, {"compny": "x", "formal": "maybe", "rate": "fast"})

    text = str(refused.value)
    assert "'triage'" in text
    assert "did you mean 'company'?" in text
    assert "count is missing (--var count=…)" in text
    assert "formal must be true or false, not 'maybe'" in text
    assert "rate must be a number, not 'fast'" in text


def test_a_refusal_shows_hidden_characters() -> None:
    with pytest.raises(RequestRefused) as refused:
        check_variables(SPEC, {"count": "\x1b[31m\u202e"})

    assert "\x1b" not in str(refused.value)
    assert "\u202e" not in str(refused.value)


def test_injected_values_are_exactly_those_declared() -> None:
    assert check_injected(SPEC, {"tenant": {"id": 7}}) == {"tenant": {"id": 7}}
    with pytest.raises(RequestRefused, match=r"tenant is missing \(--set tenant=…\)"):
        check_injected(SPEC, {})
    with pytest.raises(RequestRefused, match="'tenat' is no injected value"):
        check_injected(SPEC, {"tenant": 1, "tenat": 2})


@pytest.mark.parametrize("bad", [math.nan, {"a": object()}, "\ud800", b"x"])
def test_an_injected_value_that_is_not_json_is_refused(bad: JsonValue) -> None:
    with pytest.raises(RequestRefused, match="tenant is not plain JSON"):
        check_injected(SPEC, {"tenant": bad})
