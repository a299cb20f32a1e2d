"""The transcript: what was said, asked of tools and answered, as JSON objects with `kind`.

Entries cross process borders as plain dicts (a typed union costs 50 times more to decode);
the classes here are for the edges, where people and adapters read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from capuchin_yaml.spec import JsonValue

ResultStatus: TypeAlias = Literal[
    "ok", "error", "denied", "expired", "cancelled", "invalid", "unknown", "skipped"
]
"""How a call ended: `error` the tool failed, `denied` by a person or rule, `expired` nobody
decided in time, `invalid` it never made sense, `unknown` it may or may not have happened,
`skipped` it was not tried (a limit, or a reply that was cut off)."""

StopReason: TypeAlias = Literal["end_turn", "tool_use", "max_tokens", "refusal"]

Entry: TypeAlias = dict[str, JsonValue]
"""One transcript entry in its JSON form."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Words of the model."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A tool call the model asked for."""

    call_id: str
    """Ours, `<conversation>:<n>`; never the provider's."""
    tool: str
    """The name as the model wrote it: an alias, if it exists at all."""
    input: Mapping[str, JsonValue]
    """The model's arguments; `{}` when what it wrote was no JSON object."""
    problem: str | None = None
    """Why the arguments cannot be used, when they were no JSON object."""


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """A provider's own block (such as signed thinking) that goes back to it unread."""

    provider: str
    data: Mapping[str, JsonValue]


Block: TypeAlias = TextBlock | CallBlock | OpaqueBlock


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A person's or program's words."""

    id: str
    text: str
    by: str
    at: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply of the model, blocks in its order."""

    blocks: tuple[Block, ...]
    stop_reason: StopReason
    model: str
    """`provider:name` that wrote it."""

    @property
    def text(self) -> str:
        """The words alone, joined by newlines."""
        return "\n".join(b.text for b in self.blocks if isinstance(b, TextBlock))

    @property
    def calls(self) -> tuple[CallBlock, ...]:
        """The tool calls, in the model's order."""
        return tuple(b for b in self.blocks if isinstance(b, CallBlock))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call; `text` is never blank."""

    call_id: str
    tool: str
    status: ResultStatus
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """What the house tells the model, such as the settled outcome of an earlier call."""

    text: str


TranscriptEntry: TypeAlias = UserMessage | AssistantMessage | ToolResult | Note


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, in four classes that never overlap."""

    input_tokens: int = 0
    """Input that no cache served or stored."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool as a model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step's question to a model."""

    model: str
    """The name without the provider."""
    system: str
    entries: tuple[TranscriptEntry, ...]
    tools: tuple[ModelTool, ...] = ()
    max_tokens: int = 4096
    conversation: str = ""
    temperature: float | None = None
    thinking_tokens: int | None = None
    """Tokens of `max_tokens` to think with; None does not think."""


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A tool call as a provider sent it, before it has an id of ours."""

    tool: str
    input: JsonValue
    """Whatever the provider sent: an object when all is well."""


ReplyBlock: TypeAlias = TextBlock | ReplyCall | OpaqueBlock


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered; blank text blocks are allowed here and dropped by the caller."""

    blocks: tuple[ReplyBlock, ...]
    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)


def entry_from_json(value: Mapping[str, Any]) -> TranscriptEntry:
    """Read one transcript entry.

    Raises:
        ValueError: an unknown `kind`, or a field is missing.
    """
    try:
        match value["kind"]:
            case "user":
                return UserMessage(value["id"], value["text"], value["by"], value["at"])
            case "assistant":
                blocks = tuple(_block_from_json(b) for b in value["blocks"])
                return AssistantMessage(blocks, value["stop_reason"], value["model"])
            case "result":
                return ToolResult(value["call_id"], value["tool"], value["status"], value["text"])
            case "note":
                return Note(value["text"])
            case other:
                raise ValueError(f"transcript entry of unknown kind {other!r}")
    except KeyError as missing:
        raise ValueError(f"transcript entry without {missing}") from missing


def entry_to_json(entry: TranscriptEntry) -> Entry:
    """Write one transcript entry as plain JSON values."""
    match entry:
        case UserMessage(id, text, by, at):
            return {"kind": "user", "id": id, "text": text, "by": by, "at": at}
        case AssistantMessage(blocks, stop_reason, model):
            return {
                "kind": "assistant",
                "blocks": [_block_to_json(b) for b in blocks],
                "stop_reason": stop_reason,
                "model": model,
            }
        case ToolResult(call_id, tool, status, text):
            return {
                "kind": "result",
                "call_id": call_id,
                "tool": tool,
                "status": status,
                "text": text,
            }
        case Note(text):
            return {"kind": "note", "text": text}


def _block_from_json(value: Mapping[str, Any]) -> Block:
    match value["type"]:
        case "text":
            return TextBlock(value["text"])
        case "call":
            return CallBlock(value["call_id"], value["tool"], value["input"], value.get("problem"))
        case "opaque":
            return OpaqueBlock(value["provider"], value["data"])
        case other:
            raise ValueError(f"block of unknown type {other!r}")


def _block_to_json(block: Block) -> dict[str, JsonValue]:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case CallBlock(call_id, tool, input, problem):
            out: dict[str, JsonValue] = {
                "type": "call",
                "call_id": call_id,
                "tool": tool,
                "input": dict(input),
            }
            if problem is not None:
                out["problem"] = problem
            return out
        case OpaqueBlock(provider, data):
            return {"type": "opaque", "provider": provider, "data": dict(data)}
