"""Our wire form, held against the official SDK's own types and marked for the prompt cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from capuchin_yaml.messages import ModelRequest, ModelTool, OpaqueBlock, TranscriptEntry
from capuchin_yaml.models.anthropic_wire import request_body
from tests.models.talk import SHOP, assistant, call, request, result, user
from tests.models.test_dialogue import CLAUDE, transcripts

TALK: tuple[TranscriptEntry, ...] = (
    user("I need a refund for order A-1001"),
    assistant(
        OpaqueBlock("anthropic", {"type": "thinking", "thinking": "hm", "signature": "s"}),
        "Looking.",
        call(1, order_id="A-1001"),
        call(2, "refund", order_id="A-1001", amount_cents=4999),
        model=CLAUDE,
    ),
    result(2, "Denied by ana", "refund", "denied"),
    result(1, '{"amount_cents": 4999}'),
    user("and now?"),
)


class UserOrAssistant(TypedDict):
    """A message; its blocks are checked one by one."""

    role: Literal["user", "assistant"]
    content: list[dict[str, Any]]


def strict(typed_dict: Any) -> TypeAdapter[Any]:
    """A check that allows no unknown field, on a subclass, so that the type stays as it is."""

    class Strict(typed_dict):  # type: ignore[misc]  # the base is a value here
        __pydantic_config__ = ConfigDict(extra="forbid")

    return TypeAdapter(Strict)


class SdkTypes:
    """The SDK's own parameter types, with unknown fields forbidden.

    Each block is checked against the one type that its `type` names: the SDK writes lists as
    `Iterable`, which pydantic checks lazily or, inside a union, not at all.
    """

    def __init__(self) -> None:
        from anthropic import types
        from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

        self._blocks = {
            "text": strict(types.TextBlockParam),
            "tool_use": strict(types.ToolUseBlockParam),
            "tool_result": strict(types.ToolResultBlockParam),
            "thinking": strict(types.ThinkingBlockParam),
            "redacted_thinking": strict(types.RedactedThinkingBlockParam),
        }
        self._message = strict(UserOrAssistant)
        self._mark = strict(types.CacheControlEphemeralParam)
        self._tool = strict(types.ToolParam)
        self._request = strict(MessageCreateParamsNonStreaming)

    def check(self, body: Mapping[str, Any]) -> None:
        """Raise ValidationError for anything that the types do not allow."""
        self._request.validate_python(body)
        for tool in body.get("tools", ()):
            self._tool.validate_python(tool)
        for block in body.get("system", ()):
            self._check_block(block)
        for message in body["messages"]:
            self._message.validate_python(message)
            for block in message["content"]:
                self._check_block(block)

    def _check_block(self, block: Mapping[str, Any]) -> None:
        self._blocks[block["type"]].validate_python(block)
        if "cache_control" in block:
            self._mark.validate_python(block["cache_control"])


@pytest.fixture(scope="module")
def sdk() -> SdkTypes:
    """The SDK's own types."""
    return SdkTypes()


def test_the_sdk_s_own_types_take_our_requests(sdk: SdkTypes) -> None:
    sdk.check(request_body(request(*TALK, model="claude-test"), provider="anthropic"))


@given(entries=transcripts())
@settings(max_examples=60, deadline=None)
def test_the_sdk_s_own_types_take_any_transcript(
    sdk: SdkTypes, entries: list[TranscriptEntry]
) -> None:
    asked = ModelRequest("claude-test", "", tuple(entries), SHOP)

    sdk.check(request_body(asked, provider="anthropic"))


@pytest.mark.parametrize(
    "spoil",
    [
        {"bogus": 1},
        {"max_tokens": "many"},
        {"messages": [{"role": "robot", "content": []}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "bogus": 1}]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}]},
        {"tools": [{"name": "x"}]},
        {"system": [{"type": "text", "text": "x", "cache_control": {"type": "x"}}]},
    ],
)
def test_the_strict_check_does_refuse_what_is_wrong(sdk: SdkTypes, spoil: dict[str, Any]) -> None:
    body = request_body(request(*TALK), provider="anthropic") | spoil

    with pytest.raises(ValidationError):
        sdk.check(body)


def marks(value: Any, path: str = "") -> Iterator[str]:
    """Where cache marks stand."""
    if isinstance(value, dict):
        if "cache_control" in value:
            yield path
        for key, inner in value.items():
            yield from marks(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from marks(inner, f"{path}.{i}")


def test_the_prompt_and_the_ends_of_this_and_the_last_request_are_marked() -> None:
    body = request_body(request(*TALK, model="claude-test"), provider="anthropic")

    assert list(marks(body)) == [
        ".messages.0.content.0",
        ".messages.2.content.2",
        ".system.0",
    ]


def test_the_end_marked_now_is_marked_as_the_earlier_one_next_time() -> None:
    now = list(marks(request_body(request(*TALK), provider="anthropic")["messages"]))
    more = (*TALK, assistant("Done."), user("thanks"))
    then = list(marks(request_body(request(*more), provider="anthropic")["messages"]))

    assert now[-1] in then


def test_a_tool_without_a_description_and_a_blank_prompt_are_left_out() -> None:
    bare = ModelTool("t", " ", {"type": "object"})
    body = request_body(request(user("hi"), tools=[bare], system=" "), provider="anthropic")

    assert "system" not in body
    assert body["tools"] == [{"name": "t", "input_schema": {"type": "object"}}]


def test_the_same_request_is_always_written_the_same() -> None:
    assert request_body(request(*TALK), provider="anthropic") == request_body(
        request(*TALK), provider="anthropic"
    )
