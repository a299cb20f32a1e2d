"""Parts of a prompt that fail with all values, in branches that no rendering comes by."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.template import check_template, render_prompt
from capuchin_yaml.compiler.template_parts import part_problems
from capuchin_yaml.errors import InvalidAgent
from capuchin_yaml.spec import VariableSpec

VARIABLES = {
    "name": VariableSpec(type="string"),
    "n": VariableSpec(type="integer"),
    "pace": VariableSpec(type="string", enum=("fast", "slow")),
    "nick": VariableSpec(type="string", required=False),
}


def places(source: str) -> list[str]:
    return [source[problem.start :] for problem in part_problems(source, VARIABLES)]


@pytest.mark.parametrize(
    ("source", "rest"),
    [
        ("{% if n %}{{ 1 / 0 }}{% endif %}", "1 / 0 }}{% endif %}"),
        ("{% if n %}a{% elif name + 1 %}b{% endif %}", "name + 1 %}b{% endif %}"),
        ("{% if n %}{% else %}{{ n + 'a' }}{% endif %}", "n + 'a' }}{% endif %}"),
        ("{{ name or n + name }}", "n + name }}"),
        ("{{ 1 if n else name - 1 }}", "name - 1 }}"),
        ("{% for i in name.split() %}{{ n + name }}{% endfor %}", "n + name }}{% endfor %}"),
        ("{% for i in n %}{{ i }}{% endfor %}", "n %}{{ i }}{% endfor %}"),
        (
            "{% if n %}{% for i in n + 1 %}{% endfor %}{% endif %}",
            "n + 1 %}{% endfor %}{% endif %}",
        ),
        ("{% if nick is defined %}{{ nick / 2 }}{% endif %}", "nick / 2 }}{% endif %}"),
        ("{% set a = pace * pace %}", "pace * pace %}"),
        ("{% with a = n ~ 1, b = n + 'a' %}{% endwith %}", "n + 'a' %}{% endwith %}"),
    ],
)
def test_what_fails_with_all_values_is_found_in_any_branch(source: str, rest: str) -> None:
    assert places(source) == [rest]


@pytest.mark.parametrize(
    "source",
    [
        "{% if n %}{{ 10 / n }}{% endif %}",
        "{{ 10 / (n - 1) }} {{ name[n] }} {{ ['a', 1][n] + 1 }}",
        "{{ {'fast': 1, 'slow': 2}[pace] + 1 }}",
        "{{ name | int }} {{ name | float + 1 }} {{ name * n }}",
        "{% set n = 'a' %}{{ n + 'b' }}",
        "{% for n in ['a'] %}{{ n + 'b' }}{% endfor %}",
        "{{ nobody + 1 }} {{ loop + 1 }}",
        "{% set ns = namespace(x=1) %}{% set ns.x = n + 1 %}{{ ns.x }}",
    ],
)
def test_what_only_some_values_break_is_left_alone(source: str) -> None:
    assert places(source) == []


def test_a_tag_whose_mistake_is_known_is_left_out() -> None:
    source = "{{ n + 'a' }} {{ name - 1 }}"

    (problem,) = part_problems(source, VARIABLES, [source.index("n +")])

    assert source[problem.start :] == "name - 1 }}"


def test_a_prompt_of_very_many_expressions_is_read_quickly() -> None:
    source = "{% if n %}{{ range(9999) | list | length + n }}{% endif %}" * 3_000
    start = time.process_time()

    assert places(source) == []
    assert time.process_time() - start < 10


ATOMS = st.sampled_from(["name", "n", "pace", "nick", "'a'", "1", "0", "[1]", "{}", "range(3)"])
SIGNS = st.sampled_from(["+", "-", "*", "/", "~", "%", "**", "in", "==", "<"])
AFTER = st.sampled_from(
    ["| int", "| upper", "| length", "| first", "is defined", ".split()", ".x", "[0]"]
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, SIGNS, inner).map(lambda part: f"({' '.join(part)})"),
        st.tuples(inner, AFTER).map(lambda part: f"({part[0]} {part[1]})"),
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, st.sampled_from(["7", "x y", ""]), st.integers(-5, 5))
def test_an_expression_that_is_found_fails_when_it_is_reached(
    expression: str, name: str, n: int
) -> None:
    source = "{{ " + expression + " }}"
    assert check_template(source, frozenset(VARIABLES)).parsed
    values = {"name": name, "n": n, "pace": "fast", "nick": "bo"}

    if part_problems(source, VARIABLES):
        with pytest.raises(InvalidAgent):
            render_prompt(source, values)
