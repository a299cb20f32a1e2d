"""Names that a provider is known to have, and models with a price."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from capuchin_yaml.models.known import has_price, is_known, known_names


def test_the_names_are_those_of_the_installed_sdk() -> None:
    from anthropic.types.model import Model

    [literal, _] = get_args(Model)
    assert known_names("anthropic") == set(get_args(literal))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("claude-opus-4-8", True),
        ("claude-opus-4-8-20991231", True),
        ("claude-opus-4-8-latest", True),
        ("claude-opuss-4-8", False),
        ("gpt-4o", False),
    ],
)
def test_a_name_is_known_with_or_without_its_date(name: str, known: bool) -> None:
    assert is_known("anthropic", name) is known


def test_a_provider_that_lists_nothing_has_every_model() -> None:
    assert is_known("rehearsal", "anything")


@pytest.mark.parametrize(
    ("model", "priced"),
    [
        ("anthropic:claude-opus-4-8", True),
        ("anthropic:our-own-model", False),
        ("nobody:claude-opus-4-8", False),
        ("rehearsal", True),
        ("scripted:talk.yaml", True),
    ],
)
def test_what_a_model_costs_is_known_or_not(model: str, priced: bool) -> None:
    assert has_price(model) is priced


def test_neither_the_sdk_nor_the_prices_are_loaded_for_a_name() -> None:
    code = (
        "import sys; from capuchin_yaml.models.known import is_known;"
        "assert is_known('anthropic', 'claude-opus-4-8');"
        "assert not {'anthropic', 'genai_prices', 'pydantic'} & sys.modules.keys()"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
