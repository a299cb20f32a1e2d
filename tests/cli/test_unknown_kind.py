"""An item of a kind of a later release: shown whole, and no answer is made up for it."""

from __future__ import annotations

import io
from typing import Any, cast

import pytest

from capuchin_yaml.cli.decide import Found, decide
from capuchin_yaml.cli.item_text import print_item
from capuchin_yaml.cli.output import Output
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.items import Item

WAY = "`capuchin cancel shop.notes-a91f00` ends its turn"


def item(kind: str) -> Item:
    return Item(
        id="shop.notes-a91f00:q1",
        kind=cast("Any", kind),
        conversation="shop.notes-a91f00",
        digest="d" * 64,
        revision=1,
        title="Which order?",
        requested_at="2026-11-30T12:00:00+00:00",
        due=None,
        then="wait",
    )


@pytest.mark.parametrize("kind", ["question", "survey\x1b[31m"])
async def test_it_is_shown_and_says_what_to_type(kind: str) -> None:
    text = io.StringIO()
    print_item(Output(text, None), item(kind))
    found = Found(cast("Any", None), "notes", item(kind), None)

    with pytest.raises(RequestRefused, match="no answer for an item of kind") as refused:
        await decide(Output(text, None), found, "go_on")

    assert "Which order?" in text.getvalue()
    assert WAY in " ".join(text.getvalue().split())
    assert WAY in str(refused.value)
    assert "\x1b" not in text.getvalue() + str(refused.value)
