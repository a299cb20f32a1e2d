"""A model's name leads to its adapter, or to a sentence that says what to write."""

from __future__ import annotations

import pytest

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.models.anthropic import AnthropicModel
from capuchin_yaml.models.registry import (
    ModelName,
    needs_key,
    open_model,
    split_model_name,
    warm,
)
from capuchin_yaml.models.rehearsal import RehearsalModel


def test_what_stands_after_the_colon_is_passed_through() -> None:
    assert split_model_name("anthropic:claude-opus-4-8") == ModelName(
        "anthropic", "claude-opus-4-8"
    )
    assert split_model_name("anthropic:a:b/c@d") == ModelName("anthropic", "a:b/c@d")
    assert split_model_name("rehearsal") == ModelName("rehearsal", "")


def test_each_provider_opens() -> None:
    assert isinstance(open_model("anthropic:claude-opus-4-8"), AnthropicModel)
    assert isinstance(open_model("rehearsal"), RehearsalModel)


def test_only_anthropic_needs_a_key() -> None:
    assert needs_key("anthropic:claude-opus-4-8") == "ANTHROPIC_API_KEY"
    assert needs_key("rehearsal") is None
    assert needs_key("scripted:no-such-file.yaml") is None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "antropic:claude",
            "no model provider is named 'antropic'; did you mean 'anthropic:MODEL'",
        ),
        ("Anthropic:claude", "did you mean 'anthropic:MODEL'?"),
        ("claude-opus-4-8", "did you mean 'anthropic:claude-opus-4-8'?"),
        ("rehersal", "did you mean 'rehearsal'?"),
        ("script:x.yaml", "did you mean 'scripted:FILE'?"),
        ("gpt", "write one of anthropic:MODEL, rehearsal, scripted:FILE"),
        ("", "no model provider is named ''"),
        ("anthropic", "'anthropic' names no model: write anthropic:MODEL"),
        ("anthropic: ", "names no model"),
        ("scripted:", "names no model: write scripted:FILE"),
        ("rehearsal:x", "write 'rehearsal' alone"),
        ("scripted:no-such-file.yaml", "No such file"),
    ],
)
def test_a_name_that_is_none_says_what_to_write(name: str, sentence: str) -> None:
    with pytest.raises(ModelRejected) as refused:
        open_model(name)

    assert sentence in str(refused.value)


async def test_warming_loads_the_sdk_or_nothing() -> None:
    import sys

    await warm("rehearsal")
    await warm("nonsense")
    await warm("anthropic:x")

    assert "anthropic.resources.messages" in sys.modules
