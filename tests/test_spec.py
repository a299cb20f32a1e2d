"""A spec comes back from JSON as it was, and its hash says when it did not."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.spec import (
    AgentSpec,
    ApprovalSpec,
    Limits,
    Listing,
    PriceSpec,
    ToolSpec,
    VariableSpec,
    canonical_json,
    definition_hash,
)

words = st.text(max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=5,
)
objects = st.dictionaries(words, json_values, max_size=3)
tools = st.builds(
    ToolSpec,
    identity=words,
    alias=words,
    description=words,
    input_schema=objects,
    effect=st.sampled_from(["read", "write", "destructive"]),
    idempotent=st.booleans(),
    needs_approval=st.booleans(),
    tool_version=words,
    distribution=words,
    distribution_version=words,
    config=objects,
    timeout_s=st.floats(0.1, 1e6),
)
scalars = st.booleans() | st.integers() | words
specs = st.builds(
    AgentSpec,
    name=words,
    prompt=words,
    version=words,
    description=words,
    model=st.none() | words,
    variables=st.dictionaries(
        words,
        st.builds(
            VariableSpec,
            st.sampled_from(["string", "integer", "number", "boolean"]),
            default=st.none() | scalars,
            required=st.booleans(),
            enum=st.lists(scalars, max_size=3).map(tuple),
            description=words,
        ),
        max_size=3,
    ),
    injected=st.lists(words, max_size=3).map(tuple),
    tools=st.lists(tools, max_size=3).map(tuple),
    approval=st.builds(
        ApprovalSpec,
        st.sampled_from(["default", "auto", "all", "allowlist", "denylist"]),
        st.lists(words, max_size=3).map(tuple),
        st.none() | st.floats(1, 1e6),
        st.sampled_from(["deny", "wait", "close"]),
    ),
    limits=st.builds(Limits, st.integers(1, 99), st.integers(1, 99)),
    price=st.builds(PriceSpec, st.just("per_call"), words, words, st.none() | words),
    listing=st.builds(Listing, words, categories=st.lists(words, max_size=3).map(tuple)),
)


@given(specs)
def test_a_spec_comes_back_from_json_as_it_was(spec: AgentSpec) -> None:
    sent = json.loads(json.dumps(spec.to_json()))

    back = AgentSpec.from_json(sent)

    assert back == spec
    assert back.definition_hash == spec.definition_hash == definition_hash(sent)


@given(specs)
def test_the_hash_does_not_depend_on_the_order_of_keys(spec: AgentSpec) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: turned(v) for k, v in reversed(value.items())}
        return [turned(v) for v in value] if isinstance(value, list) else value

    assert definition_hash(turned(spec.to_json())) == spec.definition_hash


SMALL = AgentSpec(
    name="a",
    prompt="p",
    tools=(ToolSpec("a.b", "b", "", {"type": "object"}, "read", False, False, "1", "d", "1"),),
    variables={"v": VariableSpec()},
)


def test_the_hash_is_the_same_in_every_process() -> None:
    code = "from tests.test_spec import SMALL; print(SMALL.definition_hash)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
    )

    assert done.stdout.strip() == SMALL.definition_hash


def test_the_hash_is_pinned() -> None:
    """A changed value here means that every stored definition gets another hash."""
    assert AgentSpec(name="a", prompt="p").definition_hash == (
        "ee32aa7d2d7dcbbce803f62553c024710850bf0d9c4f06e3b5d45b9035852e66"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "x"},
        {"prompt": "p "},
        {"version": "1.0.0"},
        {"model": "rehearsal"},
        {"variables": {"v": VariableSpec(default="")}},
        {"injected": ("tenant",)},
        {"tools": ()},
        {"tools": (dataclasses.replace(SMALL.tools[0], distribution_version="2"),)},
        {"tools": (dataclasses.replace(SMALL.tools[0], config={"a": 1}),)},
        {"approval": ApprovalSpec("auto")},
        {"limits": Limits(max_steps=9)},
        {"price": PriceSpec("per_call", "1", "USD")},
        {"listing": Listing("MIT")},
    ],
)
def test_any_change_changes_the_hash(changed: dict[str, Any]) -> None:
    assert dataclasses.replace(SMALL, **changed).definition_hash != SMALL.definition_hash


def test_keys_of_a_later_release_are_ignored_everywhere() -> None:
    value = SMALL.to_json()
    value["later"] = 1
    value["tools"][0]["later"] = 1
    value["variables"]["v"]["later"] = 1
    for name in ("approval", "limits", "price", "listing"):
        value[name]["later"] = 1

    assert AgentSpec.from_json(value) == SMALL


def test_keys_that_an_older_release_did_not_write_take_their_defaults() -> None:
    assert AgentSpec.from_json({"name": "a", "prompt": "p"}) == AgentSpec(name="a", prompt="p")


def test_a_spec_without_a_name_is_no_spec() -> None:
    with pytest.raises(TypeError, match="name"):
        AgentSpec.from_json({"prompt": "p"})


def test_a_tool_is_found_by_the_name_the_model_sees() -> None:
    assert SMALL.tool_by_alias("b") is SMALL.tools[0]
    assert SMALL.tool_by_alias("a.b") is None


@pytest.mark.parametrize(
    ("effect", "idempotent", "repeatable"),
    [("read", False, True), ("write", True, True), ("write", False, False)],
)
def test_only_what_does_no_harm_twice_may_be_repeated(
    effect: Any, idempotent: bool, repeatable: bool
) -> None:
    tool = dataclasses.replace(SMALL.tools[0], effect=effect, idempotent=idempotent)

    assert tool.repeatable is repeatable


@given(objects)
def test_canonical_json_is_one_text_for_equal_values(value: dict[str, Any]) -> None:
    text = canonical_json(value)

    assert canonical_json(json.loads(text)) == text
    assert json.loads(text) == value


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": float("-inf")}])
def test_canonical_json_has_no_word_for_what_is_not_finite(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)
