"""A checked file -> AgentSpec, or what is wrong with the meaning of its values.

Keys that start with `x-` are notes: they are not part of the spec, nor of its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from capuchin_yaml.compiler.advice import advise
from capuchin_yaml.compiler.bind_approval import bind_approval
from capuchin_yaml.compiler.bind_model import bind_model, bind_settings, model_places
from capuchin_yaml.compiler.bind_prompt import bind_prompt
from capuchin_yaml.compiler.bind_requires import bind_requires
from capuchin_yaml.compiler.bind_rules import bind_rules
from capuchin_yaml.compiler.bind_tools import bind_tools
from capuchin_yaml.compiler.bind_variables import bind_injected, bind_variables
from capuchin_yaml.compiler.check import Checked
from capuchin_yaml.compiler.document import Document
from capuchin_yaml.compiler.own_files import AgentFolder
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Severity
from capuchin_yaml.spec import (
    TOKENS_PRICED,
    AgentSpec,
    ApprovalSpec,
    BudgetPer,
    BudgetSpec,
    Limits,
    Listing,
    OnExceed,
    PriceSpec,
    PriceType,
    ToolSpec,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a checked file means."""

    spec: AgentSpec | None = None
    diagnostics: Sequence[Diagnostic] = ()
    parts: Mapping[FilePath, str] = field(default_factory=dict)
    """Other files that were read, with their text."""


def bind(
    document: Document, checked: Checked, source: ToolSource | None, folder: AgentFolder | None
) -> Bound:
    """The spec of a file without errors, and everything found on the way.

    There is no spec as soon as there is one error anywhere, so no mistake can leave an agent
    that is more permissive than it was meant to be. `folder` is where the file lies; without
    it references to other files are not looked at.
    """
    if document.root is None or document.root.kind != "map":
        return Bound()
    reading = Reading(document, checked)
    variables = bind_variables(reading)
    injected = bind_injected(reading)
    prompt = bind_prompt(reading, variables, injected, folder)
    model = bind_model(reading, folder)
    settings = bind_settings(reading, folder)
    tools, uses = bind_tools(reading, source)
    bind_requires(reading, uses, source)
    rules = bind_rules(reading, tools, uses, variables, injected)
    approval = bind_approval(reading, uses, rules)
    limits = _bind_limits(reading)
    budget = _bind_budget(reading)
    price = _bind_price(reading)
    found = [*document.diagnostics, *checked.diagnostics, *reading.problems]
    name = reading.text(("name",))
    if name is None or prompt is None or any(d.severity is Severity.ERROR for d in found):
        advise(reading, None, uses)
        return Bound(None, reading.problems, reading.parts)
    spec = AgentSpec(
        name=name,
        prompt=prompt,
        version=reading.text(("version",)) or "0.0.0",
        description=reading.text(("description",)) or "",
        model=model,
        model_settings=settings,
        variables=variables,
        injected=injected,
        tools=tools,
        approval=approval,
        limits=limits,
        budget=budget,
        price=price,
        listing=_bind_listing(reading),
    )
    advise(reading, spec, uses)
    return Bound(spec, reading.problems, reading.parts)


def bind_approval_alone(
    document: Document, checked: Checked, tools: Sequence[ToolSpec]
) -> ApprovalSpec:
    """What the approval of a file says of these tools, with nothing reported."""
    reading = Reading(document, checked)
    _, uses = bind_tools(reading, None)
    variables = bind_variables(reading)
    rules = bind_rules(reading, tools, uses, variables, bind_injected(reading))
    return bind_approval(reading, uses, rules)


def _bind_limits(reading: Reading) -> Limits:
    default = Limits()
    return Limits(
        max_steps=reading.whole(("limits", "max_steps"), default.max_steps),
        max_tool_calls=reading.whole(("limits", "max_tool_calls"), default.max_tool_calls),
        max_parallel_calls=reading.whole(
            ("limits", "max_parallel_calls"), default.max_parallel_calls
        ),
        same_call=reading.whole(("limits", "same_call"), default.same_call),
        idle_close_s=reading.duration_s(("limits", "idle_close")),
    )


def _bind_budget(reading: Reading) -> BudgetSpec | None:
    if reading.document.node(("budget",)) is None:
        return None
    reading.warning(
        "no-effect",
        "this version only records the budget: nothing stops when it is used up",
        reading.document.key_span(("budget",)),
        "until a version does, bound the work with limits: {max_steps: 8}",
    )
    if reading.node(("budget", "max_usd")) is not None:
        _refuse_unpriced(reading)
    periods: dict[str, BudgetPer] = {"conversation": "conversation", "day": "day"}
    ends: dict[str, OnExceed] = {"ask": "ask", "stop": "stop", "warn": "warn"}
    return BudgetSpec(
        max_usd=reading.positive_amount(("budget", "max_usd"), "remove budget.max_usd"),
        max_tokens=reading.whole(("budget", "max_tokens"), 0) or None,
        per=periods.get(reading.text(("budget", "per")) or "", "conversation"),
        on_exceed=ends.get(reading.text(("budget", "on_exceed")) or "", "ask"),
    )


def _refuse_unpriced(reading: Reading) -> None:
    from capuchin_yaml.models.known import has_price

    for model, where in model_places(reading):
        if not has_price(model):
            reading.error(
                "unpriced-model",
                f"nobody knows what {shown(model)} costs, so a budget in dollars cannot be kept",
                where,
                "budget: {max_tokens: 1000000}",
                Annotation(reading.document.key_span(("budget", "max_usd")), "the budget"),
            )


def _bind_price(reading: Reading) -> PriceSpec:
    types: dict[str, PriceType] = {
        "free": "free",
        "per_call": "per_call",
        "per_conversation": "per_conversation",
        "per_token": "per_token",
    }
    kind = types.get(reading.text(("price", "type")) or "free", "free")
    unit = reading.whole(("price", "unit"), TOKENS_PRICED)
    return PriceSpec(
        type=kind,
        amount=reading.positive_amount(("price", "amount")),
        currency=reading.text(("price", "currency")),
        min=reading.amount(("price", "min")),
        min_margin=reading.amount(("price", "min_margin")),
        input=reading.amount(("price", "input")),
        output=reading.amount(("price", "output")),
        unit=unit if kind == "per_token" else None,
    )


def _bind_listing(reading: Reading) -> Listing:
    return Listing(
        license=reading.text(("listing", "license")),
        author=reading.text(("listing", "author")),
        homepage=reading.text(("listing", "homepage")),
        categories=reading.texts(("listing", "categories")),
        tags=reading.texts(("listing", "tags")),
    )
