"""What the rehearsal model makes of a message: words, ids, money, numbers, quotes and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise

MOST_READ = 4000
"""Characters of a message that are taken apart; whole, it is only ever handed on."""
# Why possessive and never from within a run: the time must grow with the message and not with its
# square, because whoever sends one decides what it is made of.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+")
_URL = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_TIMESTAMP = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^“”\n]+)”|«([^«»\n]+)»|(?<!\w)'([^'\n]+)'(?!\w)")
_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_UNITS = {"dollar": "USD", "buck": "USD", "euro": "EUR", "pound": "GBP", "yen": "JPY"}
_CODES = "USD|EUR|GBP|JPY|CHF|CAD|AUD|CNY|INR|SEK|NOK|DKK|PLN|BRL|MXN"
_AMOUNT = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,12}(?:[.,]\d{1,2}(?!\d))?"
_MONEY = re.compile(
    rf"(?P<sign>[$€£¥]|\b(?:{_CODES})\b)\s*(?P<after>{_AMOUNT})"
    rf"|(?<![\w-])(?P<before>{_AMOUNT})\s*(?P<unit>[€£¥]|(?:{_CODES}|dollars?|bucks?|euros?|pounds?"
    r"|yen|cents?|pence|pennies)\b)",
    re.IGNORECASE,
)
_CURRENCY = re.compile(
    rf"\b({_CODES})\b|([$€£¥])|\b(dollar|buck|euro|pound|yen)s?\b", re.IGNORECASE
)
_ID = re.compile(
    r"(?<![\w-])(?:(?=[A-Za-z]*+[-_]?\w*\d)[A-Za-z][\w-]*\d[\w-]*|(?=[\w-]*[A-Za-z])\d\w*[-_][\w-]+"
    r"|#\w+)"
)
_NUMBER = re.compile(r"(?<![\w.-])-?\d{1,15}(?:\.\d{1,9})?(?![\w-])")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][^\W\d_]+(?:[ -][A-Z][^\W\d_]+)*")
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BECAUSE = re.compile(r"\bbecause\s+(.+?)[.!?]*$", re.IGNORECASE | re.DOTALL)
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s")


@dataclass(frozen=True, slots=True)
class Found:
    """Something in the message, with the stems beside it that may say what it is."""

    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def is_about(self, stems: Iterable[str], *, after: bool = False) -> bool:
        """Whether a word in front of it (or, if asked, behind it) is one of the stems."""
        beside = (*self.before, *self.after) if after else self.before
        return any(alike(a, b) for a in stems for b in beside)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in the message, in whole units of its currency and in hundredths."""

    amount: Decimal
    cents: int


class Reading:
    """A message, taken apart; the same message is always taken apart the same way."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self._head = rest = self.text[:MOST_READ]
        self.urls, rest = self._take(_URL, rest)
        self.emails, rest = self._take(_EMAIL, rest)
        self.uuids, rest = self._take(_UUID, rest)
        self.timestamps, rest = self._take(_TIMESTAMP, rest)
        self.dates, rest = self._take(_DATE, rest)
        self.money = tuple(m for m in map(_money, _MONEY.finditer(rest)) if m is not None)
        rest = _MONEY.sub(_blank, rest)
        self.ids, rest = self._take(_ID, rest)
        self.numbers, _ = self._take(_NUMBER, rest)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all words, and of two words written as one (`look up` as `lookup`)."""
        words = [w.casefold() for w in _WORD.findall(self._head)]
        pairs = (a + b for a, b in pairwise(words))
        return frozenset(stem(w) for w in (*words, *pairs))

    @cached_property
    def quotes(self) -> tuple[Found, ...]:
        """What stands in quotation marks."""
        return tuple(
            _found(m, self._head, next(g for g in m.groups() if g))
            for m in _QUOTED.finditer(self._head)
        )

    @cached_property
    def names(self) -> tuple[Found, ...]:
        """Capitalised words inside a sentence."""
        return tuple(_found(m, self._head) for m in _NAME.finditer(self._head))

    @cached_property
    def currency(self) -> str | None:
        """The first currency named, as its code."""
        found = _CURRENCY.search(self._head)
        if found is None:
            return None
        code, sign, unit = found.groups()
        return code.upper() if code else _SIGNS[sign] if sign else _UNITS[unit.casefold()]

    @cached_property
    def because(self) -> str | None:
        """What follows the word because."""
        found = _BECAUSE.search(self._head)
        return found.group(1) if found else None

    def says_any(self, stems: Iterable[str]) -> bool:
        """Whether a word of the message is of one of the stems."""
        return any(alike(a, b) for a in stems for b in self.stems)

    def mentions(self, phrase: str) -> bool:
        """Whether all words of a short phrase are in the message."""
        wanted = stems_of(phrase)
        if wanted:
            return all(w in self.stems for w in wanted)
        return phrase.casefold() in self._head.casefold().split()

    def _take(self, pattern: re.Pattern[str], rest: str) -> tuple[tuple[Found, ...], str]:
        """All that the pattern finds, and the text without it, so that nothing is read twice."""
        return tuple(_found(m, rest) for m in pattern.finditer(rest)), pattern.sub(_blank, rest)


def stem(word: str) -> str:
    """A word without the endings that grammar gives it; good enough to compare words."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def alike(a: str, b: str) -> bool:
    """Whether two stems are of one word."""
    if a == b:
        return True
    short, long = sorted((a, b), key=len)
    return len(short) >= 5 and long.startswith(short)


def stems_of(name: str) -> tuple[str, ...]:
    """The stems of a name such as `order_id`, `orderId` or `order-id`, in order."""
    return tuple(stem(w.casefold()) for w in _WORD.findall(_CAMEL.sub(" ", name)))


def _found(match: re.Match[str], text: str, value: str = "") -> Found:
    before = _WORD.findall(text[max(0, match.start() - 40) : match.start()])[-2:]
    after = _WORD.findall(text[match.end() : match.end() + 40])[:1]
    return Found(
        value or match.group().removeprefix("#"),
        tuple(stem(w.casefold()) for w in before),
        tuple(stem(w.casefold()) for w in after),
    )


def _money(match: re.Match[str]) -> Money | None:
    unit = (match["unit"] or "").casefold()
    text = match["after"] or match["before"]
    # A comma with one or two digits behind it is a decimal comma, else it groups thousands.
    text = re.sub(r",(\d{1,2})$", r".\1", text).replace(",", "")
    amount = Decimal(text)
    if unit.startswith(("cent", "penc", "penn")):
        return Money(amount / 100, int(amount))
    return Money(amount, int((amount * 100).to_integral_value()))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())
