"""A tool and a package of tools, as their author declares them."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args, overload

from capuchin_yaml.errors import InvalidTool
from capuchin_yaml.spec import Effect, JsonValue
from capuchin_yaml.tools.context import ToolContext
from capuchin_yaml.tools.docstring import read_docstring

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes as the name of a tool."""
TOOL_NAME_IN_WORDS = "1 to 64 of a-z, A-Z, 0-9, '_' and '-'"


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that a model may ask for. Calling it calls the function itself."""

    name: str
    """The part of the identity after the dot."""
    description: str
    input_schema: Mapping[str, JsonValue]
    effect: Effect
    idempotent: bool
    needs_approval: bool
    version: str
    """The author's own; raise it when the same arguments come to mean something else."""
    timeout_s: float | None
    """Longest run of one call; None leaves it to the agent's file."""
    is_async: bool
    function: Callable[..., Any]
    bind: Callable[[Mapping[str, JsonValue], ToolContext], dict[str, object]]
    """Typed keyword arguments of the function; ToolFailed when the arguments do not fit."""
    preview: Tool | None = None
    """Shows what a call would do; a `read` tool of the same parameters, known only in here."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as if it were undecorated."""
        return self.function(*args, **kwargs)

    def call_sync(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> object:
        """Run a sync tool with JSON arguments and return what it returned.

        Raises:
            ToolFailed: the arguments do not fit, or the tool says so; whatever else it raises.
        """
        if self.is_async:
            raise TypeError(f"tool {self.name!r} is async; await call_async")
        return self.function(**self.bind(arguments, context))

    async def call_async(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> object:
        """Run an async tool with JSON arguments and return what it returned.

        Raises:
            ToolFailed: the arguments do not fit, or the tool says so; whatever else it raises.
        """
        if not self.is_async:
            raise TypeError(f"tool {self.name!r} is not async; use call_sync")
        value: object = await self.function(**self.bind(arguments, context))
        return value


class ToolPackage:
    """What an entry point of the group `capuchin.tools` exposes: tools, and their config."""

    __slots__ = ("config_schema", "tools")

    tools: tuple[Tool, ...]
    config_schema: Mapping[str, JsonValue] | None
    """JSON Schema of `config` in an agent's file; None when the package takes none."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        config: type | Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Join tools to a package.

        `config` is a JSON Schema of an object, or a type that has one: a pydantic model
        or a dataclass. Tools read the values from `ToolContext.config`.

        Raises:
            InvalidTool: something in `tools` is no tool, or `config` is no schema of an object.
        """
        for found in tools:
            if not isinstance(found, Tool):
                raise InvalidTool(f"{found!r} is no tool; decorate the function with @tool")
        self.tools = tuple(tools)
        self.config_schema = None
        if config is not None:
            from capuchin_yaml.tools.schema import schema_of

            self.config_schema = schema_of(config, "config of the tool package")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    needs_approval: bool = False,
    version: str = "1",
    name: str | None = None,
    timeout_s: float | None = None,
    preview: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    needs_approval: bool = False,
    version: str = "1",
    name: str | None = None,
    timeout_s: float | None = None,
    preview: Callable[..., Any] | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function, sync or async, with a docstring.

    The first paragraph of the docstring is what the model reads of the tool, the lines of its
    `Args:` section what it reads of each parameter. A parameter annotated `ToolContext` is
    filled in by the house and never shown to the model. What is not declared counts as the
    worst: a tool writes, and may not be run twice for one call.

    Args:
        function: the function, when the decorator is used bare.
        effect: `read` changes nothing and sends its arguments only to places fixed by
            configuration; `write`; `destructive` for what cannot be taken back.
        idempotent: running the same call twice is the same as running it once.
        needs_approval: a person is asked before every call, whatever an agent's file says.
        version: the author's own, part of what an approval is bound to.
        name: the part of the identity after the dot; the function's name by default.
        timeout_s: longest run of one call in seconds, when the agent's file names none.
        preview: a function of the same parameters that changes nothing and says what a call
            would do; it runs before a person is asked, and its text is shown with the question.

    Raises:
        InvalidTool: the function cannot be a tool; the text says what to write.
    """
    declare = functools.partial(
        _declared,
        effect=effect,
        idempotent=idempotent,
        needs_approval=needs_approval,
        version=version,
        name=name,
        timeout_s=timeout_s,
        preview=preview,
    )
    return declare if function is None else declare(function)


def _declared(
    function: Callable[..., Any],
    *,
    effect: Effect,
    idempotent: bool,
    needs_approval: bool,
    version: str,
    name: str | None,
    timeout_s: float | None,
    preview: Callable[..., Any] | None,
) -> Tool:
    _check_function(function)
    where = f"tool function {function.__qualname__!r}"
    tool_name = function.__name__ if name is None else name
    if not _is_text(tool_name) or not TOOL_NAME.fullmatch(tool_name):
        raise InvalidTool(
            f"{where}: {tool_name!r} is no name for a tool; "
            f'write name="..." with {TOOL_NAME_IN_WORDS}'
        )
    if effect not in get_args(Effect):
        raise InvalidTool(
            f"{where}: effect {effect!r} does not exist; write read, write or destructive"
        )
    for keyword, flag in (("idempotent", idempotent), ("needs_approval", needs_approval)):
        # Why so strict: a text such as "no" counts as true, and a write would be repeated.
        if not isinstance(flag, bool):
            raise InvalidTool(f"{where}: {keyword} must be True or False, not {flag!r}")
    if not _is_text(version) or not version.strip():
        raise InvalidTool(f'{where}: version must be a text, such as version="1"')
    if timeout_s is not None and not _is_duration(timeout_s):
        raise InvalidTool(f"{where}: timeout_s must be a number of seconds over 0")
    docstring = read_docstring(function.__doc__)
    if not docstring.description:
        raise InvalidTool(
            f"{where} has no docstring; write what it does, the model reads it to choose the tool"
        )

    from capuchin_yaml.tools.schema import Parameters

    parameters = Parameters(function, docstring.parameters)
    return Tool(
        name=tool_name,
        description=docstring.description,
        input_schema=parameters.schema,
        effect=effect,
        idempotent=idempotent,
        needs_approval=needs_approval,
        version=version,
        timeout_s=None if timeout_s is None else float(timeout_s),
        is_async=inspect.iscoroutinefunction(function),
        function=function,
        bind=parameters.bind,
        preview=None
        if preview is None
        else _declared_preview(preview, tool_name, parameters.schema),
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_duration(seconds: object) -> bool:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return is_number and math.isfinite(cast(float, seconds)) and cast(float, seconds) > 0


def _declared_preview(
    function: Callable[..., Any], name: str, schema: Mapping[str, JsonValue]
) -> Tool:
    from capuchin_yaml.tools.schema import Parameters

    _check_function(function)
    parameters = Parameters(function, {})
    taken, wanted = (sorted(s["properties"]) for s in (parameters.schema, schema))
    if taken != wanted:
        raise InvalidTool(
            f"preview function {function.__qualname__!r} takes {', '.join(taken) or 'nothing'}; "
            f"give it the parameters of the tool {name!r}: {', '.join(wanted) or 'none'}"
        )
    return Tool(
        name=name,
        description="",
        input_schema=parameters.schema,
        effect="read",
        idempotent=True,
        needs_approval=False,
        version="1",
        timeout_s=None,
        is_async=inspect.iscoroutinefunction(function),
        function=function,
        bind=parameters.bind,
    )


def _check_function(function: object) -> None:
    if isinstance(function, Tool):
        raise InvalidTool(f"{function.name!r} is a tool already; decorate it once")
    if not inspect.isfunction(function):
        raise InvalidTool(f"@tool takes a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTool(
            f"tool function {cast(Any, function).__qualname__!r} yields; "
            "return one value, such as a list"
        )
