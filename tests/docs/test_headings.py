"""The reference has a heading for everything that exists, and for nothing else."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from capuchin_yaml import testing
from capuchin_yaml.cli.app import VERBS
from capuchin_yaml.cli.output import ExitCode
from capuchin_yaml.client import answers
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.events import EVENT_TYPES, UnknownEvent, decode
from capuchin_yaml.items import Item
from capuchin_yaml.models.script_file import ScriptReply, When
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.tools import api
from capuchin_yaml.tools.context import ToolContext
from tests.docs.pages import ROOT, Heading, fences, page

SOURCES = sorted((ROOT / "capuchin_yaml").rglob("*.py"))
CORPUS = ROOT / "tests" / "corpus"


def headings(name: str, level: int = 3) -> list[str]:
    return [h.name for h in page(name).headings if h.level == level]


def in_code(heading: Heading) -> set[str]:
    """The words that stand between code marks under a heading, outside of fences."""
    prose = re.sub(r"^```.*?^```$", "", heading.body, flags=re.DOTALL | re.MULTILINE)
    return {word for span in re.findall(r"`([^`]+)`", prose) for word in span.split(", ")}


# agent.yaml


def schema_paths(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    """The dotted path of every key of the format: `tools[].use`, `variables.NAME.type`."""
    reference = schema.get("$ref", "").removeprefix("#/$defs/")
    schema = whole["$defs"][reference] if reference else schema
    for branch in schema.get("anyOf", ()):
        yield from schema_paths(branch, whole)
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from (f"{name}{path}" for path in _below(inner, whole))


def _below(inner: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    if "items" in inner:
        yield from (f"[].{path}" for path in schema_paths(inner["items"], whole))
    elif inner.get("additionalProperties") == {"$ref": "#/$defs/profile"}:
        return  # a patch has keys of the agent itself
    elif isinstance(inner.get("additionalProperties"), dict):
        yield from (f".NAME.{p}" for p in schema_paths(inner["additionalProperties"], whole))
    else:
        yield from (f".{path}" for path in schema_paths(inner, whole))


def test_every_key_of_the_agent_file_has_a_heading_in_its_order() -> None:
    schema = read_schema("agent.v1")

    assert headings("reference/agent-file.md") == [*schema_paths(schema, schema), "x-*"]


def test_every_choice_and_default_of_the_agent_file_is_named() -> None:
    schema = read_schema("agent.v1")
    for name, inner in (
        ("approval.policy", schema["$defs"]["approval"]["properties"]["policy"]),
        ("approval.on_timeout", schema["$defs"]["approval"]["properties"]["on_timeout"]),
        ("price.type", schema["$defs"]["price"]["properties"]["type"]),
        ("variables.NAME.type", schema["$defs"]["variable"]["properties"]["type"]),
    ):
        assert set(inner["enum"]) <= in_code(page("reference/agent-file.md").heading(name)), name
    for name, limit in schema["$defs"]["limits"]["properties"].items():
        body = page("reference/agent-file.md").heading(f"limits.{name}").body
        assert f"Default: {limit.get('default', 'never')}" in body
        if "default" in limit:
            assert f"from {limit['minimum']} to {limit['maximum']:,}" in body


def test_every_key_of_the_operator_config_has_a_heading_that_names_its_own_keys() -> None:
    schema = read_schema("operator.v1")
    shown = page("reference/operator-config.md")
    inner = {"floor": "rule", "trust": "grant", "people": "person", "notify": "hook"}

    assert set(headings("reference/operator-config.md")) == set(schema["properties"])
    for name, block in {**inner, "gate": "gate"}.items():
        assert set(schema["$defs"][block]["properties"]) <= in_code(shown.heading(name)), name


# Diagnostics

REPORTERS = {"Diagnostic", "TemplateProblem", "UnknownKey", "_add", "_error", "_report"}
REPORTING_METHODS = {"_report", "_add", "error", "warning"}
NOT_IDS = {"capuchin-yaml"}


@cache
def diagnostic_ids() -> frozenset[str]:
    """Every id that the compiler or `validate` can report, found in their code and the corpus."""
    found: set[str] = set()
    files = [*(ROOT / "capuchin_yaml" / "compiler").glob("*.py")]
    for file in [*files, ROOT / "capuchin_yaml" / "cli" / "validate.py"]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if re.fullmatch(r"[a-z]+(-[a-z]+)+", node.value):
                    found.add(node.value)
            elif isinstance(node, ast.Call) and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and _called(node) in (
                    REPORTERS | REPORTING_METHODS
                ):
                    found.add(str(first.value))
    for report in CORPUS.rglob("*.expected"):
        text = report.read_text(encoding="utf-8")
        found.update(re.findall(r"^(?:error|warning|note)\[([a-z-]+)\]", text, re.MULTILINE))
    return frozenset(found - NOT_IDS)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def test_every_diagnostic_has_a_heading() -> None:
    assert sorted(headings("reference/diagnostics.md")) == sorted(diagnostic_ids())


def test_an_example_of_a_diagnostic_shows_that_diagnostic_and_no_other() -> None:
    for heading in page("reference/diagnostics.md").headings:
        shown = set(re.findall(r": (?:error|warning)\[([a-z-]+)\]", heading.body))
        assert heading.level < 3 or shown <= {heading.name}, heading.name


# Events


@pytest.mark.parametrize("cls", EVENT_TYPES, ids=lambda cls: cls.kind)
def test_every_event_has_a_heading_its_fields_and_an_example(cls: type[Any]) -> None:
    heading = page("reference/events.md").heading(cls.kind)
    [example] = [
        jsonschema_value(f.text)
        for f in fences("json")
        if f.text.startswith(f'{{"kind": "{cls.kind}"')
    ]
    fields = {f.name for f in dataclasses.fields(cls)} - {"offset", "time"}

    assert fields <= in_code(heading)
    assert fields <= example.keys()
    assert type(decode(example)) is cls


def jsonschema_value(text: str) -> dict[str, Any]:
    import json

    value: dict[str, Any] = json.loads(text)
    jsonschema.validate(value, read_schema("event.v1"))
    return value


def test_no_event_is_made_up() -> None:
    assert headings("reference/events.md") == [cls.kind for cls in EVENT_TYPES]
    assert UnknownEvent.__name__ in page("reference/events.md").text


def test_every_field_of_an_item_is_named() -> None:
    assert set(Item.__slots__) <= in_code(page("reference/events.md").heading("Items"))


# Environment


@cache
def trees() -> tuple[ast.Module, ...]:
    """The whole package, parsed."""
    return tuple(ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES)


def environment_names() -> set[str]:
    """Every variable that the code reads, found in its calls; names may be constants."""
    found: set[str] = set()
    for tree in trees():
        for node in ast.walk(tree):
            key = _environment_key(node)
            if isinstance(key, ast.Constant):
                found.add(str(key.value))
            elif isinstance(key, ast.Name) and key.id in constants():
                found.add(constants()[key.id])
    return found


@cache
def constants() -> dict[str, str]:
    """Texts that modules give a name in capitals."""
    found: dict[str, str] = {}
    for tree in trees():
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    if name.isupper():
                        found[name] = text
    return found


def _environment_key(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[key, *_]):
            return key if _is_environ(owner) else None
        case ast.Call(func=ast.Attribute(attr="getenv"), args=[key, *_]):
            return key
        case ast.Subscript(value=owner, slice=key):
            return key if _is_environ(owner) else None
        case _:
            return None


def _is_environ(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr="environ") | ast.Name(id="environ"):
            return True
        case _:
            return False


@cache
def texts_of_source() -> tuple[str, ...]:
    """Every text constant of the package."""
    return tuple(
        node.value
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_every_environment_variable_has_a_heading() -> None:
    documented = set(headings("reference/environment.md"))
    ours = {
        name
        for text in texts_of_source()
        for name in re.findall(r"^(?:CAPUCHIN|ANTHROPIC|TEMPORAL)_[A-Z_]+$", text)
    }

    assert environment_names() | ours <= documented


def test_no_environment_variable_is_made_up() -> None:
    known = {
        name for text in texts_of_source() for name in re.findall(r"\b[A-Z]+_?[A-Z_]+\b", text)
    }
    sdk = {"TEMPORAL_TLS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"}

    assert set(headings("reference/environment.md")) - known <= sdk


# Exit codes, verbs, tools, client, script


def test_every_exit_code_has_a_heading() -> None:
    shown = [int(h.partition(" ")[0]) for h in headings("reference/exit-codes.md", 2)]

    assert shown == [int(code) for code in ExitCode]


def test_every_verb_has_its_place_in_the_command_line_reference() -> None:
    text = page("reference/cli.md").text

    assert all(f"capuchin {verb}" in text for verb in VERBS)


def test_everything_a_tool_package_imports_has_a_heading() -> None:
    shown = headings("reference/tools.md")
    kit = {testing.run_tool.__name__, testing.check_package.__name__}

    assert set(api.__all__) | kit == set(shown)


def test_every_argument_of_tool_and_field_of_its_context_is_named() -> None:
    arguments = inspect.signature(api.tool).parameters.keys() - {"function"}
    context = {name for name in vars(ToolContext) | ToolContext.__annotations__ if name[0] != "_"}

    assert arguments <= in_code(page("reference/tools.md").heading("tool"))
    shown = {
        word.partition("(")[0]
        for word in in_code(page("reference/tools.md").heading("ToolContext"))
    }
    assert context <= shown


@pytest.mark.parametrize("cls", [Capuchin, Conversation], ids=lambda cls: cls.__name__)
def test_every_call_of_the_client_has_a_heading_with_its_signature(cls: type[Any]) -> None:
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        heading = page("reference/client.md").heading(f"{cls.__name__}.{name}")
        if inspect.isfunction(value) and len(inspect.signature(value).parameters) > 1:
            spelled = ", ".join(
                _spelled(p) for p in list(inspect.signature(value).parameters.values())[1:]
            )
            shown = re.sub(r"\*, ", "", heading.body)
            assert f"{name}({spelled})" in shown, heading.name


def _spelled(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    text = repr(parameter.default).replace("'", '"')
    return f"{parameter.name}={text}"


@pytest.mark.parametrize("name", [n for n in vars(answers) if n[0].isupper()])
def test_every_answer_of_the_client_has_a_heading_with_its_fields(name: str) -> None:
    cls = getattr(answers, name)
    if not dataclasses.is_dataclass(cls) or cls.__module__ != answers.__name__:
        return
    shown = in_code(page("reference/client.md").heading(name))

    assert {field.name for field in dataclasses.fields(cls)} <= shown


def test_every_word_of_a_script_has_a_heading() -> None:
    words = [f"when.{f.name}" for f in dataclasses.fields(When)]
    words += [f"reply.{f.name}" for f in dataclasses.fields(ScriptReply)]

    assert headings("reference/script.md") == words


# Recover


def test_the_recover_page_is_headed_by_words_that_are_really_printed() -> None:
    printed = "\n".join(texts_of_source())

    for heading in headings("how-to/recover.md"):
        assert heading in printed, heading


def test_every_entry_of_a_state_folder_is_named(state_folder: Path) -> None:
    shown = in_code(page("reference/environment.md").heading("The state folder"))
    found = {entry.name for entry in state_folder.iterdir()} - {".gitignore"}

    assert {
        name.partition(".db-")[0] + ".db" if ".db-" in name else name for name in found
    } <= shown
    assert {log.name for log in (state_folder / "log").iterdir()} <= shown
