"""What `@tool` makes of a function, and what it refuses."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, Strict
from pydantic import ValidationError as PydanticError

from capuchin_yaml.policy.canonical import canonical_arguments
from capuchin_yaml.spec import canonical_json
from capuchin_yaml.tools.api import (
    InvalidTool,
    Tool,
    ToolContext,
    ToolFailed,
    ToolPackage,
    tool,
)
from tests.tools import deferred_hints


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where somebody lives."""

    title: str
    city: str = Field(description="Name of the city.")


@dataclasses.dataclass
class Size:
    width: int
    height: int = 2


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    """A context whose folder does not exist yet."""
    return ToolContext(
        idempotency_key="k",
        conversation_id="c",
        call_id="c:1",
        attempt=1,
        data_dir=tmp_path / "data" / "acme",
    )


@tool
def plain(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


@tool(
    effect="destructive",
    idempotent=True,
    needs_approval=True,
    version="2",
    name="drop-table",
    timeout_s=5,
)
async def drop(table: str, ctx: ToolContext) -> str:
    """Drop a table."""
    return f"{table} {ctx.call_id}"


def test_a_tool_that_declares_nothing_counts_as_the_worst() -> None:
    assert (plain.name, plain.effect, plain.idempotent, plain.needs_approval) == (
        "plain",
        "write",
        False,
        False,
    )
    assert (plain.version, plain.timeout_s, plain.is_async) == ("1", None, False)


def test_what_is_declared_is_kept() -> None:
    assert (drop.name, drop.effect, drop.idempotent, drop.needs_approval) == (
        "drop-table",
        "destructive",
        True,
        True,
    )
    assert (drop.version, drop.timeout_s, drop.is_async) == ("2", 5.0, True)


def test_a_tool_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.effect = "read"  # type: ignore[misc]


def test_the_decorated_name_can_still_be_called() -> None:
    assert plain("Rome") == "sunny in Rome"


def test_a_sync_tool_runs_with_json_arguments(ctx: ToolContext) -> None:
    assert plain.call_sync({"city": "Rome"}, ctx) == "sunny in Rome"


async def test_an_async_tool_gets_its_context(ctx: ToolContext) -> None:
    assert await drop.call_async({"table": "t"}, ctx) == "t c:1"


async def test_the_wrong_way_to_call_says_the_right_one(ctx: ToolContext) -> None:
    with pytest.raises(TypeError, match="await call_async"):
        drop.call_sync({"table": "t"}, ctx)
    with pytest.raises(TypeError, match="use call_sync"):
        await plain.call_async({"city": "Rome"}, ctx)


def test_the_schema_says_what_the_hints_and_the_docstring_say() -> None:
    @tool
    def find(
        name: str,
        color: Color,
        mode: Literal["fast", "slow"] = "fast",
        most: Annotated[int, Field(ge=1, le=9, description="From the hint.")] = 3,
        tags: list[str] | None = None,
        *,
        exact: bool = False,
    ) -> str:
        """Find things
        by name.

        Not for the model.

        Args:
            name: What it is called,
                or a part of it.
            most (int): From the docstring.
            exact: No other case.

        Returns:
            name: nothing of this is read.
        """
        return name

    assert find.description == "Find things by name."
    assert find.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "color"],
        "properties": {
            "name": {"type": "string", "description": "What it is called, or a part of it."},
            "color": {"$ref": "#/$defs/Color"},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "most": {
                "type": "integer",
                "minimum": 1,
                "maximum": 9,
                "default": 3,
                "description": "From the hint.",
            },
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
            "exact": {"type": "boolean", "default": False, "description": "No other case."},
        },
        "$defs": {"Color": {"type": "string", "enum": ["red", "blue"]}},
    }


def test_titles_go_but_a_parameter_called_title_stays() -> None:
    @tool
    def save(title: str, address: Address) -> str:
        """Save."""
        return title

    assert set(save.input_schema["properties"]) == {"title", "address"}
    assert save.input_schema["$defs"]["Address"] == {
        "description": "Where somebody lives.",
        "type": "object",
        "required": ["title", "city"],
        "properties": {
            "title": {"type": "string"},
            "city": {"type": "string", "description": "Name of the city."},
        },
    }


def test_a_tool_without_parameters_takes_an_empty_object(ctx: ToolContext) -> None:
    @tool
    def ping() -> str:
        """Answer."""
        return "pong"

    assert ping.input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert ping.call_sync({}, ctx) == "pong"


def test_json_becomes_the_types_of_the_hints(ctx: ToolContext) -> None:
    @tool
    def take(
        day: date,
        at: Annotated[datetime, Strict()],
        price: Decimal,
        color: Color,
        address: Address,
        size: Size,
        pair: tuple[int, str],
        names: frozenset[str],
        raw: bytes,
    ) -> dict[str, Any]:
        """Take many types."""
        return locals()

    arguments = {
        "day": "2026-11-30",
        "at": "2026-11-30T10:00:00Z",
        "price": "1.10",
        "color": "red",
        "address": {"title": "Dr", "city": "Rome"},
        "size": {"width": 1},
        "pair": [1, "a"],
        "names": ["x"],
        "raw": "abc",
    }
    canonical_arguments(take.input_schema, arguments)
    got = take.call_sync(arguments, ctx)

    assert isinstance(got, dict)
    assert got["day"] == date(2026, 11, 30)
    assert got["at"].tzinfo is not None
    assert got["price"] == Decimal("1.10")
    assert got["color"] is Color.RED
    assert got["address"] == Address(title="Dr", city="Rome")
    assert got["size"] == Size(1, 2)
    assert (got["pair"], got["names"], got["raw"]) == ((1, "a"), frozenset({"x"}), b"abc")


@pytest.mark.parametrize(
    "name", ["schema", "json", "copy", "self", "cls", "model_config", "_x", "ctx"]
)
def test_a_parameter_may_have_any_name(name: str, ctx: ToolContext) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def f({name}: int) -> int:\n    'Go.'\n    return {name}", namespace)
    made = tool(namespace["f"])

    assert list(made.input_schema["properties"]) == [name]
    assert made.call_sync({name: 4}, ctx) == 4


@pytest.mark.parametrize("name", ["ctx", "context", "anything"])
def test_the_context_is_known_by_its_hint_and_never_shown(name: str, ctx: ToolContext) -> None:
    namespace: dict[str, Any] = {"ToolContext": ToolContext}
    exec(
        f"def f({name}: ToolContext, n: int = 1) -> str:\n    'Go.'\n    return {name}.call_id",
        namespace,
    )
    made = tool(namespace["f"])

    assert list(made.input_schema["properties"]) == ["n"]
    assert made.call_sync({}, ctx) == "c:1"


def test_a_model_cannot_give_the_context(ctx: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="ctx: Unexpected keyword argument"):
        drop.bind({"table": "t", "ctx": {"call_id": "mine"}}, ctx)


@pytest.mark.parametrize(
    "arguments", [{}, {"city": 3}, {"city": "x", "more": 1}, {"city": None}, {"city": "\ud800"}]
)
def test_arguments_that_do_not_fit_are_a_failed_call(
    arguments: dict[str, Any], ctx: ToolContext
) -> None:
    with pytest.raises(ToolFailed, match="the arguments do not fit: "):
        plain.call_sync(arguments, ctx)


def test_a_tools_own_validation_error_is_not_taken_for_bad_arguments(ctx: ToolContext) -> None:
    @tool
    def parse() -> str:
        """Parse."""
        Address.model_validate({})
        return ""

    with pytest.raises(PydanticError):
        parse.call_sync({}, ctx)


def test_a_default_is_not_shared_between_calls(ctx: ToolContext) -> None:
    @tool
    def add(names: list[str] = []) -> int:  # noqa: B006  # the very thing under test
        """Add one."""
        names.append("x")
        return len(names)

    assert [add.call_sync({}, ctx), add.call_sync({}, ctx)] == [1, 1]


def test_a_set_default_has_one_order_in_every_process() -> None:
    @tool
    def pick(names: frozenset[str] = frozenset("qwertyuiop")) -> str:
        """Pick."""
        return ""

    assert pick.input_schema["properties"]["names"]["default"] == sorted("qwertyuiop")


def test_defaults_are_kept_in_their_json_form() -> None:
    small = Size(3)

    @tool
    def ask(day: date = date(2026, 1, 2), color: Color = Color.BLUE, size: Size = small) -> str:
        """Ask."""
        return ""

    properties = ask.input_schema["properties"]
    assert [p["default"] for p in properties.values()] == [
        "2026-01-02",
        "blue",
        {"width": 3, "height": 2},
    ]
    canonical_arguments(ask.input_schema, {})
    canonical_json(dict(ask.input_schema))


def test_hints_written_as_text_are_resolved() -> None:
    assert list(deferred_hints.later.input_schema["properties"]) == ["thing"]


def no_docstring(x: int) -> int:
    return x


def blank_docstring(x: int) -> int:
    """ """
    return x


def only_args(x: int) -> int:
    """
    Args:
        x: A number.
    """
    return x


def no_hint(x) -> int:  # type: ignore[no-untyped-def]
    """Go."""
    return 1


def any_values(*values: int) -> int:
    """Go."""
    return 1


def any_names(**names: int) -> int:
    """Go."""
    return 1


def positional(x: int, /) -> int:
    """Go."""
    return x


def unknown_type(x: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821
    """Go."""
    return 1


def a_callable(x: Callable[[int], int]) -> int:
    """Go."""
    return 1


class Opaque:
    pass


def a_class_of_its_own(x: Opaque) -> int:
    """Go."""
    return 1


def two_contexts(a: ToolContext, b: ToolContext) -> int:
    """Go."""
    return 1


def maybe_context(a: ToolContext | None = None) -> int:
    """Go."""
    return 1


def wrong_default(x: str = None) -> int:  # type: ignore[assignment]  # noqa: RUF013
    """Go."""
    return 1


def wrong_bound(x: Annotated[int, Field(ge=5)] = 1) -> int:
    """Go."""
    return 1


NOT_JSON = object()


def lost_default(x: Any = NOT_JSON) -> int:
    """Go."""
    return 1


def not_finite(x: float = float("nan")) -> int:
    """Go."""
    return 1


def größe(größe: int) -> int:
    """Go."""
    return 1


def long_parameter(größe: int) -> int:
    """Go."""
    return 1


def yields() -> Iterator[int]:
    """Go."""
    yield 1


async def yields_async() -> AsyncIterator[int]:
    """Go."""
    yield 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_docstring, "has no docstring; write what it does"),
        (blank_docstring, "has no docstring"),
        (only_args, "has no docstring"),
        (no_hint, "parameter 'x' has no type hint; write one, such as 'x: str'"),
        (any_values, "parameter 'values' takes any number of values; declare a list"),
        (any_names, "parameter 'names' takes any names; declare each parameter"),
        (positional, "parameter 'x' is positional-only; remove the '/'"),
        (unknown_type, "a type hint cannot be resolved (NameError: name 'Missing'"),
        (a_callable, "Cannot generate a JsonSchema"),
        (a_class_of_its_own, "pydantic cannot read its type hints: Unable to generate"),
        (two_contexts, "keep one of the ToolContext parameters ['a', 'b']"),
        (maybe_context, "write the context's parameter as 'a: ToolContext'"),
        (wrong_default, "the default None of parameter 'x' does not fit its type hint"),
        (wrong_bound, "the default 1 of parameter 'x' does not fit its type hint"),
        (lost_default, "is not JSON serializable"),
        (not_finite, "not JSON compliant"),
        (größe, "'größe' is no name for a tool; write name=\"...\" with 1 to 64"),
        (long_parameter, "parameter 'größe' cannot be sent to a model"),
        (yields, "yields; return one value, such as a list"),
        (yields_async, "yields; return one value"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_by_name(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(InvalidTool) as refused:
        tool(function)

    assert f"tool function {function.__qualname__!r}" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (plain, "'plain' is a tool already"),
        (3, "@tool takes a function, not 3"),
        (Address, "@tool takes a function"),
        (len, "@tool takes a function"),
        (staticmethod(no_docstring), "@tool takes a function"),
        (lambda: 1, "'<lambda>' is no name for a tool"),
    ],
)
def test_what_is_no_function_is_refused(thing: Any, said: str) -> None:
    with pytest.raises(InvalidTool, match=said):
        tool(thing)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"effect": "delete"}, "effect 'delete' does not exist; write read, write or destructive"),
        ({"effect": None}, "effect None does not exist"),
        ({"name": "get.weather"}, "'get.weather' is no name for a tool"),
        ({"name": ""}, "'' is no name for a tool"),
        ({"version": " "}, "version must be a text"),
        ({"timeout_s": 0}, "timeout_s must be a number of seconds over 0"),
        ({"timeout_s": float("inf")}, "timeout_s must be"),
        ({"timeout_s": "3"}, "timeout_s must be"),
        ({"timeout_s": True}, "timeout_s must be"),
        ({"name": 7}, "7 is no name for a tool"),
        ({"version": 2}, "version must be a text"),
        ({"version": lambda: "1"}, "version must be a text"),
        ({"idempotent": "no"}, "idempotent must be True or False, not 'no'"),
        ({"idempotent": lambda: False}, "idempotent must be True or False"),
        ({"needs_approval": "no"}, "needs_approval must be True or False, not 'no'"),
        ({"needs_approval": None}, "needs_approval must be True or False, not None"),
    ],
)
def test_a_bad_declaration_is_refused(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidTool, match=said):
        tool(**keywords)(only_good)


def only_good(x: int) -> int:
    """Go."""
    return x


def test_the_data_folder_is_made_on_first_use_for_one_user_alone(ctx: ToolContext) -> None:
    folder = ctx._data_dir
    assert not folder.exists()

    assert ctx.data_dir == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert ctx.data_dir == folder


def test_a_data_folder_that_cannot_be_made_names_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    context = ToolContext(
        idempotency_key="k",
        conversation_id="c",
        call_id="c:1",
        attempt=1,
        data_dir=tmp_path / "file" / "data",
    )

    with pytest.raises(OSError, match="file/data"):
        _ = context.data_dir


def test_a_package_takes_only_tools() -> None:
    with pytest.raises(InvalidTool, match="is no tool; decorate the function with @tool"):
        ToolPackage([plain, only_good])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        (
            Size,
            {
                "type": "object",
                "required": ["width"],
                "additionalProperties": False,
                "properties": {
                    "width": {"type": "integer"},
                    "height": {"type": "integer", "default": 2},
                },
            },
        ),
        (
            {"type": "object", "title": "kept as it is"},
            {"type": "object", "title": "kept as it is"},
        ),
    ],
)
def test_a_packages_config_has_the_schema_of_its_type_or_the_one_given(
    config: Any, schema: dict[str, Any]
) -> None:
    assert ToolPackage([plain], config=config).config_schema == schema


@pytest.mark.parametrize("config", [int, {"type": "string"}, {}, Tool, {"default": float("nan")}])
def test_a_config_that_is_no_object_is_refused(config: Any) -> None:
    with pytest.raises(InvalidTool, match="config of the tool package"):
        ToolPackage([plain], config=config)


def test_importing_the_api_is_light() -> None:
    code = (
        "import sys\nfrom capuchin_yaml.tools.api import tool\n"
        "heavy = ('pydantic', 'asyncio', 'temporalio', 'jsonschema')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
