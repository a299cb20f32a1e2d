"""A price per token in the listing."""

from __future__ import annotations

from jsonschema import Draft202012Validator

from capuchin_yaml.market.listing import listing
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import AgentSpec, PriceSpec


def test_a_price_per_token_names_both_prices_and_their_unit() -> None:
    price = PriceSpec("per_token", currency="USD", input="3.00", output="15", unit=1000)
    shown = listing(AgentSpec(name="a", prompt="p", price=price))

    Draft202012Validator(read_schema("listing.v1")).validate(shown)
    assert shown["price"] == {
        "type": "per_token",
        "amount": None,
        "currency": "USD",
        "unit": "1000 tokens",
        "input": "3.00",
        "output": "15",
    }


def test_another_price_names_neither() -> None:
    price = PriceSpec("per_call", "0.25", "USD")
    shown = listing(AgentSpec(name="a", prompt="p", price=price))

    Draft202012Validator(read_schema("listing.v1")).validate(shown)
    assert shown["price"].keys() == {"type", "amount", "currency", "unit"}
