"""A model request as Anthropic's Messages API takes it, built without its SDK."""

from __future__ import annotations

from capuchin_yaml.messages import ModelRequest, ModelTool
from capuchin_yaml.models.dialogue import (
    CallPart,
    OpaquePart,
    Part,
    ResultPart,
    TextPart,
    Turn,
    dialogue,
    well_formed,
)
from capuchin_yaml.spec import JsonValue

_CACHED: dict[str, JsonValue] = {"type": "ephemeral"}


def request_body(request: ModelRequest, *, provider: str) -> dict[str, JsonValue]:
    """The JSON body of one request, without `stream`.

    Three places are marked for the provider's prompt cache: the system prompt (which stands behind
    the tools), the end of the request, and the end of the request before it.
    """
    turns = dialogue(request.entries, opaque_of=f"{provider}:{request.model}")
    body: dict[str, JsonValue] = {
        "model": request.model or provider,
        "max_tokens": request.max_tokens,
        "messages": [{"role": t.role, "content": [_block(p) for p in t.parts]} for t in turns],
    }
    if request.system.strip():
        body["system"] = [
            {"type": "text", "text": well_formed(request.system), "cache_control": _CACHED}
        ]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.thinking_tokens is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_tokens}
    if request.tools:
        body["tools"] = [_tool(t) for t in request.tools]
    _mark_for_cache(body["messages"], turns)
    return body


def _tool(tool: ModelTool) -> dict[str, JsonValue]:
    out: dict[str, JsonValue] = {"name": tool.name, "input_schema": dict(tool.input_schema)}
    if tool.description.strip():
        out["description"] = well_formed(tool.description)
    return out


def _mark_for_cache(messages: list[dict[str, JsonValue]], turns: list[Turn]) -> None:
    # Why: without marks every step pays for the whole talk again. The provider looks back only 20
    # blocks from a mark, so the end of the step before is marked too: it finds what that one wrote.
    # Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    ends = [i for i, turn in enumerate(turns) if turn.role == "user"][-2:]
    for i in ends:
        messages[i]["content"][-1]["cache_control"] = _CACHED


def _block(part: Part) -> dict[str, JsonValue]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case CallPart(id, tool, input):
            return {"type": "tool_use", "id": id, "name": tool, "input": dict(input)}
        case ResultPart(id, text, is_error):
            result: dict[str, JsonValue] = {
                "type": "tool_result",
                "tool_use_id": id,
                "content": text,
            }
            if is_error:
                result["is_error"] = True
            return result
        case OpaquePart(data):
            return dict(data)
