"""What the models without a provider share: words in chunks, and a fair guess at their usage."""

from __future__ import annotations

import asyncio
import json
import re

from capuchin_yaml.messages import ReplyBlock, ReplyCall, TextBlock, Usage
from capuchin_yaml.models.adapter import OnText

_WORD = re.compile(r"\s*\S+|\s+$")
_WORDS_A_CHUNK = 4
_MOST_CHUNKS = 48
_BYTES_A_TOKEN = 4


async def speak(text: str, on_text: OnText, pause_s: float = 0.0) -> None:
    """Pass the text on a few words at a time, with a pause between the chunks."""
    words = _WORD.findall(text)
    size = max(_WORDS_A_CHUNK, -(-len(words) // _MOST_CHUNKS))
    for start in range(0, len(words), size):
        if start and pause_s > 0:
            await asyncio.sleep(pause_s)
        on_text("".join(words[start : start + size]))


def estimated_usage(body_size: int, blocks: tuple[ReplyBlock, ...]) -> Usage:
    """Tokens that a provider would roughly count for a body of so many characters and its reply."""
    said = 0
    for block in blocks:
        match block:
            case TextBlock(text):
                said += _tokens(text)
            case ReplyCall(tool, input):
                said += _tokens(tool) + _tokens(json.dumps(input, default=str))
            case _:
                pass
    return Usage(input_tokens=-(-body_size // _BYTES_A_TOKEN), output_tokens=said)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)
