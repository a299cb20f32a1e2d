"""Arguments of a tool call, from a message, from earlier results and from the tool's own schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from capuchin_yaml.models.guess.reading import Found, Reading, stems_of
from capuchin_yaml.models.guess.schema_sample import InputSchema, Schema, kind_of
from capuchin_yaml.spec import JsonValue

Candidate: TypeAlias = tuple[JsonValue, bool, Found | None]
"""A value, whether it is sure enough for an argument that may be left out, and its place."""

_ID_WORDS = frozenset(stems_of("id ids number no code ref reference key sku uuid"))
_CENT_WORDS = frozenset({"cent", "minor", "pence", "pennie", "penny"})
_MONEY_WORDS = frozenset(
    stems_of("amount price total cost sum budget fee value payment refund balance limit")
)
_MAIN_SUM_WORDS = frozenset(stems_of("amount total price balance due paid"))
"""In the key of a result these mean the sum itself, not a part such as tax or what was returned."""
_PLACE_WORDS = frozenset(
    stems_of("city location place town country region destination origin name customer person")
    + stems_of("company who to from recipient user")
)
_WHOLE_MESSAGE_WORDS = frozenset(
    stems_of("query question q text message prompt search input content body note reason")
    + stems_of("description comment subject title summary details instructions")
)
_DEEPEST = 4
_DATE_WORDS = frozenset(stems_of("date day since until on"))


@dataclass(frozen=True, slots=True)
class Filled:
    """Arguments for one call."""

    arguments: dict[str, JsonValue]
    invented: tuple[str, ...]
    """Required arguments that nobody said: they are made from the schema alone."""


def fill(schema: Schema, reading: Reading, facts: Mapping[str, JsonValue]) -> Filled:
    """Arguments that are valid for the schema whenever that is within reach.

    `facts` are values of earlier results by their key. What the message says outright comes first,
    then facts, then what the message may mean, then the schema.
    """
    filler = _Filler(InputSchema(schema), reading, facts)
    arguments = filler.object_of(schema)
    whole = filler.schema
    if not whole.fits(schema, arguments):
        needed = {k: v for k, v in arguments.items() if k in schema.get("required", ())}
        sample = whole.sample(schema)
        others = (needed, {**sample, **needed} if isinstance(sample, dict) else sample, sample)
        arguments = next(
            (a for a in others if isinstance(a, dict) and whole.fits(schema, a)), arguments
        )
    return Filled(arguments, tuple(filler.invented))


@dataclass(slots=True)
class _Filler:
    """Fills one call; what it used once it does not use for another argument."""

    schema: InputSchema
    reading: Reading
    facts: Mapping[str, JsonValue]
    invented: list[str] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)
    """Places in the message that an argument was taken from: two arguments get two of them."""

    def object_of(self, schema: JsonValue, depth: int = 0) -> dict[str, JsonValue]:
        plain = self.schema.resolved(schema)
        properties = plain.get("properties", {})
        required = plain.get("required", [])
        out: dict[str, JsonValue] = {}
        # Why: what must be there chooses first; what may be there keeps its place in the schema.
        for name in sorted(properties, key=lambda n: n not in required):
            value, found = self._argument(name, properties[name], name in required, depth)
            if found:
                out[name] = value
        for name in required:
            if name not in out:
                out[name] = self._made_up(name, plain.get("additionalProperties", {}))
        return {name: out[name] for name in (*properties, *required) if name in out}

    def _argument(
        self, name: str, schema: JsonValue, needed: bool, depth: int
    ) -> tuple[JsonValue, bool]:
        plain = self.schema.resolved(schema)
        if "const" in plain:
            return plain["const"], needed
        kind = kind_of(plain)
        if kind == "object" and plain.get("properties") and depth < _DEEPEST:
            if name in self.facts and self.schema.fits(schema, self.facts[name]):
                return self.facts[name], True
            return (self.object_of(plain, depth + 1), True) if needed else (None, False)
        if kind == "array":
            return self._list(name, schema, plain, needed, depth)
        for value, sure, found in self._candidates(name, plain, kind):
            free = found is None or id(found) not in self._used
            if free and (needed or sure) and self.schema.fits(schema, value):
                self._used.add(id(found))
                return value, True
        return (self._made_up(name, schema), True) if needed else (None, False)

    def _made_up(self, name: str, schema: JsonValue) -> JsonValue:
        plain = self.schema.resolved(schema)
        if "default" not in plain and "enum" not in plain:
            self.invented.append(name)
        return self.schema.sample(schema)

    def _list(
        self, name: str, schema: JsonValue, plain: Schema, needed: bool, depth: int
    ) -> tuple[JsonValue, bool]:
        item = self.schema.resolved(plain.get("items", {}))
        if kind_of(item) == "object" and item.get("properties"):
            once = needed and depth < _DEEPEST and (depth == 0 or plain.get("minItems", 0))
            values: list[JsonValue] = [self.object_of(item, depth + 1)] if once else []
        elif "enum" in item:
            values = [v for v in item["enum"] if self.reading.mentions(str(v))]
        else:
            values = self._items(name, item)
        fact = self.facts.get(name)
        for value in (values, fact):
            if value and self.schema.fits(schema, value):
                return value, True
        return (self._made_up(name, schema), True) if needed else (None, False)

    def _items(self, name: str, item: Schema) -> list[JsonValue]:
        kind, words, read = kind_of(item), frozenset(stems_of(name)), self.reading
        if kind in ("integer", "number"):
            return [_number(found.text) for found in read.numbers]
        if "email" in words or item.get("format") == "email":
            return [found.text for found in read.emails]
        if words & _ID_WORDS or any(i.is_about(words) for i in read.ids):
            return [found.text for found in read.ids]
        return [found.text for found in read.quotes]

    def _candidates(self, name: str, schema: Schema, kind: str) -> Iterator[Candidate]:
        words = frozenset(stems_of(name))
        number = kind in ("integer", "number")
        if "enum" in schema:
            yield from ((v, True, None) for v in schema["enum"] if self.reading.mentions(str(v)))
        elif kind == "boolean":
            if self.reading.says_any(words):
                yield True, True, None
        elif number:
            yield from self._spoken_numbers(words)
        elif kind == "string":
            yield from self._spoken_texts(words, str(schema.get("format", "")))
        yield from self._facts_for(name, words)
        if "default" in schema:
            yield schema["default"], False, None
        if "enum" not in schema:
            if number:
                yield from self._loose_numbers(words)
            elif kind == "string":
                yield from self._loose_texts(words, schema.get("maxLength"))

    def _spoken_numbers(self, words: frozenset[str]) -> Iterator[Candidate]:
        if words & _CENT_WORDS:
            yield from ((m.cents, True, None) for m in self.reading.money)
        elif words & _MONEY_WORDS:
            for money in self.reading.money:
                yield _number(str(money.amount)), True, None
        for found in self.reading.numbers:
            if found.is_about(words, after=True):
                yield _number(found.text), True, found

    def _loose_numbers(self, words: frozenset[str]) -> Iterator[Candidate]:
        for found in self.reading.numbers:
            value = _number(found.text)
            # A bare number for an amount in cents was most likely meant in whole units.
            yield (round(value * 100) if words & _CENT_WORDS else value), False, found
        for found in self.reading.ids:
            if found.text.isdigit():
                yield int(found.text), False, found

    def _spoken_texts(self, words: frozenset[str], format: str) -> Iterator[Candidate]:
        read = self.reading
        sure: list[Found] = []
        if format == "email" or "email" in words:
            sure += read.emails
        if format in ("uri", "url") or words & {"url", "uri", "link"}:
            sure += read.urls
        if format == "date" or words & _DATE_WORDS:
            sure += (*read.dates, *read.timestamps)
        if format == "uuid" or words & _ID_WORDS:
            sure += read.uuids
        sure += (f for f in (*read.ids, *read.quotes) if f.is_about(words - _ID_WORDS))
        if words & _ID_WORDS:
            sure += (f for f in read.numbers if f.is_about(words))
        if format == "date-time":
            yield from ((t.text.replace(" ", "T"), True, t) for t in read.timestamps)
        yield from ((found.text, True, found) for found in sure)
        if "currency" in words and read.currency:
            yield read.currency, True, None
        if "reason" in words and read.because:
            yield read.because, True, None

    def _loose_texts(self, words: frozenset[str], most: JsonValue) -> Iterator[Candidate]:
        read = self.reading
        maybe: list[Found] = []
        if words & _ID_WORDS:
            maybe += (*read.ids, *read.numbers)
        maybe += read.quotes
        if words & _PLACE_WORDS:
            maybe += sorted(read.names, key=lambda n: not n.is_about(words))
        yield from ((found.text, False, found) for found in maybe)
        if words & _WHOLE_MESSAGE_WORDS and read.text:
            yield read.text[: most if isinstance(most, int) else None], False, None
        yield from ((found.text, False, found) for found in read.ids)

    def _facts_for(self, name: str, words: frozenset[str]) -> Iterator[Candidate]:
        if name in self.facts:
            yield self.facts[name], True, None
        for key, value in self.facts.items():
            if key != name and stems_of(key) == stems_of(name):
                yield value, True, None
        if words & (_CENT_WORDS | _MONEY_WORDS):
            for key, value in self.facts.items():
                others = set(stems_of(key))
                alike_unit = bool(others & _CENT_WORDS) == bool(words & _CENT_WORDS)
                if alike_unit and others & _MAIN_SUM_WORDS:
                    yield value, False, None


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and "e" not in text.lower() else value
