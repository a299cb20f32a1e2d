"""Short ways to write transcripts and requests in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from capuchin_yaml.messages import (
    AssistantMessage,
    Block,
    CallBlock,
    ModelReply,
    ModelRequest,
    ModelTool,
    ReplyCall,
    ResultStatus,
    StopReason,
    TextBlock,
    ToolResult,
    TranscriptEntry,
    UserMessage,
)

CONVERSATION = "demo-1"
LOOKUP_ORDER = ModelTool(
    "lookup_order",
    "Look up an order by its id.",
    {
        "type": "object",
        "properties": {"order_id": {"type": "string", "description": "Such as A-1001."}},
        "required": ["order_id"],
        "additionalProperties": False,
    },
)
REFUND = ModelTool(
    "refund",
    "Refund an order, wholly or in part.",
    {
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "amount_cents": {"type": "integer", "minimum": 1},
            "currency": {"type": "string", "pattern": "^[A-Z]{3}$", "default": "USD"},
            "reason": {"type": "string", "default": ""},
        },
        "required": ["order_id", "amount_cents"],
        "additionalProperties": False,
    },
)
SHOP = (LOOKUP_ORDER, REFUND)


def user(text: str) -> UserMessage:
    """A user's message."""
    return UserMessage("m1", text, "ana", "2026-01-15T12:00:00Z")


def call(n: int | str, tool: str = "lookup_order", **arguments: Any) -> CallBlock:
    """A call that the house numbered."""
    return CallBlock(f"{CONVERSATION}:{n}", tool, arguments)


def assistant(*blocks: Block | str, model: str = "scripted:s.yaml") -> AssistantMessage:
    """A reply as the transcript keeps it; a plain text is a text block."""
    kept = tuple(TextBlock(b) if isinstance(b, str) else b for b in blocks)
    stop: StopReason = "tool_use" if any(isinstance(b, CallBlock) for b in kept) else "end_turn"
    return AssistantMessage(kept, stop, model)


def result(
    n: int | str, text: str = "fine", tool: str = "lookup_order", status: ResultStatus = "ok"
) -> ToolResult:
    """The result of a call."""
    return ToolResult(f"{CONVERSATION}:{n}", tool, status, text)


def request(
    *entries: TranscriptEntry,
    tools: Sequence[ModelTool] = SHOP,
    model: str = "test-model",
    system: str = "You help.",
    max_tokens: int = 1024,
) -> ModelRequest:
    """A request to a model."""
    return ModelRequest(model, system, tuple(entries), tuple(tools), max_tokens, CONVERSATION)


def kept(reply: ModelReply, first: int, model: str = "scripted:s.yaml") -> AssistantMessage:
    """The reply as the house would write it into the transcript."""
    blocks: list[Block] = []
    for block in reply.blocks:
        if isinstance(block, ReplyCall):
            given = block.input if isinstance(block.input, Mapping) else {}
            blocks.append(CallBlock(f"{CONVERSATION}:{first}", block.tool, given))
            first += 1
        else:
            blocks.append(block)
    return AssistantMessage(tuple(blocks), reply.stop_reason, model)


def text_of(reply: ModelReply) -> str:
    """All words of a reply."""
    return "".join(b.text for b in reply.blocks if isinstance(b, TextBlock))


def calls_of(reply: ModelReply) -> list[ReplyCall]:
    """All calls of a reply."""
    return [b for b in reply.blocks if isinstance(b, ReplyCall)]
