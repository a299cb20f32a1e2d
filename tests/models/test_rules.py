"""Each rule of the provider refuses what breaks it, and says where."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.models.rules import check_request

Body = dict[str, Any]


def good() -> Body:
    """A request that uses everything there is."""
    return {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "t-1", "description": "d", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": "s"},
                    {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "a", "name": "t-1", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "t-1", "input": {"cache_control": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True},
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [{"type": "text", "text": "y"}],
                    },
                    {"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
    }


def blocks(body: Body, message: int) -> list[Any]:
    """The content blocks of one message."""
    found = body["messages"][message]["content"]
    assert isinstance(found, list)
    return found


def put(*path: str | int, value: Any) -> Callable[[Body], None]:
    """A change of one place."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[Body], None]:
    """The removal of one place."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]

    return change


def move(message: int, start: int, end: int) -> Callable[[Body], None]:
    """The move of one block of a message."""

    def change(body: Body) -> None:
        blocks(body, message).insert(end, blocks(body, message).pop(start))

    return change


def once_more(body: Body) -> None:
    """The talk again, with the same ids."""
    body["messages"] += [
        {"role": "assistant", "content": "ok"},
        *copy.deepcopy(body["messages"]),
    ]


def test_a_request_that_obeys_every_rule_passes() -> None:
    check_request(good())
    check_request({**good(), "system": "plain", "stream": True})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (put("bogus", value=1), "bogus: no such field"),
        (put("model", value=" "), "model: a name is required"),
        (put("max_tokens", value=0), "max_tokens: must be an integer of at least 1, not 0"),
        (put("max_tokens", value=True), "max_tokens: must be an integer of at least 1, not True"),
        (drop("max_tokens"), "max_tokens: must be"),
        (put("system", value=" "), "system: text must contain something other than white space"),
        (put("system", value=[]), "system: must be text or a list"),
        (put("system", 0, "text", value=""), "system.0.text: text must contain something"),
        (put("tools", 0, "name", value="a.b"), "tools.0.name: 'a.b' does not match"),
        (put("tools", 0, "name", value="x" * 65), "does not match ^[a-zA-Z0-9_-]{1,64}$"),
        (put("tools", 0, "name", value="x\n"), "tools.0.name: 'x\\n' does not match"),
        (put("tools", value=good()["tools"] * 2), "tool names must be unique, and 't-1'"),
        (drop("tools", 0, "input_schema"), "tools.0.input_schema: must be a JSON Schema"),
        (put("tools", 0, "input_schema", value={"type": "string"}), "must be a JSON Schema"),
        (put("tools", 0, "input_schema", "oneOf", value=[]), "oneOf is not allowed at the top"),
        (put("messages", value=[]), "messages: at least one message is required"),
        (drop("messages"), "messages: at least one message is required"),
        (put("messages", 0, "name", value="x"), "messages.0: must be an object with role and"),
        (put("messages", 0, "role", value="assistant"), "messages.0.role: roles must alternate"),
        (put("messages", 0, "role", value="system"), "wanted 'user', got 'system'"),
        (drop("messages", 0), "messages.0.role: roles must alternate and start with user"),
        (drop("messages", 1), "messages.1.role: roles must alternate"),
        (drop("messages", 2), "messages.1: the conversation must end with a user message"),
        (put("messages", 0, "content", value=[]), "messages.0.content: must be text or a list"),
        (put("messages", 0, "content", value="\n "), "messages.0: text must contain something"),
        (put("messages", 1, "content", 1, "text", value=" "), "messages.1.content.1.text: text"),
        (put("messages", 1, "content", 1, "type", value="image"), "'image' is not allowed here"),
        (put("messages", 1, "content", 1, "bogus", value=1), "text has no field 'bogus'"),
        (drop("messages", 1, "content", 0, "signature"), "thinking needs signature"),
        (move(1, 0, 3), "messages.1: the final block of an assistant message cannot be thinking"),
        (put("messages", 1, "content", 2, "input", value=""), "input: must be an object, not ''"),
        (put("messages", 1, "content", 2, "input", value=[]), "input: must be an object, not []"),
        (put("messages", 1, "content", 2, "id", value=""), "id: '' does not match"),
        (put("messages", 1, "content", 2, "id", value="b"), "tool_use ids must be unique"),
        (put("messages", 1, "content", 2, "name", value="a b"), "name: 'a b' does not match"),
        (drop("messages", 2, "content", 1), "without a tool_result immediately after: b"),
        (put("messages", 2, "content", value="hm"), "tool_result immediately after: a, b"),
        (move(2, 0, 1), "messages.2: results must be in call order: a, b"),
        (move(2, 2, 0), "messages.2.content.1: tool_result blocks must come before any text"),
        (move(2, 1, 2), "messages.2.content.2: tool_result blocks must come before any text"),
        (put("messages", 2, "content", 1, "tool_use_id", value="a"), "'a' is answered twice"),
        (put("messages", 2, "content", 1, "tool_use_id", value="z"), "unexpected tool_use_id 'z'"),
        (put("messages", 2, "content", 0, "content", value=" "), "content.0.content: text must"),
        (put("messages", 2, "content", 0, "content", value=[]), "must be text or a list of blocks"),
        (put("messages", 2, "content", 0, "is_error", value="no"), "must be true or false"),
        (once_more, "messages.5.content.2.id: tool_use ids must be unique, and 'a' was used"),
        (
            put("messages", 1, "content", 1, "cache_control", value={"type": "x"}),
            'its type must be "ephemeral"',
        ),
        (put("messages", 0, "content", value="\ud800"), "is not valid UTF-8"),
        (
            put("messages", 1, "content", 2, "input", value={"a": float("nan")}),
            "body: is not valid JSON",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_place(
    change: Callable[[Body], None], sentence: str
) -> None:
    body = good()
    change(body)

    with pytest.raises(ModelRejected) as refused:
        check_request(body)

    assert sentence in str(refused.value)


def test_more_than_four_cache_marks_are_refused() -> None:
    body = good()
    body["system"] *= 4

    with pytest.raises(ModelRejected, match="at most 4 blocks may have it, not 5"):
        check_request(body)
