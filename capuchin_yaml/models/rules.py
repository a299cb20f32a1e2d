"""The provider's rules for a request, checked on the JSON that would be sent.

Written apart from `dialogue`, which obeys them, so that one can prove the other.
Source: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.spec import JsonValue

_NAME = re.compile(r"\A[a-zA-Z0-9_-]{1,64}\Z")
_ID = re.compile(r"\A[a-zA-Z0-9_-]{1,64}\Z")
_TOP_KEYS = frozenset(
    {
        "model",
        "max_tokens",
        "messages",
        "system",
        "temperature",
        "tools",
        "tool_choice",
        "stream",
        "thinking",
    }
)
_USER_BLOCKS = frozenset({"text", "tool_result"})
_ASSISTANT_BLOCKS = frozenset({"text", "tool_use", "thinking", "redacted_thinking"})
_BLOCK_KEYS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    # type: (required, optional)
    "text": (frozenset({"text"}), frozenset({"cache_control"})),
    "tool_use": (frozenset({"id", "name", "input"}), frozenset({"cache_control"})),
    "tool_result": (
        frozenset({"tool_use_id", "content"}),
        frozenset({"is_error", "cache_control"}),
    ),
    "thinking": (frozenset({"thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"data"}), frozenset()),
}
_MAX_CACHE_MARKS = 4


def check_request(body: Mapping[str, JsonValue]) -> None:
    """Check one request body against every rule that the provider would refuse it for.

    Raises:
        ModelRejected: the first broken rule, with its place, as a sentence.
    """
    for key in sorted(body.keys() - _TOP_KEYS):
        _refuse(key, "no such field")
    model, max_tokens = body.get("model"), body.get("max_tokens")
    if not isinstance(model, str) or not model.strip():
        _refuse("model", "a name is required")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        _refuse("max_tokens", f"must be an integer of at least 1, not {max_tokens!r}")
    _check_sampling(body, max_tokens)
    if "system" in body:
        _check_system(body["system"])
    _check_tools(body.get("tools", []))
    _check_messages(body.get("messages"))
    _check_cache_marks(body)
    _check_json(body)


def _check_sampling(body: Mapping[str, JsonValue], max_tokens: int) -> None:
    temperature, thinking = body.get("temperature"), body.get("thinking")
    if temperature is not None and not 0 <= temperature <= 1:
        _refuse("temperature", f"must be from 0 to 1, not {temperature!r}")
    if thinking is None:
        return
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or not isinstance(budget, int):
        _refuse("thinking", "must be enabled with budget_tokens")
    if budget < 1024 or budget >= max_tokens:
        _refuse("thinking.budget_tokens", "must be at least 1024 and less than max_tokens")
    if temperature is not None and temperature != 1:
        _refuse("temperature", "may only be 1 when thinking is enabled")


def _check_system(system: JsonValue) -> None:
    if isinstance(system, str):
        _check_text("system", system)
        return
    if not isinstance(system, list) or not system:
        _refuse("system", "must be text or a list of text blocks that is not empty")
    for i, block in enumerate(system):
        _check_block(f"system.{i}", block, frozenset({"text"}))


def _check_tools(tools: JsonValue) -> None:
    if not isinstance(tools, list):
        _refuse("tools", "must be a list")
    seen: set[str] = set()
    for i, tool in enumerate(tools):
        at = f"tools.{i}"
        if not isinstance(tool, dict):
            _refuse(at, "must be an object")
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.match(name):
            _refuse(f"{at}.name", f"{name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$")
        if name in seen:
            _refuse(f"{at}.name", f"tool names must be unique, and {name!r} is there twice")
        seen.add(name)
        if not isinstance(tool.get("description", ""), str):
            _refuse(f"{at}.description", "must be text")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            _refuse(f"{at}.input_schema", 'must be a JSON Schema whose type is "object"')
        for word in ("oneOf", "allOf", "anyOf"):
            if word in schema:
                _refuse(f"{at}.input_schema", f"{word} is not allowed at the top of the schema")


def _check_messages(messages: JsonValue) -> None:
    if not isinstance(messages, list) or not messages:
        _refuse("messages", "at least one message is required")
    ids: set[str] = set()
    open_calls: list[str] = []
    for i, message in enumerate(messages):
        at = f"messages.{i}"
        if not isinstance(message, dict) or message.keys() != {"role", "content"}:
            _refuse(at, "must be an object with role and content and nothing else")
        wanted = ("user", "assistant")[i % 2]
        if message["role"] != wanted:
            _refuse(
                f"{at}.role",
                f"roles must alternate and start with user: wanted {wanted!r}, "
                f"got {message['role']!r}",
            )
        blocks = _blocks(at, message["content"])
        if wanted == "user":
            _check_results(at, blocks, open_calls)
            open_calls = []
        else:
            open_calls = _check_calls(at, blocks, ids)
    if len(messages) % 2 == 0:
        _refuse(f"messages.{len(messages) - 1}", "the conversation must end with a user message")


def _blocks(at: str, content: JsonValue) -> Sequence[Mapping[str, JsonValue]]:
    if isinstance(content, str):
        _check_text(at, content)
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        _refuse(f"{at}.content", "must be text or a list of blocks that is not empty")
    return content


def _check_results(
    at: str, blocks: Sequence[Mapping[str, JsonValue]], open_calls: Sequence[str]
) -> None:
    """One result for each call of the message before, first and in call order; then text."""
    answered: list[str] = []
    text_at: int | None = None
    for j, block in enumerate(blocks):
        here = f"{at}.content.{j}"
        _check_block(here, block, _USER_BLOCKS)
        if block["type"] == "text":
            text_at = j if text_at is None else text_at
            continue
        id = block["tool_use_id"]
        if id not in open_calls:
            _refuse(
                here,
                f"unexpected tool_use_id {id!r}: each tool_result must have its tool_use "
                "in the message before",
            )
        if id in answered:
            _refuse(here, f"the call {id!r} is answered twice")
        if text_at is not None:
            _refuse(here, "tool_result blocks must come before any text")
        answered.append(id)
    missing = [id for id in open_calls if id not in answered]
    if missing:
        _refuse(
            at,
            f"tool_use ids without a tool_result immediately after: {', '.join(missing)}",
        )
    if answered != list(open_calls):
        _refuse(at, f"results must be in call order: {', '.join(open_calls)}")


def _check_calls(at: str, blocks: Sequence[Mapping[str, JsonValue]], ids: set[str]) -> list[str]:
    calls: list[str] = []
    for j, block in enumerate(blocks):
        here = f"{at}.content.{j}"
        _check_block(here, block, _ASSISTANT_BLOCKS)
        if block["type"] != "tool_use":
            continue
        id, name = block["id"], block["name"]
        if not isinstance(id, str) or not _ID.match(id):
            _refuse(f"{here}.id", f"{id!r} does not match ^[a-zA-Z0-9_-]+$")
        if id in ids:
            _refuse(f"{here}.id", f"tool_use ids must be unique, and {id!r} was used before")
        if not isinstance(name, str) or not _NAME.match(name):
            _refuse(f"{here}.name", f"{name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$")
        if not isinstance(block["input"], dict):
            _refuse(f"{here}.input", f"must be an object, not {block['input']!r}")
        ids.add(id)
        calls.append(id)
    if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        _refuse(at, f"the final block of an assistant message cannot be {blocks[-1]['type']}")
    return calls


def _check_block(at: str, block: JsonValue, allowed: frozenset[str]) -> None:
    if not isinstance(block, dict):
        _refuse(at, "must be an object")
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in allowed:
        _refuse(
            f"{at}.type", f"{kind!r} is not allowed here; allowed: {', '.join(sorted(allowed))}"
        )
    required, optional = _BLOCK_KEYS[kind]
    for key in sorted(required - block.keys()):
        _refuse(at, f"{kind} needs {key}")
    for key in sorted(block.keys() - required - optional - {"type"}):
        _refuse(at, f"{kind} has no field {key!r}")
    if kind == "text":
        _check_text(f"{at}.text", block["text"])
    if kind == "tool_result":
        if not isinstance(block.get("is_error", False), bool):
            _refuse(f"{at}.is_error", "must be true or false")
        content = block["content"]
        if isinstance(content, str):
            _check_text(f"{at}.content", content)
        elif isinstance(content, list) and content:
            for k, inner in enumerate(content):
                _check_block(f"{at}.content.{k}", inner, frozenset({"text"}))
        else:
            _refuse(f"{at}.content", "must be text or a list of blocks that is not empty")


def _check_text(at: str, text: JsonValue) -> None:
    if not isinstance(text, str):
        _refuse(at, f"must be text, not {text!r}")
    if not text.strip():
        _refuse(at, "text must contain something other than white space")


def _check_cache_marks(body: Mapping[str, JsonValue]) -> None:
    marks = _marks(body)
    if len(marks) > _MAX_CACHE_MARKS:
        _refuse("cache_control", f"at most {_MAX_CACHE_MARKS} blocks may have it, not {len(marks)}")
    for mark in marks:
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
            _refuse("cache_control", 'its type must be "ephemeral"')


def _marks(value: JsonValue) -> list[JsonValue]:
    """Every cache_control of blocks; tool inputs and schemas may hold a key of that name."""
    if isinstance(value, list):
        return [mark for item in value for mark in _marks(item)]
    if not isinstance(value, dict):
        return []
    found = [value["cache_control"]] if "cache_control" in value else []
    for key, inner in value.items():
        if key not in ("input", "input_schema", "cache_control"):
            found += _marks(inner)
    return found


def _check_json(body: Mapping[str, JsonValue]) -> None:
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        _refuse("body", "is not valid UTF-8: a text holds half of a character")
    except (ValueError, TypeError, RecursionError) as error:
        _refuse("body", f"is not valid JSON: {error}")


def _refuse(at: str, sentence: str) -> NoReturn:
    raise ModelRejected(f"invalid request: {at}: {sentence}")
