"""Holds requests against the provider's rules, and does not do twice what a talk has passed before.

A talk only grows. What was checked at its last request is known by its very entries and left out,
so that a reply costs the same in the thousandth turn as in the first.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from capuchin_yaml.messages import (
    AssistantMessage,
    CallBlock,
    ModelRequest,
    TextBlock,
    TranscriptEntry,
    UserMessage,
)
from capuchin_yaml.models.anthropic_wire import request_body
from capuchin_yaml.models.rules import check_request
from capuchin_yaml.spec import JsonValue

KEPT_TALKS = 500
_MARK = "cache_control"
_MARK_SIZE = len(json.dumps({_MARK: {"type": "ephemeral"}})) - len("{}") + len(", ")


@dataclass(frozen=True, slots=True)
class _Passed:
    """The beginning of a talk that was checked: whole turns, up to a message of the user."""

    entries: tuple[TranscriptEntry, ...] = ()
    size: int = 0
    """Characters of its messages in a request body, with the comma behind each, without marks."""

    def begins(self, entries: Sequence[TranscriptEntry]) -> bool:
        """Whether these are the very entries at the beginning."""
        if len(self.entries) > len(entries):
            return False
        return all(a is b for a, b in zip(self.entries, entries, strict=False))


class CheckedRequests:
    """Requests of many talks to one provider."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._passed: OrderedDict[str, _Passed] = OrderedDict()

    def size(self, request: ModelRequest) -> int:
        """Check a request; return the characters of its body as JSON.

        Raises:
            ModelRejected: the provider would refuse it.
        """
        passed = self._passed.get(request.conversation, _Passed())
        if not passed.begins(request.entries):
            passed = _Passed()
        body = self._body(request, len(passed.entries), None)
        check_request(body)
        size = passed.size + len(json.dumps(body, default=str)) + self._mark_before(passed, body)
        self._pass(request, passed)
        return size

    def _body(self, request: ModelRequest, start: int, end: int | None) -> dict[str, JsonValue]:
        part = replace(request, entries=request.entries[start:end])
        return request_body(part, provider=self._provider)

    def _mark_before(self, passed: _Passed, body: Mapping[str, JsonValue]) -> int:
        """Two messages of the user carry a mark; one of them may lie in what is left out."""
        is_alone = sum(m["role"] == "user" for m in body["messages"]) == 1
        return _MARK_SIZE if passed.entries and is_alone else 0

    def _pass(self, request: ModelRequest, passed: _Passed) -> None:
        start = len(passed.entries)
        end = _last_boundary(request.entries, start)
        if end > start and request.conversation:
            # The turns of the user and the assistant before the boundary; the last one is made up.
            messages = self._body(request, start, end)["messages"][:-1]
            for message in messages:
                for block in message["content"]:
                    block.pop(_MARK, None)
            size = sum(len(json.dumps(m, default=str)) + len(", ") for m in messages)
            passed = _Passed(tuple(request.entries[:end]), passed.size + size)
        if passed.entries:
            self._passed[request.conversation] = passed
            self._passed.move_to_end(request.conversation)
        while len(self._passed) > KEPT_TALKS:
            self._passed.popitem(last=False)


def _last_boundary(entries: Sequence[TranscriptEntry], start: int) -> int:
    """The last message of the user that begins a turn by itself: all before it is settled."""
    for i in range(len(entries) - 1, start, -1):
        before = entries[i - 1]
        if isinstance(entries[i], UserMessage) and isinstance(before, AssistantMessage):
            spoke = any(isinstance(b, TextBlock) and b.text.strip() for b in before.blocks)
            if spoke and not any(isinstance(b, CallBlock) for b in before.blocks):
                return i
    return start
