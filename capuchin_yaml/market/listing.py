"""What a marketplace is shown of an agent: a fixed list of fields, and nothing else."""

from __future__ import annotations

import json

from capuchin_yaml.policy.gating import answers
from capuchin_yaml.policy.needs import needs_of
from capuchin_yaml.policy.sentence import policy_sentence
from capuchin_yaml.spec import TOKENS_PRICED, AgentSpec, JsonValue, PriceSpec

_FILE_PROVIDERS = frozenset({"scripted"})
_UNITS = {"per_call": "answered user message", "per_conversation": "conversation"}


def listing(spec: AgentSpec) -> dict[str, JsonValue]:
    """Return the listing of an agent; equal specs give equal listings.

    It holds no prompt, no tool config, no address, no default of a variable, no internal
    margin and no path: what is not named here never leaves.
    Keep in step with schemas/listing.v1.schema.json (tests/market/test_listing.py).
    """
    return {
        "v": 1,
        "name": spec.name,
        "version": spec.version,
        "description": spec.description,
        "definition_hash": spec.definition_hash,
        "model": _model_name(spec.model),
        "price": _price(spec.price),
        "packages": _packages(spec),
        "tools": _tools(spec),
        "needs": [{"variable": n.variable or None, "tool": n.tool} for n in needs_of(spec)],
        "approval": {"policy": spec.approval.policy, "sentence": policy_sentence(spec)},
        "variables": [
            {"name": name, "type": variable.type, "required": variable.required}
            for name, variable in sorted(spec.variables.items())
        ],
        "listing": {
            "license": spec.listing.license,
            "author": spec.listing.author,
            "homepage": spec.listing.homepage,
            "categories": list(spec.listing.categories),
            "tags": list(spec.listing.tags),
        },
    }


def listing_text(spec: AgentSpec) -> str:
    """Return the listing as the text of a JSON file: the same bytes for the same spec."""
    return json.dumps(listing(spec), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _model_name(model: str | None) -> str | None:
    """The model without what follows it for providers that read a file of this machine."""
    if model is None:
        return None
    provider = model.partition(":")[0]
    return provider if provider in _FILE_PROVIDERS else model


def _price(price: PriceSpec) -> dict[str, JsonValue]:
    return {
        "type": price.type,
        "amount": price.amount,
        "currency": price.currency,
        "unit": _UNITS.get(price.type)
        or (f"{price.unit or TOKENS_PRICED} tokens" if price.type == "per_token" else None),
        **({"input": price.input, "output": price.output} if price.type == "per_token" else {}),
    }


def _packages(spec: AgentSpec) -> list[JsonValue]:
    pairs = {(t.distribution, t.distribution_version) for t in spec.tools}
    return [{"distribution": name, "version": version} for name, version in sorted(pairs)]


def _tools(spec: AgentSpec) -> list[JsonValue]:
    """One row for each identity; an agent may use a tool twice, under two names."""
    rows: list[JsonValue] = []
    for identity in sorted({t.identity for t in spec.tools}):
        uses = [t for t in spec.tools if t.identity == identity]
        can = frozenset[str]().union(*(answers(spec, t) for t in uses))
        rows.append(
            {
                "identity": identity,
                "version": uses[0].tool_version,
                "effect": uses[0].effect,
                "asks": "never"
                if can == {"allow"}
                else "sometimes"
                if "allow" in can
                else "always",
            }
        )
    return rows
