"""Words in chunks and a guess at usage, for models without a provider."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.messages import OpaqueBlock, ReplyCall, TextBlock
from capuchin_yaml.models.offline import estimated_usage, speak


@given(st.text(alphabet=st.sampled_from("ab \n\t\u00a0é"), max_size=60))
def test_chunks_add_up_to_the_text(text: str) -> None:
    heard: list[str] = []
    asyncio.run(speak(text, heard.append))

    assert "".join(heard) == text


async def test_a_long_text_comes_in_a_few_chunks() -> None:
    heard: list[str] = []
    await speak("word " * 10_000, heard.append)

    assert 10 < len(heard) < 60


def test_usage_counts_words_and_calls_alike_every_time() -> None:
    blocks = (TextBlock("é" * 8), ReplyCall("t", {"a": 1}), OpaqueBlock("x", {}))
    usage = estimated_usage(16, blocks)

    assert usage == estimated_usage(16, blocks)
    assert (usage.input_tokens, usage.output_tokens) == (4, 4 + 1 + 2)
