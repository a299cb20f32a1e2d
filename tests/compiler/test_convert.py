"""Agents of other formats: the new file is good, nothing is dropped unsaid, nothing loosens."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.convert import claude_code, docker_agent, llm_template, pydantic_ai
from capuchin_yaml.compiler.convert.conversion import KINDS, CannotConvert, Kind, convert
from capuchin_yaml.compiler.document import Node, read_document
from capuchin_yaml.compiler.template import render_prompt
from capuchin_yaml.compiler.wording import place_name
from tests.compiler.conversions import SAMPLES, converted, expected, outcome
from tests.compiler.convert_reference import PAGE, page_text

TARGET = Path("agent.yaml")
SAID_OTHERWISE = {
    *("version", "agents.root.model", "agents.helper.model"),
    *("deps_schema.type", "deps_schema.required[0]"),
}
"""Values of which only the meaning is in the new file: a format's version, a name for a model."""


def prompt_of(text: str, name: str = "a.yaml", **values: str) -> str:
    """The prompt that the model gets from the converted file."""
    spec = convert(text.encode(), Path(name), TARGET).compiled.spec
    assert spec is not None
    return render_prompt(spec.prompt, values)


def docker_agent_with(prompt: str) -> str:
    """A file whose one agent has this prompt."""
    written = json.dumps({"agents": {"root": {"instruction": prompt}}}, ensure_ascii=False)
    return re.sub("[\u2028\u0085\ufeff]", lambda m: f"\\u{ord(m.group()):04x}", written)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_gives_the_file_and_the_report_that_lie_beside_it(path: Path) -> None:
    assert outcome(path) == expected(path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_new_file_of_a_sample_validates(path: Path) -> None:
    assert converted(path).compiled.spec is not None


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_an_agent_that_had_tools_asks_before_every_call(path: Path) -> None:
    result = converted(path)

    spec = result.compiled.spec
    assert spec is not None
    had_tools = any(one.key in ("tools", "approval.rules") for one in result.fill_ins)
    assert spec.approval.policy == ("all" if had_tools else "default")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_value_of_a_sample_is_reported_lost_or_shows_in_the_new_file(path: Path) -> None:
    text = path.read_text()
    parts = claude_code.split(text, str(path)) if path.suffix == ".md" else None
    root = (parts[0] if parts else read_document(str(path), text.encode())).root
    assert root is not None
    result = converted(path)
    lost = [one.key for one in result.losses]
    for place, leaf in _leaves(root, ()):
        name = place_name(place)
        is_lost = any(name == key or name.startswith((f"{key}.", f"{key}[")) for key in lost)
        if is_lost or name in SAID_OTHERWISE:
            continue
        pieces = [piece for piece in re.findall(r"[A-Za-z0-9.]+", leaf.text) if piece != "input"]
        assert all(piece.casefold() in result.text.casefold() for piece in pieces), name


def _leaves(
    node: Node, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    if node.kind == "scalar":
        yield path, node
    for key, entry in node.entries.items():
        yield from _leaves(entry.node, (*path, key))
    for i, item in enumerate(node.items):
        yield from _leaves(item, (*path, i))


@pytest.mark.parametrize(
    ("module", "text", "known"),
    [
        (docker_agent, "agents: {root: {KEY: x, instruction: a}}", "_AGENT"),
        (docker_agent, "KEY: x\nagents: {root: {instruction: a}}", "_TOP"),
        (
            docker_agent,
            "models: {m: {provider: anthropic, model: c, KEY: x}}\n"
            "agents: {root: {model: m, instruction: a}}",
            "_MODEL",
        ),
        (pydantic_ai, "instructions: a\nKEY: x", "_TOP"),
        (llm_template, "system: a\nKEY: x", "_TOP"),
    ],
)
def test_each_key_with_a_reason_is_reported_with_it(module: object, text: str, known: str) -> None:
    reasons: dict[str, str] = getattr(module, known)
    for key, why in reasons.items():
        result = convert(text.replace("KEY", key).encode(), Path("a.yaml"), TARGET)

        assert (key, why) in {(one.key.split(".")[-1], one.why) for one in result.losses}
        assert result.compiled.spec is not None


def test_an_unknown_key_is_reported_where_it_stands() -> None:
    text = "agents:\n  root:\n    instruction: a\n    brand_new:\n      deep: 1\n"

    [loss] = convert(text.encode(), Path("a.yaml"), TARGET).losses

    assert (loss.line, loss.key) == (4, "agents.root.brand_new")


@pytest.mark.parametrize(
    "text",
    [
        'Answer {"a": {"b": {{"c": 1}}}} or {% raw %}, {# or #}, {{{ x }}}.',
        "{",
        "{{",
        "ends with {%",
        "{% endraw %}{{ '{' }}",
        "  begins with blanks\n\n\nand ends with breaks\n\n\n",
        "tab\there, a colon: here, # no comment, 'quotes' \"both\"",
        "\n\nbegins with breaks",
        "trailing blanks   \n  \nmore",
        "Grüezi 🙂 \u2028 \u0085 \ufeff",
        "--- \n...\n",
        "$name ${x} $$ %s",
    ],
)
def test_a_prompt_reaches_the_model_as_it_was(text: str) -> None:
    old = docker_agent_with(text)

    assert prompt_of(old) == text


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("{}%# \n\t'\"ab:-|>&*\\$\u2028é🙂")), min_size=1))
def test_any_prompt_reaches_the_model_as_it_was(text: str) -> None:
    if not text.strip():
        return
    old = docker_agent_with(text)

    assert prompt_of(old) == text


def test_a_variable_behind_a_brace_is_still_one() -> None:
    assert prompt_of("system: '{$who} {{$who}}'\n", who="x") == "{x} {{x}}"
    assert prompt_of("instructions: '{ {{who}} {%{{who}}'\n", who="x") == "{ x {%x"


def test_a_name_inside_a_block_of_another_template_language_is_no_variable() -> None:
    text = "instructions: '{{#each a}}{{id}}{{/each}} {{id2}}'\n"

    result = convert(text.encode(), Path("a.yaml"), TARGET)

    assert result.compiled.spec is not None
    assert list(result.compiled.spec.variables) == ["id2"]
    assert prompt_of(text, id2="x") == "{{#each a}}{{id}}{{/each}} x"


def test_a_secret_of_the_old_file_does_not_reach_the_new_one_nor_the_report() -> None:
    text = (
        "agents:\n  root:\n    instruction: a\n    toolsets:\n      - type: mcp\n"
        "        remote: {url: 'https://u:s3cret@x.org', headers: {Authorization: Bearer s3cret}}\n"
        "        env: {KEY: s3cret}\n"
    )

    result = convert(text.encode(), Path("a.yaml"), TARGET)

    assert "s3cret" not in result.text + str(result.losses) + str(result.fill_ins)


def test_one_agent_of_several_is_chosen_by_name() -> None:
    path = next(path for path in SAMPLES if path.stem == "docker-agent-team")

    result = convert(path.read_bytes(), path, TARGET, agent="builder")

    assert result.name == "builder"
    assert "agents.root" in {one.key for one in result.losses}
    with pytest.raises(CannotConvert, match="there are root, builder"):
        convert(path.read_bytes(), path, TARGET, agent="nobody")


def test_a_plain_text_is_a_template_of_llm_when_that_is_said() -> None:
    result = convert(b"Fun facts about $topic.\n", Path("fun.yaml"), TARGET, kind="llm")

    assert result.compiled.spec is not None
    assert result.compiled.spec.prompt == "Fun facts about {{ topic }}."


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.yaml", b"apiVersion: capuchin/v1\nname: a\n", "is an agent.yaml already"),
        ("a.yaml", b"model: x\nname: y\n", "could be pydantic-ai or llm; say which with --from"),
        ("a.yaml", b"some: thing\n", "is of no kind that is known"),
        ("a.yaml", b"just text\n", "no map of keys"),
        ("a.yaml", b"- a\n", "no map of keys"),
        ("a.yaml", b"agents: [\n", "cannot be read"),
        ("a.yaml", b"system: a\nsystem: b\n", "cannot be read"),
        ("a.yaml", b"system: !!python/object/apply:os.system [id]\n", "cannot be read"),
        ("a.yaml", b"agents: {}\n", "here are none"),
        ("a.yaml", b"", "cannot be read"),
        ("a.md", b"# Title\n", "has no keys in front"),
        ("a.md", b"---\nname: a\n", "has no keys in front"),
        ("a.md", b"---\nname: \xff\n---\n", "is not UTF-8"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_what_to_do(
    name: str, data: bytes, said: str
) -> None:
    with pytest.raises(CannotConvert, match=said):
        convert(data, Path(name), TARGET)


def test_the_places_of_a_front_are_those_of_the_file() -> None:
    parts = claude_code.split("---\r\nname: a\r\n\r\ncolor: red\r\n---\r\nHi.\r\n", "a.md")

    assert parts is not None
    document, prompt = parts
    assert document.key_span(("color",)).line == 4
    assert prompt == "Hi."


def test_a_deep_or_wide_file_takes_no_long_time() -> None:
    wide = "system: a\ndefaults:\n" + "".join(f"  k{i}: v\n" for i in range(50_000))

    result = convert(wide.encode(), Path("a.yaml"), TARGET)

    assert len(result.losses) == 50_000


_WORDS = st.sampled_from(
    ["agents", "root", "model", "instruction", "toolsets", "instructions", "system", "prompt"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=8,
)
_KEYS = sorted(
    {*pydantic_ai.KEYS, *llm_template.KEYS, *docker_agent._AGENT, *docker_agent._MODEL}
    | {"tools", "permissionMode", "disallowedTools", "mcpServers", "maxTurns", "description"}
    | {"permissions", "models", "metadata", "toolsets", "instruction", "max_iterations"}
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6))
def test_values_of_any_form_are_converted_or_refused(kind: Kind, value: dict[str, object]) -> None:
    front = json.dumps(value)
    if kind == "docker-agent":
        front = json.dumps({"agents": {"root": value}, "models": {"m": value}, **value})
    text = f"---\n{front}\n---\nHello.\n" if kind == "claude-code" else front

    try:
        result = convert(text.encode("utf-8", "surrogatepass"), Path("a.x"), TARGET, kind=kind)
    except CannotConvert:
        return

    assert read_document("agent.yaml", result.text.encode()).root is not None
    if any(d.severity == "error" for d in result.compiled.diagnostics):
        assert result.compiled.spec is None


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), st.text(max_size=200))
def test_any_text_is_converted_or_refused(kind: Kind, text: str) -> None:
    body = f"---\n{text}\n---\n{text}" if kind == "claude-code" else text
    with contextlib.suppress(CannotConvert):
        result = convert(body.encode("utf-8", "surrogatepass"), Path("a.x"), TARGET, kind=kind)
        assert result.name in result.text


def test_the_reference_page_says_what_becomes_of_each_key() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text()
