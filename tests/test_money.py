"""Amounts are exact plain decimals; everything that only looks like one is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capuchin_yaml.money import Money, parse_amount, parse_currency


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"),
        ("0.25", "0.25"),
        ("12", "12"),
        ("007", "7"),
        ("000.50", "0.50"),
        ("0.000001", "0.000001"),
        ("1.10", "1.10"),
        ("999999999999.999999999999", "999999999999.999999999999"),
    ],
)
def test_a_plain_decimal_is_kept_as_written_but_for_zeros_in_front(text: str, amount: str) -> None:
    assert parse_amount(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "+1",
        "free",
        "$3",
        "3 USD",
        "3,50",
        "1_000",
        "1e3",
        ".5",
        "5.",
        "1.2.3",
        "0x10",
        "NaN",
        "Infinity",
        " 1",
        "1\n",
        "1" * 13,
        "0." + "1" * 13,
        "1" * 30,
        "٣",
        "３",
        "१.५",
        "½",
        "1\u200b",
    ],
)
def test_what_only_looks_like_an_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        parse_amount(text)


@given(st.text())
def test_whatever_is_accepted_is_an_exact_decimal(text: str) -> None:
    try:
        amount = parse_amount(text)
    except ValueError:
        return

    assert amount.isascii()
    assert Decimal(amount) == Decimal(text)
    assert parse_amount(amount) == amount


@given(st.decimals(0, 999_999_999_999, places=6, allow_nan=False))
def test_every_amount_of_six_places_is_accepted(value: Decimal) -> None:
    assert Money(parse_amount(f"{value:f}"), "USD").as_decimal() == value


@pytest.mark.parametrize("text", ["USD", "EUR", "JPY", "XXX"])
def test_a_currency_is_three_capital_letters(text: str) -> None:
    assert parse_currency(text) == text


@pytest.mark.parametrize(
    "text", ["", "usd", "US", "USDT", "U5D", "$", "USD\n", " USD", "ÄÖÜ", "ＵＳＤ"]
)
def test_what_is_no_currency_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a currency"):
        parse_currency(text)
