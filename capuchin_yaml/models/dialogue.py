"""Turns of a transcript in the order every provider accepts, whatever happened meanwhile."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from capuchin_yaml.messages import (
    AssistantMessage,
    CallBlock,
    Note,
    OpaqueBlock,
    TextBlock,
    ToolResult,
    TranscriptEntry,
    UserMessage,
)
from capuchin_yaml.spec import JsonValue

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
UNKNOWN_TOOL = "unknown_tool"
"""Stands for a name that the model made up and that no provider would take back."""
GO_ON = "(go on)"
"""Said for the user where a provider wants a user turn and nobody said anything."""
NO_OUTPUT = "(no output)"
NO_RESULT = "(the result of this call was not recorded)"
_CALL_NUMBER = re.compile(r"[a-zA-Z0-9_-]{1,48}")


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words; never blank."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call of the model, under the id that its result names."""

    id: str
    tool: str
    input: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The one answer to one call; never blank."""

    id: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """A provider's own block, on its way back to that provider."""

    data: Mapping[str, JsonValue]


Part: TypeAlias = TextPart | CallPart | ResultPart | OpaquePart


@dataclass(frozen=True, slots=True)
class Turn:
    """All that one side said before the other side spoke."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]


def dialogue(entries: Iterable[TranscriptEntry], *, opaque_of: str = "") -> list[Turn]:
    """Turn a transcript into turns that alternate and that begin and end with the user.

    After an assistant turn with calls comes one user turn with exactly one result per call, first
    and in call order, then notes and messages. Blank text is left out. A result that has no open
    call (it came too late, or twice) is told as text, so nothing is lost.

    `opaque_of` is the `provider:name` that the turns go to: blocks that another model wrote for
    itself are left out.
    """
    turns: list[Turn] = []
    ids = _Ids()
    since = _UserSide()
    for entry in entries:
        match entry:
            case UserMessage(text=text) | Note(text=text):
                since.say(text)
            case ToolResult():
                since.take(entry)
            case AssistantMessage():
                parts, calls = _assistant_parts(entry, ids, opaque_of)
                if parts:
                    turns += [since.turn(), Turn("assistant", parts)]
                    since = _UserSide(calls)
    turns.append(since.turn())
    return turns


def well_formed(text: str) -> str:
    """The text as UTF-8 can hold it: halves of one character joined, lone halves replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass(slots=True)
class _UserSide:
    """What the user's side says between two assistant turns."""

    calls: Sequence[tuple[str, CallPart]] = ()
    """Our call id and the part, in call order."""
    results: dict[str, ToolResult] = field(default_factory=dict)
    """By the part's id."""
    texts: list[TextPart] = field(default_factory=list)

    def say(self, text: str) -> None:
        if text.strip():
            self.texts.append(TextPart(well_formed(text)))

    def take(self, result: ToolResult) -> None:
        for call_id, part in self.calls:
            if call_id == result.call_id and part.id not in self.results:
                self.results[part.id] = result
                return
        self.say(f"(result of an earlier call of {_tool_name(result.tool)}: {_shown(result.text)})")

    def turn(self) -> Turn:
        parts: list[Part] = [self._result(part) for _, part in self.calls]
        parts += self.texts
        return Turn("user", tuple(parts) or (TextPart(GO_ON),))

    def _result(self, part: CallPart) -> ResultPart:
        result = self.results.get(part.id)
        if result is None:
            return ResultPart(part.id, NO_RESULT, is_error=True)
        return ResultPart(part.id, _shown(result.text), is_error=result.status != "ok")


class _Ids:
    """Ids for a provider, made of ours and unique over the whole conversation."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, call_id: str) -> str:
        number = call_id.rpartition(":")[2]
        if not _CALL_NUMBER.fullmatch(number):
            number = "x"
        name, again = f"call_{number}", 1
        while name in self._used:
            again += 1
            name = f"call_{number}_{again}"
        self._used.add(name)
        return name


def _assistant_parts(
    message: AssistantMessage, ids: _Ids, opaque_of: str
) -> tuple[tuple[Part, ...], list[tuple[str, CallPart]]]:
    parts: list[Part] = []
    calls: list[tuple[str, CallPart]] = []
    for block in message.blocks:
        match block:
            case TextBlock(text):
                if text.strip():
                    parts.append(TextPart(well_formed(text)))
            case CallBlock(call_id, tool, input):
                call = CallPart(ids.of(call_id), _tool_name(tool), _object(input))
                calls.append((call_id, call))
                parts.append(call)
            case OpaqueBlock(provider, data):
                # Why: a block that another model signed is refused by the one that reads it.
                if message.model == opaque_of and provider == opaque_of.partition(":")[0]:
                    parts.append(OpaquePart(data))
    # Why: providers refuse an assistant turn that ends with thinking and says nothing after it.
    while parts and isinstance(parts[-1], OpaquePart):
        parts.pop()
    return tuple(parts), calls


def _tool_name(name: str) -> str:
    return name if TOOL_NAME.fullmatch(name) else UNKNOWN_TOOL


def _shown(text: str) -> str:
    return well_formed(text) if text.strip() else NO_OUTPUT


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    plain = _json(value)
    return plain if isinstance(plain, dict) else {}


def _json(value: JsonValue) -> JsonValue:
    """What JSON on the wire can hold of a value that a hostile model may have written."""
    match value:
        case str():
            return well_formed(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case None | bool() | int():
            return value
        case Mapping():
            return {well_formed(str(k)): _json(v) for k, v in value.items()}
        case list() | tuple():
            return [_json(v) for v in value]
        case _:
            return well_formed(str(value))
