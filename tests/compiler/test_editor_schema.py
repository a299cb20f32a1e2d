"""The editor's schema accepts what compiles and knows what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.editor_schema import editor_schema
from tests.compiler.corpus import VALID
from tests.compiler.packages import PaperPackage, PaperSource, PaperTool, tools


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return editor_schema(PaperSource())


def accepts(schema: dict[str, Any], text: str) -> bool:
    document = read_document(
        "a.yaml", f"apiVersion: capuchin/v1\nname: a\nprompt: x\n{text}".encode()
    )
    assert document.root is not None
    return jsonschema.Draft202012Validator(schema).is_valid(document.root.value)


def test_it_is_a_valid_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_a_file_that_compiles_is_accepted(schema: dict[str, Any], path: Path) -> None:
    document = read_document(str(path), path.read_bytes())
    assert document.root is not None

    jsonschema.validate(document.root.value, schema, jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("tools: [billing.lookup_order]", True),
        ("tools: [billing.nothing]", False),
        ("tools: [broken.anything]", True),
        ("tools: [{use: billing.issue_refund, config: {currency: USD}}]", True),
        ("tools: [{use: billing.issue_refund, config: {currency: usd}}]", False),
        ("tools: [{use: billing.issue_refund, config: {currency: {env: X}}}]", True),
        ("tools: [{use: [billing.issue_refund], config: {nope: 1}}]", False),
        ("tools: [{use: clock.now, config: {a: 1}}]", False),
        ("tools: [{use: clock.now, config: {}}]", True),
        ("tools: [{use: sql.query, config: {rows: 3}}]", False),
    ],
)
def test_tools_and_their_config_are_known(
    schema: dict[str, Any], text: str, accepted: bool
) -> None:
    assert accepts(schema, text) is accepted


def test_a_config_that_refers_to_itself_still_holds() -> None:
    own = {
        "type": "object",
        "properties": {"unit": {"$ref": "#/$defs/Unit"}},
        "$defs": {"Unit": {"enum": ["s", "m"]}},
        "additionalProperties": False,
    }
    schema = editor_schema(PaperSource({"t": PaperPackage("d", "1", tools(PaperTool("x")), own)}))

    assert accepts(schema, "tools: [{use: t.x, config: {unit: s}}]")
    assert not accepts(schema, "tools: [{use: t.x, config: {unit: h}}]")


def test_without_packages_any_name_is_open() -> None:
    class Nothing(PaperSource):
        def entry_names(self) -> tuple[str, ...]:
            return ()

    assert accepts(editor_schema(Nothing()), "tools: [any.thing]")
