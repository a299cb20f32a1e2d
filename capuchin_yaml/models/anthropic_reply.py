"""Puts a reply together from the events of Anthropic's stream; knows nothing of its SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from capuchin_yaml.errors import ModelUnavailable
from capuchin_yaml.messages import (
    ModelReply,
    OpaqueBlock,
    ReplyBlock,
    ReplyCall,
    StopReason,
    TextBlock,
    Usage,
)
from capuchin_yaml.models.adapter import OnText
from capuchin_yaml.models.dialogue import well_formed
from capuchin_yaml.spec import JsonValue

PROVIDER = "anthropic"
_CUT = ("max_tokens", "model_context_window_exceeded")
_WHOLE = ("end_turn", "tool_use", "stop_sequence", "pause_turn")


@dataclass(slots=True)
class _Open:
    """A block that is being streamed."""

    data: dict[str, JsonValue]
    json_text: str = ""
    held: str = ""
    """First half of a character whose second half comes with the next delta."""
    closed: bool = False
    known: bool = True
    """Whether all of it was understood; otherwise it cannot go back as it came."""


@dataclass(slots=True)
class ReplyBuilder:
    """Takes the events of one stream, passes words on at once, and gives the whole reply."""

    on_text: OnText
    _blocks: dict[int, _Open] = field(default_factory=dict)
    _usage: dict[str, JsonValue] = field(default_factory=dict)
    _stop: str | None = None
    _ended: bool = False

    def take(self, event: Mapping[str, JsonValue]) -> None:
        """Take the next event.

        Raises:
            ModelUnavailable: it does not fit what came before.
        """
        match event.get("type"):
            case "message_start":
                self._count(_mapping(event.get("message")).get("usage"))
            case "content_block_start":
                self._start(event)
            case "content_block_delta":
                self._delta(self._block(event), _mapping(event.get("delta")))
            case "content_block_stop":
                self._close(self._block(event))
            case "message_delta":
                stop = _mapping(event.get("delta")).get("stop_reason")
                self._stop = stop if isinstance(stop, str) else self._stop
                self._count(event.get("usage"))
            case "message_stop":
                self._ended = True
            case _:
                pass  # the provider may add events; what it adds cannot change these

    def reply(self) -> ModelReply:
        """The whole reply.

        Raises:
            ModelUnavailable: the stream ended before the reply did.
        """
        if not self._ended or self._stop is None:
            _broken("the stream ended before the reply did")
        open_blocks = [self._blocks[i] for i in sorted(self._blocks)]
        if self._stop not in _CUT and not all(b.closed for b in open_blocks):
            _broken("a part of the reply was never finished")
        blocks = tuple(b for o in open_blocks if (b := _finished(o)) is not None)
        calls = any(isinstance(b, ReplyCall) for b in blocks)
        return ModelReply(blocks, stop_reason_of(self._stop, calls=calls), self._counted())

    def _start(self, event: Mapping[str, JsonValue]) -> None:
        index, data = event.get("index"), event.get("content_block")
        if not isinstance(index, int) or not isinstance(data, dict) or index in self._blocks:
            _broken("a part of the reply does not fit in")
        block = self._blocks[index] = _Open(dict(data))
        if data.get("type") == "text":
            text, block.data["text"] = data.get("text"), ""
            self._say(block, text if isinstance(text, str) else "")

    def _block(self, event: Mapping[str, JsonValue]) -> _Open:
        index = event.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None or block.closed:
            _broken("a piece belongs to no open part of the reply")
        return block

    def _delta(self, block: _Open, delta: Mapping[str, JsonValue]) -> None:
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                self._say(block, text)
            case {"type": "input_json_delta", "partial_json": str(piece)}:
                block.json_text += piece
            case {"type": "thinking_delta", "thinking": str(piece)}:
                block.data["thinking"] = str(block.data.get("thinking", "")) + piece
            case {"type": "signature_delta", "signature": str(signature)}:
                block.data["signature"] = signature
            case {"type": "citations_delta"} if block.data.get("type") == "text":
                pass  # the words are complete without their sources
            case _:
                block.known = False

    def _say(self, block: _Open, text: str) -> None:
        text = block.held + text
        # Why: a character outside the basic plane may be cut in two by the stream.
        block.held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = well_formed(text[: len(text) - len(block.held)])
        if text:
            block.data["text"] = str(block.data.get("text", "")) + text
            self.on_text(text)

    def _close(self, block: _Open) -> None:
        block.closed = True
        if block.held:
            block.held = ""
            self._say(block, "\ufffd")

    def _count(self, usage: JsonValue) -> None:
        # Counts are totals so far: a later one replaces an earlier one, a missing one leaves it.
        self._usage.update({k: v for k, v in _mapping(usage).items() if v is not None})

    def _counted(self) -> Usage:
        def tokens(key: str) -> int:
            value = self._usage.get(key)
            return value if isinstance(value, int) and value > 0 else 0

        return Usage(
            input_tokens=tokens("input_tokens"),
            output_tokens=tokens("output_tokens"),
            cache_read_tokens=tokens("cache_read_input_tokens"),
            cache_write_tokens=tokens("cache_creation_input_tokens"),
        )


def stop_reason_of(raw: str, *, calls: bool) -> StopReason:
    """Our word for the provider's stop reason; calls are only run after `tool_use`.

    A reason of a later API counts as cut off when there are calls: nothing runs by mistake.
    """
    if raw in _CUT:
        return "max_tokens"
    if raw == "refusal":
        return "refusal"
    if not calls:
        return "end_turn"
    return "tool_use" if raw in _WHOLE else "max_tokens"


def _finished(block: _Open) -> ReplyBlock | None:
    match block.data.get("type"):
        case "text":
            return TextBlock(str(block.data.get("text", "")))
        case "tool_use":
            name = block.data.get("name")
            return ReplyCall(name if isinstance(name, str) else "", _input(block))
        case _ if not block.known or not block.closed:
            return None
        case _:
            data = dict(block.data)
            if block.json_text:
                data["input"] = _parsed(block.json_text)
            return OpaqueBlock(PROVIDER, data)


def _input(block: _Open) -> JsonValue:
    """What the model wrote, whatever it is; the judge says whether it can be used."""
    return _parsed(block.json_text) if block.json_text else block.data.get("input", {})


def _parsed(text: str) -> JsonValue:
    """The JSON value, or the text itself when it is no JSON that has one meaning."""
    try:
        return json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key is there twice")
    return out


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _broken(sentence: str) -> NoReturn:
    raise ModelUnavailable(f"{PROVIDER}: {sentence}")
