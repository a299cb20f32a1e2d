"""Money as exact decimal strings with a currency; never a float."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount that is not negative, as a plain decimal string, in one currency."""

    amount: str
    currency: str

    def as_decimal(self) -> Decimal:
        """The exact amount, for arithmetic."""
        return Decimal(self.amount)


def parse_amount(text: str) -> str:
    """Check a plain decimal such as `0.25` and drop needless zeros in front of it.

    Raises:
        ValueError: a sign, an exponent, a symbol, a comma, or more than 12 digits on a side.
    """
    if not _AMOUNT.fullmatch(text):
        raise ValueError(f'{text!r} is not an amount: write digits with a point, such as "0.25"')
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{fraction}" if fraction else whole


def parse_currency(text: str) -> str:
    """Check a currency code of three capital letters (ISO 4217 form).

    Raises:
        ValueError: anything else.
    """
    if not _CURRENCY.fullmatch(text):
        raise ValueError(f"{text!r} is not a currency: write three capital letters, such as USD")
    return text
