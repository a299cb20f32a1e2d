"""For authors of tool packages: run a tool as the engine does, and prove a package sound.

from capuchin_yaml.testing import check_package, run_tool

def test_the_package_is_sound():
    check_package("clock")

def test_the_time_of_paris_is_told():
    assert "Europe/Paris" in run_tool("clock.now", {"zone": "Europe/Paris"}).text
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from capuchin_yaml.errors import CapuchinError, ToolFailed
from capuchin_yaml.policy.canonical import InvalidArguments, canonical_arguments
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.definition import Tool
from capuchin_yaml.tools.docstring import read_docstring
from capuchin_yaml.tools.registry import LoadedPackage, Registry
from capuchin_yaml.tools.results import result_text
from capuchin_yaml.tools.tool_result import ToolResult


class UnsoundPackage(CapuchinError, AssertionError):
    """A tool package has mistakes; the text lists all that were found."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What one call of a tool gave."""

    value: object
    """As the tool returned it."""
    text: str
    """As the model reads it, without the lines on artifacts."""
    heartbeats: tuple[tuple[object, ...], ...] = ()
    """The details of each heartbeat, in order."""
    is_error: bool = False
    """The tool says that it did not do what was asked."""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """The content of each artifact, by its name."""


def run_tool(
    tool: Tool | str,
    arguments: Mapping[str, JsonValue] | None = None,
    *,
    config: Mapping[str, JsonValue] | None = None,
    injected: Mapping[str, JsonValue] | None = None,
    data_dir: Path | None = None,
    idempotency_key: str = "test-key",
    conversation_id: str = "test",
    call_id: str = "test:1",
    attempt: int = 1,
    preview_hash: str | None = None,
    cancelled: threading.Event | None = None,
    registry: Registry | None = None,
) -> ToolRun:
    """Run one call the way the engine does, in a thread of its own, and return what it gave.

    The arguments are checked against the schema and its defaults filled in, as for a model's
    call. `tool` is a tool, or the identity of an installed one. Without `data_dir` the tool
    has a folder that is removed afterwards. Works inside and outside a running event loop.
    A tool's own `preview` is a tool too: `run_tool(refund.preview, ...)`.

    Raises:
        ToolFailed: the arguments do not fit, the tool says so, or its result has no text form.
        PluginUnavailable: no such tool is installed. Whatever else the tool raises comes out
            as it is.
    """
    found = (registry or Registry.installed()).find(tool) if isinstance(tool, str) else tool
    heartbeats: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory(prefix="capuchin-test-") as folder:
        context = ToolContext(
            idempotency_key=idempotency_key,
            conversation_id=conversation_id,
            call_id=call_id,
            attempt=attempt,
            data_dir=data_dir or Path(folder) / "data",
            config=dict(config or {}),
            injected=dict(injected or {}),
            heartbeat=lambda *details: heartbeats.append(details),
            preview_hash=preview_hash,
            cancelled=cancelled,
        )
        value = _call(found, _checked(found, arguments or {}), context)
        if not isinstance(value, ToolResult):
            return ToolRun(value, result_text(value), tuple(heartbeats))
        # Why in here: an artifact may lie in the folder that is removed afterwards.
        kept = {artifact.name: artifact.content() for artifact in value.artifacts}
        return ToolRun(value, result_text(value.text), tuple(heartbeats), value.is_error, kept)


def check_package(entry: str, registry: Registry | None = None) -> LoadedPackage:
    """Import an installed tool package, prove it sound, and return it.

    Raises:
        PluginUnavailable: it is not installed, or cannot be imported.
        UnsoundPackage: an AssertionError that names every mistake.
    """
    package = (registry or Registry.installed()).package(entry)
    problems: list[str] = []
    for tool in package.tools.values():
        problems += [f"{entry}.{tool.name}: {problem}" for problem in _tool_problems(tool)]
    if package.config_schema is not None:
        problems += [f"config: {p}" for p in _schema_problems(package.config_schema)]
    if problems:
        raise UnsoundPackage("\n".join([f"tool package {entry!r} is not sound:", *problems]))
    return package


def _checked(tool: Tool, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        checked: dict[str, JsonValue] = json.loads(
            canonical_arguments(tool.input_schema, dict(arguments))
        )
    except InvalidArguments as error:
        raise ToolFailed(f"the arguments do not fit: {error}") from error
    return checked


def _call(tool: Tool, arguments: Mapping[str, JsonValue], context: ToolContext) -> object:
    def run() -> object:
        if tool.is_async:
            return asyncio.run(tool.call_async(arguments, context))
        return tool.call_sync(arguments, context)

    # Why: a test may have a running loop, and the engine never runs a tool on its own.
    with ThreadPoolExecutor(1, thread_name_prefix=f"tool {tool.name}") as thread:
        return thread.submit(contextvars.copy_context().run, run).result()


def _tool_problems(tool: Tool) -> list[str]:
    problems = _schema_problems(tool.input_schema)
    properties: Mapping[str, JsonValue] = tool.input_schema.get("properties", {})
    problems += [
        f"parameter {name!r} has no description; write a line for it under 'Args:'"
        for name, schema in properties.items()
        if not schema.get("description")
    ]
    documented = read_docstring(tool.function.__doc__).parameters
    problems += [
        f"its docstring describes {name!r}, which is no parameter"
        for name in documented
        if name not in properties and name not in inspect.signature(tool.function).parameters
    ]
    return problems


def _schema_problems(schema: Mapping[str, JsonValue]) -> list[str]:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [f"its schema is no JSON Schema: {error.json_path}: {error.message}"]
    problems: list[str] = []
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, Mapping) and "default" in inner:
            whole = {**schema, "required": []}
            errors = Draft202012Validator(whole).iter_errors({name: inner["default"]})
            problems += [f"the default of {name!r} does not fit: {e.message}" for e in errors]
    return problems
