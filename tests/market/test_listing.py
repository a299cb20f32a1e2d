"""A listing shows what a buyer needs and nothing that is the seller's or the machine's."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capuchin_yaml.market.listing import listing, listing_text
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import (
    AgentSpec,
    ApprovalSpec,
    JsonValue,
    Limits,
    Listing,
    ModelChoice,
    ModelSettings,
    PriceSpec,
    RuleSpec,
    ToolSpec,
    VariableSpec,
)

MARKER = "MARKER-that-must-not-leave"
validator = Draft202012Validator(read_schema("listing.v1"))


def tool(identity: str, effect: Any = "read", **changes: Any) -> ToolSpec:
    """A tool of the package that its identity names."""
    entry, _, name = identity.partition(".")
    spec = ToolSpec(
        identity=identity,
        alias=name,
        description="",
        input_schema={"type": "object"},
        effect=effect,
        idempotent=False,
        needs_approval=False,
        tool_version="1",
        distribution=f"capuchin-{entry}",
        distribution_version="0.1.0",
    )
    return dataclasses.replace(spec, **changes)


BILLING = AgentSpec(
    name="billing",
    prompt="You are a billing agent.",
    version="1.2.0",
    description="Refunds orders.",
    model="anthropic:claude-opus-4-8",
    variables={"zone": VariableSpec(), "company": VariableSpec("string", required=True)},
    tools=(tool("billing.lookup_order"), tool("billing.issue_refund", "write"), tool("acme.go")),
    approval=ApprovalSpec("denylist", ("billing.issue_refund",)),
    price=PriceSpec("per_call", "0.25", "USD"),
    listing=Listing("MIT", "Acme", None, ("support",), ("refunds",)),
)


def test_a_listing_is_exactly_this() -> None:
    assert listing(BILLING) == {
        "v": 1,
        "name": "billing",
        "version": "1.2.0",
        "description": "Refunds orders.",
        "definition_hash": BILLING.definition_hash,
        "model": "anthropic:claude-opus-4-8",
        "price": {
            "type": "per_call",
            "amount": "0.25",
            "currency": "USD",
            "unit": "answered user message",
        },
        "packages": [
            {"distribution": "capuchin-acme", "version": "0.1.0"},
            {"distribution": "capuchin-billing", "version": "0.1.0"},
        ],
        "tools": [
            {"identity": "acme.go", "version": "1", "effect": "read", "asks": "never"},
            {
                "identity": "billing.issue_refund",
                "version": "1",
                "effect": "write",
                "asks": "always",
            },
            {"identity": "billing.lookup_order", "version": "1", "effect": "read", "asks": "never"},
        ],
        "needs": [],
        "approval": {
            "policy": "denylist",
            "sentence": "denylist: asks before billing.issue_refund; everything else runs",
        },
        "variables": [
            {"name": "company", "type": "string", "required": True},
            {"name": "zone", "type": "string", "required": False},
        ],
        "listing": {
            "license": "MIT",
            "author": "Acme",
            "homepage": None,
            "categories": ["support"],
            "tags": ["refunds"],
        },
    }


def test_the_smallest_agent_has_a_valid_listing() -> None:
    shown = listing(AgentSpec(name="hello", prompt="Hi."))

    validator.validate(shown)
    assert shown["model"] is None
    assert shown["price"] == {"type": "free", "amount": None, "currency": None, "unit": None}


def test_nothing_outside_the_list_leaves() -> None:
    spec = AgentSpec(
        name="a",
        prompt=MARKER,
        model=f"scripted:/home/{MARKER}/script.yaml",
        variables={
            "v": VariableSpec("string", f"{MARKER}", enum=(MARKER, "x"), description=MARKER)
        },
        injected=(MARKER,),
        tools=(
            tool(
                "acme.go",
                alias=MARKER,
                description=MARKER,
                input_schema={"type": "object", "description": MARKER, MARKER: MARKER},
                config={"database": {"env": "SALES_DB"}, MARKER: MARKER},
            ),
        ),
        approval=ApprovalSpec("allowlist", (MARKER, f"{MARKER}.x")),
        price=PriceSpec("per_call", "1", "USD", min=MARKER, min_margin=MARKER),
    )

    assert MARKER in json.dumps(spec.to_json())
    assert MARKER not in listing_text(spec)


SHOWN = {
    "name",
    "version",
    "description",
    "model",
    "price.type",
    "price.amount",
    "price.currency",
    "approval.policy",
    "listing.license",
    "listing.author",
    "listing.homepage",
    "listing.categories",
    "listing.tags",
    "variables",  # the names
    "variables.type",
    "tools.identity",
    "tools.effect",
    "tools.tool_version",
    "tools.distribution",
    "tools.distribution_version",
    "model_settings.key_variable",
    "model_settings.fallback.settings.key_variable",
}


def marked(value: object, path: tuple[str, ...]) -> dict[str, object]:
    """Each text field of a spec, by its path, with the spec that has the marker there alone."""
    found: dict[str, object] = {}
    assert dataclasses.is_dataclass(value)
    assert not isinstance(value, type)
    for field in dataclasses.fields(value):
        name = ".".join((*path, field.name))
        inner = getattr(value, field.name)
        if dataclasses.is_dataclass(inner):
            found |= {
                k: dataclasses.replace(value, **{field.name: v})
                for k, v in marked(inner, (*path, field.name)).items()
            }
        elif isinstance(inner, tuple) and inner and dataclasses.is_dataclass(inner[0]):
            found |= {
                k: dataclasses.replace(value, **{field.name: (v, *inner[1:])})
                for k, v in marked(inner[0], (*path, field.name)).items()
            }
        elif isinstance(inner, Mapping) and any(map(dataclasses.is_dataclass, inner.values())):
            first = next(iter(inner.values()))
            found[name] = dataclasses.replace(value, **{field.name: {MARKER: first}})
            found |= {
                k: dataclasses.replace(value, **{field.name: {"v": v}})
                for k, v in marked(first, (*path, field.name)).items()
            }
        elif isinstance(inner, Mapping):
            found[name] = dataclasses.replace(value, **{field.name: {MARKER: MARKER}})
        elif isinstance(inner, tuple):
            found[name] = dataclasses.replace(value, **{field.name: (MARKER,)})
        elif isinstance(inner, str | None):
            found[name] = dataclasses.replace(value, **{field.name: MARKER})
    return found


RULED = dataclasses.replace(
    BILLING,
    approval=dataclasses.replace(
        BILLING.approval,
        rules=(RuleSpec("ask", "acme.go", "args.n > 1", "Because.", "args.n > 1.0"),),
    ),
    model_settings=ModelSettings(fallback=(ModelChoice("rehearsal"),)),
)


@pytest.mark.parametrize("path", sorted(marked(RULED, ())))
def test_only_the_named_fields_show_what_is_in_them(path: str) -> None:
    spec = marked(RULED, ())[path]
    assert isinstance(spec, AgentSpec)
    if path in ("approval.policy", "price.type", "approval.rules.then"):
        return  # closed sets, which the compiler checks

    assert (MARKER in listing_text(spec)) == (path in SHOWN)


@pytest.mark.parametrize(
    ("aliases", "asks"),
    [(("go", "run"), "always"), (("go",), "sometimes"), ((), "never")],
)
def test_a_tool_with_two_names_says_how_far_it_is_gated(
    aliases: tuple[str, ...], asks: str
) -> None:
    tools = (tool("acme.go", alias="go"), tool("acme.go", alias="run"))
    spec = AgentSpec(name="a", prompt="", tools=tools, approval=ApprovalSpec("denylist", aliases))

    (row,) = listing(spec)["tools"]
    assert row["asks"] == asks


def test_a_tool_whose_author_wants_a_person_is_shown_as_asking() -> None:
    tools = (tool("acme.go", needs_approval=True),)
    spec = AgentSpec(name="a", prompt="", tools=tools, approval=ApprovalSpec("auto"))

    assert listing(spec)["tools"][0]["asks"] == "always"


def test_two_exports_are_the_same_bytes_whatever_the_order_of_the_file() -> None:
    turned = dataclasses.replace(BILLING, variables=dict(reversed(list(BILLING.variables.items()))))

    assert listing_text(turned) == listing_text(BILLING)
    assert listing_text(BILLING).endswith("}\n")


@pytest.mark.parametrize(
    "price",
    [
        {"type": "per_call", "amount": "-1", "currency": "USD", "unit": "conversation"},
        {"type": "per_call", "amount": "3,50", "currency": "USD", "unit": "conversation"},
        {"type": "per_call", "amount": "1e3", "currency": "USD", "unit": "conversation"},
        {"type": "per_call", "amount": "007", "currency": "USD", "unit": "conversation"},
        {"type": "per_call", "amount": 0.25, "currency": "USD", "unit": "conversation"},
        {"type": "per_call", "amount": "1", "currency": "usd", "unit": "conversation"},
        {"type": "per_call", "amount": "1", "currency": None, "unit": "conversation"},
        {"type": "per_call", "amount": None, "currency": None, "unit": None},
        {"type": "free", "amount": "1", "currency": "USD", "unit": "conversation"},
        {"type": "free"},
    ],
)
def test_the_schema_refuses_a_price_that_nobody_could_charge(price: JsonValue) -> None:
    assert not validator.is_valid({**listing(BILLING), "price": price})


@pytest.mark.parametrize("key", ["prompt", "base_url", "config"])
def test_the_schema_has_no_room_for_more(key: str) -> None:
    assert not validator.is_valid({**listing(BILLING), key: "x"})


words = st.text(min_size=1, max_size=5)
names = st.from_regex(r"[a-z]{1,3}\.[a-z]{1,3}", fullmatch=True)
amounts = st.from_regex(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?", fullmatch=True)
prices = st.one_of(
    st.just(PriceSpec()),
    st.builds(
        PriceSpec,
        st.sampled_from(["per_call", "per_conversation"]),
        amounts,
        st.from_regex("[A-Z]{3}", fullmatch=True),
    ),
)
specs = st.builds(
    AgentSpec,
    name=words,
    prompt=words,
    version=words,
    description=st.text(),
    model=st.none() | words,
    variables=st.dictionaries(
        words,
        st.builds(
            VariableSpec,
            st.sampled_from(["string", "integer", "number", "boolean"]),
            required=st.booleans(),
        ),
    ),
    tools=st.lists(
        st.builds(tool, names, st.sampled_from(["read", "write", "destructive"]), alias=words)
    ).map(tuple),
    approval=st.builds(
        ApprovalSpec,
        st.sampled_from(["default", "auto", "all", "allowlist", "denylist"]),
        st.lists(names).map(tuple),
    ),
    limits=st.just(Limits()),
    price=prices,
    listing=st.builds(Listing, st.none() | words, categories=st.lists(words).map(tuple)),
)


@given(specs)
def test_every_listing_is_valid_against_the_public_schema(spec: AgentSpec) -> None:
    validator.validate(json.loads(listing_text(spec)))
