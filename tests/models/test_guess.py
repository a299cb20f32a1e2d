"""How the rehearsal model reads a message and fills arguments that the schema allows."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.models.guess.arguments import fill
from capuchin_yaml.models.guess.pattern_sample import text_for_pattern
from capuchin_yaml.models.guess.reading import Reading, alike, stem
from capuchin_yaml.models.guess.schema_sample import InputSchema


def texts(found: Any) -> list[str]:
    """The texts of what was found."""
    return [f.text for f in found]


def test_a_message_is_taken_apart_once() -> None:
    read = Reading(
        "Refund $1,200.50 of order A-1001 (ref INV_2024-7, #5512) to ana.b@example.co.uk by "
        "2026-12-01, see https://shop.example/x?y=1. Limit 3 items; uuid "
        "00000000-0000-4000-8000-000000000001 at 2026-12-01T10:00:00Z"
    )

    assert texts(read.ids) == ["A-1001", "INV_2024-7", "5512"]
    assert texts(read.emails) == ["ana.b@example.co.uk"]
    assert texts(read.urls) == ["https://shop.example/x?y=1"]
    assert texts(read.dates) == ["2026-12-01"]
    assert texts(read.timestamps) == ["2026-12-01T10:00:00Z"]
    assert texts(read.uuids) == ["00000000-0000-4000-8000-000000000001"]
    assert texts(read.numbers) == ["3"]
    assert [m.cents for m in read.money] == [120050]


@pytest.mark.parametrize(
    ("text", "cents", "currency"),
    [
        ("$49.90", 4990, "USD"),
        ("49,90 €", 4990, "EUR"),
        ("EUR 20", 2000, "EUR"),
        ("20 dollars", 2000, "USD"),
        ("500 cents", 500, None),
        ("£1,000", 100_000, "GBP"),
        ("5 bucks", 500, "USD"),
    ],
)
def test_money_is_read_exactly(text: str, cents: int, currency: str | None) -> None:
    read = Reading(f"give me {text} back")

    assert [m.cents for m in read.money] == [cents]
    assert read.currency == currency
    assert read.numbers == ()


def test_quotes_are_found_and_apostrophes_are_none() -> None:
    read = Reading("It's \"one\", 'two words', “three” and «four», isn't it")

    assert texts(read.quotes) == ["one", "two words", "three", "four"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("refund", "refunds"),
        ("refund", "refunded"),
        ("refund", "refunding"),
        ("order", "orders"),
        ("ship", "shipping"),
        ("delivery", "deliveries"),
        ("invoice", "invoices"),
        ("cancel", "cancellation"),
        ("issue", "issuing"),
    ],
)
def test_forms_of_a_word_are_alike(a: str, b: str) -> None:
    assert alike(stem(a), stem(b))


@pytest.mark.parametrize(("a", "b"), [("order", "border"), ("now", "know"), ("list", "listen")])
def test_other_words_are_not_alike(a: str, b: str) -> None:
    assert not alike(stem(a), stem(b))


def filled(message: str, schema: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Arguments that were checked against the schema."""
    arguments = fill(schema, Reading(message), facts).arguments
    jsonschema.Draft202012Validator(schema).validate(arguments)
    return arguments


def needs(**properties: Any) -> dict[str, Any]:
    """A schema that requires all these."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


@pytest.mark.parametrize(
    ("message", "schema", "arguments"),
    [
        ("order A-1001", needs(order_id=TEXT), {"order_id": "A-1001"}),
        ("order 1001", needs(order_id=TEXT), {"order_id": "1001"}),
        ("order 1001", needs(order_id=WHOLE), {"order_id": 1001}),
        ("order #1001", needs(orderId=WHOLE), {"orderId": 1001}),
        (
            "move customer C-9 to order A-1",
            needs(order_id=TEXT, customer_id=TEXT),
            {"order_id": "A-1", "customer_id": "C-9"},
        ),
        (
            "transfer 50 EUR from ACC-1 to ACC-2",
            needs(to_account=TEXT, from_account=TEXT, amount={"type": "number"}, currency=TEXT),
            {"to_account": "ACC-2", "from_account": "ACC-1", "amount": 50, "currency": "EUR"},
        ),
        ("refund 20", needs(amount_cents=WHOLE), {"amount_cents": 2000}),
        ("refund 20 cents", needs(amount_cents=WHOLE), {"amount_cents": 20}),
        ("add 2 and 3.5", needs(a={"type": "number"}, b={"type": "number"}), {"a": 2, "b": 3.5}),
        ("show 5 items, page 2", needs(page=WHOLE, item_count=WHOLE), {"page": 2, "item_count": 5}),
        ("set it HIGH", needs(priority={"enum": ["low", "high"]}), {"priority": "high"}),
        ("set it", needs(priority={"enum": ["low", "high"]}), {"priority": "low"}),
        ("with express", needs(express={"type": "boolean"}), {"express": True}),
        ("without", needs(express={"type": "boolean"}), {"express": False}),
        ("on 2026-12-01", needs(due={"type": "string", "format": "date"}), {"due": "2026-12-01"}),
        ("write ana@example.com", needs(email=TEXT), {"email": "ana@example.com"}),
        ("see https://a.example/b", needs(url=TEXT), {"url": "https://a.example/b"}),
        ("for Ana Smith", needs(customer_name=TEXT), {"customer_name": "Ana Smith"}),
        ("what is a monad", needs(query=TEXT), {"query": "what is a monad"}),
        ('search "blue shoes"', needs(query=TEXT), {"query": "blue shoes"}),
        (
            "merge A-1 and A-2",
            needs(order_ids={"type": "array", "items": TEXT}),
            {"order_ids": ["A-1", "A-2"]},
        ),
        (
            "add red and blue",
            needs(tags={"type": "array", "items": {"enum": ["red", "green", "blue"]}}),
            {"tags": ["red", "blue"]},
        ),
        (
            "ship A-1 to Paris",
            needs(address=needs(city=TEXT), order_id=TEXT),
            {"address": {"city": "Paris"}, "order_id": "A-1"},
        ),
        ("x", needs(mode={"const": "fast"}), {"mode": "fast"}),
        ("x", needs(unit={"type": "string", "default": "kg"}), {"unit": "kg"}),
        ("x", needs(unit={"type": "string", "examples": ["kg"]}), {"unit": "kg"}),
        ("x", needs(n={"type": "integer", "minimum": 7, "multipleOf": 5}), {"n": 10}),
    ],
)
def test_arguments_come_from_the_message_and_the_schema(
    message: str, schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert filled(message, schema) == arguments


def test_arguments_that_may_be_left_out_are_filled_only_when_said() -> None:
    schema = {"type": "object", "properties": {"limit": WHOLE, "note": TEXT, "fast": {"const": 1}}}

    assert filled("list 3 things", schema) == {}
    assert filled("list with limit 3", schema) == {"limit": 3}
    assert filled("list", schema, note="seen before") == {"note": "seen before"}


def test_facts_are_found_under_other_spellings_and_checked() -> None:
    schema = needs(orderId=TEXT, amount_cents={"type": "integer", "minimum": 1})

    assert filled("refund it", schema, order_id="A-1", total_cents=700) == {
        "orderId": "A-1",
        "amount_cents": 700,
    }
    assert filled("refund it", schema, order_id="A-1", amount_cents="a lot")["amount_cents"] == 1


def test_the_sum_of_a_result_is_its_total_and_not_a_part_of_it() -> None:
    schema = needs(amount_cents={"type": "integer", "minimum": 1})
    order = {"tax_cents": 100, "refunded_cents": 200, "total": 9.9, "total_cents": 4999}

    assert filled("refund it", schema, **order) == {"amount_cents": 4999}
    assert filled("refund it", needs(amount={"type": "number"}), **order) == {"amount": 9.9}


def test_a_long_message_is_cut_to_what_the_schema_takes() -> None:
    schema = needs(reason={"type": "string", "minLength": 1, "maxLength": 20})

    assert filled("I would like my money back at once", schema) == {
        "reason": "I would like my mone"
    }


def test_what_nobody_said_is_named() -> None:
    schema = needs(order_id=TEXT, unit={"type": "string", "default": "kg"}, n=WHOLE)

    assert fill(schema, Reading("hello"), {}).invented == ("order_id", "n")


def test_pydantic_s_own_schemas_are_filled() -> None:
    from datetime import date
    from decimal import Decimal
    from enum import Enum
    from typing import Annotated, Literal
    from uuid import UUID

    from pydantic import BaseModel, Field

    class Size(Enum):
        SMALL = "small"
        LARGE = "large"

    class Line(BaseModel):
        sku: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3,}$")]
        quantity: Annotated[int, Field(gt=0, le=10)]
        price: Decimal

    class Input(BaseModel):
        lines: Annotated[list[Line], Field(min_length=2)]
        size: Size
        due: date
        token: UUID
        parent: Line | None
        code: Annotated[str, Field(min_length=12, max_length=14)]
        pair: tuple[int, str]
        names: Annotated[set[str], Field(min_length=3)]
        kind: Literal["a", "b"]

    arguments = filled("a large one", Input.model_json_schema())

    assert Input.model_validate(arguments).size is Size.LARGE


@pytest.mark.parametrize(
    "pattern",
    [
        "^[A-Z]{3}$",
        r"^A-\d{4}$",
        r"^\d{3}-\d{2}-\d{4}$",
        "^(?:foo|bar)+baz?$",
        r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$",
        r"^https?://\S+$",
        r"^(?P<year>\d{4})/(\d\d)$",
        r"[\w.-]+",
        "^$",
        "",
        r"^\+?[1-9]\d{1,14}$",
        "^[]a]+$",
        r"^\[x\]\\$",
        "^.{8,}$",
    ],
)
def test_a_text_is_found_for_a_plain_pattern(pattern: str) -> None:
    text = text_for_pattern(pattern)

    assert text is not None
    assert re.search(pattern, text)


@pytest.mark.parametrize("pattern", ["(", "[", r"^(?=a)b$", r"\1", "a{", "(?<!x", "*"])
def test_no_text_is_found_for_what_is_too_hard(pattern: str) -> None:
    text = text_for_pattern(pattern)

    assert text is None or re.search(pattern, text)


NUMBERS = st.integers(-50, 50)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Schemas that some value fits."""
    kinds = ["string", "integer", "number", "boolean", "enum", "null"]
    match draw(st.sampled_from([*kinds, "object", "array"] if depth else kinds)):
        case "string":
            least = draw(st.integers(0, 20))
            return {"type": "string", "minLength": least, "maxLength": least + 5}
        case "integer":
            low = draw(NUMBERS)
            return {"type": "integer", "minimum": low, "maximum": low + draw(st.integers(0, 9))}
        case "number":
            low = draw(NUMBERS)
            return {"type": "number", "exclusiveMinimum": low, "maximum": low + 1}
        case "enum":
            return {"enum": draw(st.lists(st.text(max_size=3) | NUMBERS, min_size=1, max_size=3))}
        case "object":
            names = st.sampled_from(["order_id", "amount_cents", "city", "query", "tags"])
            parts = draw(st.dictionaries(names, schemas(depth - 1), max_size=4))
            required = draw(st.lists(st.sampled_from(sorted(parts)), unique=True)) if parts else []
            return {
                "type": "object",
                "properties": parts,
                "required": required,
                "additionalProperties": False,
            }
        case "array":
            return {
                "type": "array",
                "items": draw(schemas(depth - 1)),
                "minItems": draw(st.integers(0, 2)),
            }
        case kind:
            return {"type": kind}


@given(
    schemas(3).filter(lambda s: s.get("type") == "object"),
    st.sampled_from(["", "refund $5 of A-1 and B-22 in Paris", '"x" 7 ana@example.com 2026-01-01']),
)
@settings(max_examples=300, deadline=None)
def test_arguments_are_valid_whatever_the_schema(schema: dict[str, Any], message: str) -> None:
    facts = {"order_id": 7, "city": "Rome", "tags": ["a"], "amount_cents": -1}
    arguments = fill(schema, Reading(message), facts).arguments

    jsonschema.Draft202012Validator(schema).validate(arguments)


@given(st.text(max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_message_can_be_read(text: str) -> None:
    read = Reading(text)

    assert fill(needs(order_id=TEXT, amount=WHOLE, query=TEXT), read, {}).arguments
    assert (read.quotes, read.names, read.currency, read.because) is not None


def test_schemas_that_refer_to_themselves_come_to_an_end() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "next": {"$ref": "#/$defs/Node"}, "loop": {}},
        "required": ["next", "loop"],
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "required": ["children"],
            },
            "Loop": {"allOf": [{"$ref": "#/$defs/Loop"}]},
        },
    }

    assert filled("x", tree)["next"] == {"children": []}
    endless = {**tree, "properties": {"left": {"$ref": "#/$defs/Loop"}}, "required": ["left"]}
    assert "left" in fill(endless, Reading("x"), {}).arguments
    assert InputSchema(endless).sample({"$ref": "#/nowhere/at/all"}) == "example"


PIECES = "x 1 a- 1a “ « \" ' 1,111, USD_ @ a@ http:// # Ab_ because_ 1.1_ -1"
"""What hostile messages are made of; `_` is a space."""
READ_ALL = """
import sys
from capuchin_yaml.models.guess.reading import Reading
for piece in sys.argv[1:]:
    piece = piece.replace("_", " ")
    text = (piece * 262_144)[:262_144]
    read = Reading(text)
    found = read.quotes, read.names, read.because, read.currency
    assert not read.says_any(["order"]) and not read.mentions("order")
    assert read.text == text.strip()
    print(piece, flush=True)
"""


def test_the_longest_message_is_read_at_once_whatever_it_is_made_of() -> None:
    """Case: one long message without spaces stops the worker of all conversations."""
    pieces = PIECES.split()

    # Why a program of its own: a regular expression cannot be interrupted.
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, *pieces], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(pieces)
