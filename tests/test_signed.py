"""What a signed decision says: one text for one decision, and another for every other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capuchin_yaml.engine.contract import Decide
from capuchin_yaml.signed import revision_of, statement_of

DECISION = Decide(
    conversation="shop.billing-a",
    id="1",
    by="ann",
    client="cli@desk",
    sent_at="2026-11-30T12:00:00+00:00",
    item="shop.billing-a:a2.3",
    digest="d",
    choice="approve",
)


def test_a_statement_names_every_part() -> None:
    assert statement_of(DECISION) == (
        '{"arguments":"","at":"2026-11-30T12:00:00+00:00","by":"ann","choice":"approve",'
        '"conversation":"shop.billing-a","digest":"d","grant":null,"item":"shop.billing-a:a2.3",'
        '"reason":"","result":"","revision":3,"v":1,"what":"capuchin-decision"}'
    )


@pytest.mark.parametrize(
    "part",
    ["conversation", "item", "digest", "choice", "by", "sent_at", "arguments", "result", "reason"],
)
def test_every_part_makes_another_statement(part: str) -> None:
    changed: dict[str, Any] = {part: "other"}

    assert statement_of(replace(DECISION, **changed)) != statement_of(DECISION)


@pytest.mark.parametrize(
    ("item", "revision"),
    [("a.b-c:a1", 1), ("a.b-c:a1.2", 2), ("a.b:o12.10", 10), ("x", 1), ("x:a1.²", 1), ("", 1)],
)
def test_the_id_of_an_item_names_its_revision(item: str, revision: int) -> None:
    assert revision_of(item) == revision
