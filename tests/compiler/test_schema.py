"""The schema that editors use and the compiler agree."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.compiler.render import report
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import (
    AgentSpec,
    ApprovalSpec,
    BudgetSpec,
    JsonValue,
    Limits,
    Listing,
    ModelSettings,
    PriceSpec,
    RuleSpec,
    VariableSpec,
    canonical_json,
)
from tests.compiler.corpus import FOLDER, INVALID, VALID, compiled
from tests.compiler.packages import PaperSource


def _editor_accepts(path: Path) -> bool | None:
    """What an editor's validator says; None when the file's YAML cannot be read."""
    document = read_document(str(path), path.read_bytes())
    if document.root is None or document.diagnostics:
        return None
    return bool(
        jsonschema.Draft202012Validator(read_schema("agent.v1")).is_valid(document.root.value)
    )


def test_the_schema_is_a_valid_schema_of_its_draft() -> None:
    schema = read_schema("agent.v1")

    jsonschema.Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_a_file_that_compiles_is_accepted_by_an_editor(path: Path) -> None:
    assert compiled(path).spec is not None
    assert _editor_accepts(path)


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.stem)
def test_a_file_that_an_editor_refuses_does_not_compile(path: Path) -> None:
    if _editor_accepts(path) is False:
        assert compiled(path).spec is None


def test_the_corpus_holds_files_that_only_the_schema_refuses() -> None:
    refused = [path for path in INVALID if _editor_accepts(path) is False]

    assert len(refused) > 40


def _keys(schema: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, sub in schema.get("properties", {}).items():
        yield f"{place}.{name}", sub
        yield from _keys(sub, f"{place}.{name}")
    for branch in schema.get("anyOf", []):
        yield from _keys(branch, place)


def test_every_key_has_a_title_and_a_description_for_hover() -> None:
    schema = read_schema("agent.v1")
    keys = list(_keys(schema, "agent"))
    for name, definition in schema["$defs"].items():
        keys.extend(_keys(definition, name))

    def meant(reference: str) -> dict[str, Any]:
        target: dict[str, Any] = schema
        for step in reference.split("/")[1:]:
            target = target[step]
        return target

    def told(key: dict[str, Any]) -> bool:
        below = meant(key["$ref"]) if "$ref" in key else {}
        return all(key.get(word) or below.get(word) for word in ("title", "description")) or (
            "$ref" in below and told(below)
        )

    assert [name for name, key in keys if not told(key)] == []


def test_every_map_of_the_schema_is_closed_but_for_notes() -> None:
    schema = read_schema("agent.v1")
    maps = [schema, *(d for d in schema["$defs"].values() if "properties" in d)]

    assert all(m["additionalProperties"] is False for m in maps)
    assert all("^x-" in m["patternProperties"] for m in maps)


@pytest.mark.parametrize(
    ("place", "noun"),
    [
        ("approval", ApprovalSpec),
        ("rule", RuleSpec),
        ("limits", Limits),
        ("budget", BudgetSpec),
        ("price", PriceSpec),
        ("listing", Listing),
        ("variable", VariableSpec),
    ],
)
def test_every_key_of_a_block_has_its_field_in_the_spec(place: str, noun: type) -> None:
    keys = set(read_schema("agent.v1")["$defs"][place]["properties"])
    renamed = {"timeout": "timeout_s", "idle_close": "idle_close_s", "remind": "remind_s"}

    fields = set(noun.__dataclass_fields__)  # type: ignore[attr-defined]  # a dataclass
    assert {renamed.get(key, key) for key in keys} == fields - {"runs"}


def test_every_key_of_the_top_has_its_field_in_the_spec() -> None:
    # `requires` is met or not, and `extends` and `profiles` are resolved, when it is compiled.
    keys = set(read_schema("agent.v1")["properties"]) - {"requires", "extends", "profiles"}

    fields = set(AgentSpec.__dataclass_fields__) - {"model_settings"}  # of the map `model`
    assert {{"apiVersion": "api_version"}.get(k, k) for k in keys} == fields


def test_the_defaults_of_limits_are_those_of_the_spec() -> None:
    limits = read_schema("agent.v1")["$defs"]["limits"]["properties"]

    assert {name: key["default"] for name, key in limits.items() if "default" in key} == {
        "max_steps": Limits().max_steps,
        "max_tool_calls": Limits().max_tool_calls,
        "max_parallel_calls": Limits().max_parallel_calls,
        "same_call": Limits().same_call,
    }


def test_an_unknown_schema_name_is_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        read_schema("no-such.v1")


def test_a_schema_that_was_changed_by_its_reader_stays_whole_for_the_next() -> None:
    read_schema("agent.v1").clear()

    assert read_schema("agent.v1")["title"] == "agent.yaml"


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 3, 1.5, 1e300, 10**30, "", "x", "no", "30s", "allowlist", "a.b", "{{"]),
    st.sampled_from(["billing.lookup_order", "\u202e\n", "é" * 70, "per_token", "env:X"]).map(str),
    st.sampled_from(["env", "use", "x-a", "", "type", "policy", "tools", "file"]).flatmap(
        lambda key: st.sampled_from([{key: "x"}, {key: 1}, [{key: None}], {key: ["x", "x"]}])
    ),
    st.sampled_from([[], {}, [1], ["a", "a"], [None], [[]]]),
)
KEYS = st.sampled_from(
    [
        *("", "x-1", "env", "use", "tools", "policy", "type", "amount", "budget", "floor"),
        *("agent", "rules", "Name", "名", "instructions", "max_turns", "\u202e", "no", "1"),
        *("extends", "profiles", "fallback", "base_url", "api_key", "max_usd", "input", "dev"),
    ]
)


def _places(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    pairs: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield from _places(inner, (*path, key))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_file_the_compiler_is_never_laxer_than_the_schema(
    data: st.DataObject,
) -> None:
    path = FOLDER / "valid" / "everything.yaml"
    document = read_document(str(path), path.read_bytes())
    assert document.root is not None
    value = copy.deepcopy(document.root.value)
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(list(_places(value))))
        owner = value
        for step in parents:
            owner = owner[step]
        if isinstance(owner, dict) and data.draw(st.booleans()):
            owner[data.draw(KEYS)] = copy.deepcopy(data.draw(JUNK))
        else:
            owner[last] = copy.deepcopy(data.draw(JUNK))

    result = compile_bytes(canonical_json(value).encode(), path, PaperSource())
    validator = jsonschema.Draft202012Validator(read_schema("agent.v1"))
    if not validator.is_valid(value):
        assert result.spec is None
    assert report(result.diagnostics, {str(path): result.source}, "full") or result.spec


def test_every_setting_of_a_model_has_its_field_in_the_spec() -> None:
    keys = set(read_schema("agent.v1")["$defs"]["model"]["properties"]) - {"name"}
    renamed = {
        "timeout": "timeout_s",
        "thinking": "thinking_tokens",
        "api_key": "key_variable",
    }

    assert {renamed.get(k, k) for k in keys} == set(ModelSettings.__dataclass_fields__)
