"""Prompts: what a template may do, what it may cost, and where a mistake stands."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.compiler.template import check_template, render_problems, render_prompt
from capuchin_yaml.errors import InvalidAgent

NAMES = frozenset({"name", "n"})


def ids(source: str) -> list[str]:
    return [problem.id for problem in check_template(source, NAMES).problems]


@pytest.mark.parametrize(
    "text",
    [
        "<b> & \"q\" 's'",
        "a\nb\n",
        "\n\n  x  \n\n",
        "{{ }} is only text here",
        "é漢👋\u200b",
        "back\\slash \\n",
    ],
)
def test_a_value_is_inserted_word_for_word(text: str) -> None:
    assert render_prompt("[{{ name }}]", {"name": text}) == f"[{text}]"


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "  ", "\t\n"])
def test_the_end_of_a_prompt_stays_as_it_is(ending: str) -> None:
    assert render_prompt(f"Hi{ending}", {}) == f"Hi{ending}"


def test_a_line_with_only_a_tag_leaves_its_line_break() -> None:
    source = "List:\n{% for w in name.split(',') %}\n- {{ w }}\n{% endfor %}\nEnd\n"

    assert render_prompt(source, {"name": "a,b"}) == "List:\n\n- a\n\n- b\n\nEnd\n"


def test_a_dash_in_a_tag_eats_the_white_space_on_its_side() -> None:
    source = "List:\n{%- for w in name.split(',') %}\n- {{ w }}\n{%- endfor %}\nEnd\n"

    assert render_prompt(source, {"name": "a,b"}) == "List:\n- a\n- b\nEnd\n"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('{"a": {"b": 1}} 100%} ${x} {y}', '{"a": {"b": 1}} 100%} ${x} {y}'),
        ("{% raw %}{{ x }} {% if %}{% endraw %}", "{{ x }} {% if %}"),
        ("a{# a note #}b", "ab"),
        ("{{ name | upper }} {{ name.title() }}", "BO Bo"),
        ("{{ [n, 1.5, true, none] }}", "[3, 1.5, True, None]"),
        ("{{ name | tojson }} {{ '<é>' | tojson }}", '"bo" "<é>"'),
        ("{{ missing | default('x') }}", "x"),
        ("{{ 'yes' if missing is defined else 'no' }}", "no"),
        ("{{ range(3) | join(', ') }}", "0, 1, 2"),
        (
            "{% set ns = namespace(t=0) %}{% for i in [1,2] %}{% set ns.t = ns.t + i %}{% endfor %}"
            "{{ ns.t }}",
            "3",
        ),
        ("{% for k, v in {'a': 1}.items() %}{{ loop.index }}{{ k }}{{ v }}{% endfor %}", "1a1"),
        ("{% with x = n * 2 %}{{ x }}{% endwith %}", "6"),
        ("{{ name[::-1] }}{{ name[0] }}{{ name['upper']() }}", "obbBO"),
        ("{{ 'a b'.replace(' ', '-') }}{{ 'a b' | replace(' ', '_') }}", "a-ba_b"),
        ("{{ 'x\ny' | indent(2) }}", "x\n  y"),
        ("{{ 2.5 | round }}{{ 3.14159 | round(2) }}", "2.03.14"),
        ("{{ ('b', 'a') | sort | first }}{{ [1, 1] | unique | list }}", "a[1]"),
    ],
)
def test_a_template_gives_this_text(source: str, text: str) -> None:
    names = NAMES | {"missing"}

    assert check_template(source, names).problems == ()
    assert render_prompt(source, {"name": "bo", "n": 3}) == text


ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ name.__init__.__globals__ }}",
    "{{ name|attr('__class__') }}",
    "{{ name['__class__'] }}",
    "{{ name['__cl' ~ 'ass__'] }}",
    "{{ (name ~ '')['_' ~ '_class_' ~ '_'] }}",
    "{{ '{0.__class__}'.format(name) }}",
    "{{ '{0.__class__}'['form' ~ 'at'](name) }}",
    "{{ '%s' % name }}",
    "{{ '%s' | format(name) }}",
    "{{ ['a'] | map(attribute='__class__') | list }}",
    "{{ [name] | map('attr', '__class__') | list }}",
    "{{ namespace.__init__ }}",
    "{{ namespace['__init__'] }}",
    "{{ range['__self__'] }}",
    "{{ dict['from' ~ 'keys'](name) }}",
    "{{ dict.__subclasses__() }}",
    "{{ self.__init__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ lipsum.__globals__ }}",
    "{{ joiner }}",
    "{{ get_flashed_messages.__globals__ }}",
    "{% for x in [1] %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in [1] %}{{ loop['_iter' ~ 'able'] }}{% endfor %}",
    "{{ name.encode() }}",
    "{{ name['enc' ~ 'ode']() }}",
    "{% import 'os' as os %}",
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{% from 'x' import y %}",
    "{{ (1).__class__ }}",
    "{{ n['re' ~ 'al'] }}",
    "{{ [].append(1) }}",
    "{{ {}['up' ~ 'date']({}) }}",
    "{{ ''.join([]) }}",
    "{{ name.upper.__self__ }}",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_no_way_out_of_the_sandbox_is_accepted_or_rendered(source: str) -> None:
    values = {"name": "bo", "n": 3}

    assert check_template(source, NAMES).problems or render_problems(source, values)
    with pytest.raises(InvalidAgent):
        render_prompt(f"Hello {source}", values)


def test_an_escape_that_shows_only_when_rendered_is_found_by_validate() -> None:
    text = "apiVersion: capuchin/v1\nname: a\nprompt: |\n  Hi\n  {{ name['__cl' ~ 'ass__'] }}\n"
    result = compile_bytes(f"{text}variables: {{name: {{}}}}\n".encode(), Path("a.yaml"))

    assert [(d.id, d.span.line) for d in result.diagnostics] == [("template-escape", 5)]


def test_validating_reads_no_file_and_starts_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "pwned"
    sources = (
        f"{{{{ cycler.__init__.__globals__.os.system('touch {marker}') }}}}",
        f"{{{{ ''.__class__.__mro__[1].__subclasses__()[0]('{marker}', 'w') }}}}",
    )
    for source in sources:
        text = f'apiVersion: capuchin/v1\nname: a\nprompt: "{source}"\n'
        assert compile_bytes(text.encode(), Path("a.yaml")).spec is None

    assert not marker.exists()


COSTLY = [
    "{% for i in range(10**9) %}x{% endfor %}",
    "{{ range(10**9) | list }}",
    "{{ range(0, 10**30) }}",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
    "{% endfor %}{% endfor %}{% endfor %}x",
    "{% for a in range(9999) %}{% if a in range(9999) | list %}{% endif %}{% endfor %}x",
    "{{ 'x' * 10**9 }}",
    "{{ 10**9 * 'x' }}",
    "{{ [1] * 10**9 }}",
    "{{ (1, 2) * 10**9 }}",
    "{{ 9**999999999 }}",
    "{{ 2**100**100 }}",
    "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}x",
    "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x + ns.x %}{% endfor %}x",
    "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=3) %}{% for i in range(60) %}"
    "{% set ns.x = ns.x * ns.x %}{% endfor %}x",
    "{{ ('a' * 9999).replace('', 'b' * 9999) }}",
    "{{ ('a' * 9999) | replace('', 'b' * 9999) }}",
    "{{ ['a' * 9999] * 9999 }}",
    "{{ (['a' * 9999] * 9999) | join }}",
    "{{ ([''] * 9999) | join('a' * 9999) }}",
    "{{ (['a' * 9999] * 9999) | tojson }}",
    "{{ (['a' * 9999] * 9999) ~ '' }}",
    "{{ (['a' * 9999] * 9999) | string }}",
    "{{ 'a' | indent(10**9) }}",
    "{{ ('\\n' * 90000) | indent(90) }}",
    "{{ [1] | tojson(indent=10**9) }}",
    "{{ 1.5 | round(10**9) }}",
    "{{ 'x' | center(10**9) }}",
    "{{ 'x'.ljust(10**9) }}",
    "{{ 'x'.zfill(10**9) }}",
    "{% set x %}{% for i in range(9999) %}" + "y" * 9999 + "{% endfor %}{% endset %}x",
    "{% for i in range(9999) recursive %}{{ loop(range(9999)) }}{% endfor %}",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "{{ " + "-" * 5000 + "1 }}",
    "{{ 1" + " + 1" * 5000 + " }}",
    "{{ " + "9" * 9000 + " }}",
    "{% if name %}" * 400 + "{% endif %}" * 400,
    "{% for a in [1] %}" * 400 + "{% endfor %}" * 400,
]


@pytest.mark.parametrize("source", COSTLY, ids=lambda s: s[:40])
def test_a_template_that_costs_too_much_is_refused_before_it_takes_the_memory(source: str) -> None:
    tracemalloc.start()
    checked = check_template(source, NAMES).problems
    rendered = None if checked else render_problems(source, {"name": "bo", "n": 3})
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert checked or rendered
    assert peak_bytes < 60_000_000


def test_a_tag_that_cannot_be_read_hides_no_other_mistake() -> None:
    source = "{{ a: 1 }} {{ nme }} {#if} {{ 'x }} {{ name | uper }}"

    problems = check_template(source, NAMES).problems

    assert [(p.id, source[p.start : p.end]) for p in problems] == [
        ("template-syntax", ":"),
        ("template-syntax", "{#"),
        ("template-syntax", "'"),
        ("undefined-variable", "nme"),
        ("unknown-filter", "uper"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "{% for x y in name %}{{ x }}{% else %}{{ x }}{% endfor %}",
        "{% if n > %}a{% elif n %}b{% else %}c{% endif %}",
        "{% set x = ( %}{{ x }}",
        "{% if n %}{{ name }}",
        "{{ name",
        "{% endif %}",
    ],
)
def test_one_broken_tag_is_one_mistake(source: str) -> None:
    assert ids(source) == ["template-syntax"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{% if n %}{{ name }} and {# a note #} more", 0),
        ("{% for x in name %}{% if x %}{% endif %}", 0),
        ("{% if n %}{% endif %}{% if n %}{{ n }}", 21),
        ("{% if n %}{% for x in name %}{{ x }}{% endfor %}", 0),
        ("{% set a %}{% set b = 1 %}{{ b }}", 0),
    ],
)
def test_a_block_that_never_ends_is_shown_where_it_begins(source: str, shown: int) -> None:
    [problem] = check_template(source, NAMES).problems

    assert (problem.id, problem.start) == ("template-syntax", shown)


def test_rendering_shows_every_mistake_and_none_twice() -> None:
    source = "{{ 1 / 0 }} {{ n + 'a' }} {{ name }} {{ nme }} {{ range(99999) }}"

    problems = render_problems(source, {"n": 1, "name": "bo"}, (source.index("nme"),))

    assert [(p.id, source[p.start : p.end]) for p in problems] == [
        ("template-error", "1"),
        ("template-error", "n"),
        ("template-too-large", "("),
    ]


def test_what_is_left_of_a_prompt_with_mistakes_may_be_empty() -> None:
    assert [p.id for p in render_problems("{{ 1 / 0 }}", {})] == ["template-error"]
    assert render_problems("{{ nme }}", {}, (3,)) == ()


def test_a_template_with_very_many_mistakes_is_read_quickly() -> None:
    source = "{{ a: 1 }} and some more text behind it\n" * 5_000

    assert 1 <= len(check_template(source, NAMES).problems) < 10


def test_half_a_character_never_leaves_a_prompt() -> None:
    with pytest.raises(InvalidAgent, match="surrogate"):
        render_prompt('x{{ "\\ud800" }}', {})


@pytest.mark.parametrize("source", ["{{ name.upper }}", "{{ range }}", "{{ [name.upper] }}"])
def test_a_method_or_function_is_no_text(source: str) -> None:
    with pytest.raises(InvalidAgent, match="neither text"):
        render_prompt(source, {"name": "bo"})


def test_an_undefined_name_is_found_in_every_branch() -> None:
    source = (
        "{% if name %}{{ a }}{% elif n %}{{ b }}{% else %}{{ c }}{% endif %}"
        "{% for x in [] %}{{ d }}{% else %}{{ e }}{% endfor %}{{ f if n else g }}"
        "{{ h or 'x' }}{{ name[i] }}{{ name | default(j) }}{% set k = k2 %}{{ k }}"
        "{% with l = l2 %}{{ l }}{% endwith %}{{ l }}{{ loop }}"
    )
    found = check_template(source, NAMES).problems

    assert {p.id for p in found} == {"undefined-variable"}
    names = [source[p.start : p.end] for p in found]
    assert sorted(names) == sorted([*"abcdefghijl", "k2", "l2", "loop"])


def test_the_names_a_template_uses_are_known() -> None:
    checked = check_template("{% if false %}{{ name }}{% endif %}{% set x = 1 %}{{ x }}", NAMES)

    assert checked.used == {"name"}


@pytest.mark.parametrize(
    "source",
    ["{{ name.upper( }}", "{% for %}", "{{ 1 1 }}", "{{ name | }}", "{% endif %}", "{{ 'x }}"],
)
def test_a_mistake_in_the_language_has_the_hint_for_literal_braces(source: str) -> None:
    (problem,) = check_template(source, NAMES).problems

    assert problem.id == "template-syntax"
    assert problem.help is not None
    assert "{% raw %}" in problem.help


def test_a_render_error_says_its_line() -> None:
    with pytest.raises(InvalidAgent, match="line 3 of the prompt"):
        render_prompt("a\nb\n{{ name.split('-')[4] }}\n", {"name": "x"})


def test_rendering_is_the_same_every_time() -> None:
    source = "{{ {'b': 1, 'a': name} }}{{ [3, 1] | sort }}{{ 0.1 + 0.2 }}"

    assert len({render_prompt(source, {"name": "x"}) for _ in range(5)}) == 1


STYLES = [
    ("|", "prompt: |\n  {}\n"),
    ("|-2", "prompt: |2-\n   {}\n"),
    (">", "prompt: >\n  {}\n"),
    ("plain", "prompt: {}\n"),
    ("single", "prompt: '{}'\n"),
    ("double", 'prompt: "{}"\n'),
    ("nested", "x-deep:\n  - &p |\n      {}\nprompt: *p\n"),
]


@pytest.mark.parametrize(("style", "shape"), STYLES, ids=[style for style, _ in STYLES])
@pytest.mark.parametrize(
    "lines",
    [
        ["You {{ nope }}."],
        ["One", "two {{ nope }} three", "four"],
        ["漢字 é 👋 {{ nope }}"],
        ["One", "", "", "{{ nope }}"],
        ["One {{ 'nope' }} two {{ nope }}"],
    ],
)
def test_a_mistake_is_shown_at_its_exact_place(style: str, shape: str, lines: list[str]) -> None:
    indent = {"|": "  ", "|-2": "   ", ">": "  ", "nested": "      "}.get(style, "  ")
    body = "\n".join(line if i == 0 or not line else indent + line for i, line in enumerate(lines))
    if style == "single":
        body = body.replace("'", "''")
    text = "apiVersion: capuchin/v1\nname: a\n" + shape.replace("{}", body, 1)
    result = compile_bytes(text.encode(), Path("a.yaml"))

    (problem,) = [d for d in result.diagnostics if d.id == "undefined-variable"]
    place = text.rindex("nope")
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    span = problem.span
    assert (span.line, span.column, span.end_line, span.end_column) == (
        *(line, column),
        *(line, column + 4),
    )


TEMPLATES = st.lists(
    st.sampled_from(
        [
            *("{{", "}}", "{%", "%}", "{#", "#}", "-", "name", "n", "nope", ".", "|", "upper"),
            *("if ", "endif", "for ", " in ", "endfor", "set ", "=", "raw", "endraw", "else"),
            *("'a'", '"', "(", ")", "[", "]", "{", "}", "1", "+", "*", "~", "is ", "defined"),
            *(" ", "\n", "text", "é", "__class__", "range", "loop", ",", ":", "with ", "not "),
        ]
    ),
    max_size=14,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEMPLATES)
def test_any_template_is_checked_and_rendered_without_a_crash(source: str) -> None:
    checked = check_template(source, NAMES)

    for problem in checked.problems:
        assert 0 <= problem.start <= problem.end <= len(source) + 1
    try:
        render_prompt(source, {"name": "bo", "n": 3})
    except InvalidAgent:
        pass
    else:
        assert not [p for p in checked.problems if p.id == "template-syntax"]
