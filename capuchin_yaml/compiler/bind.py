"""A checked file -> AgentSpec, or what is wrong with the meaning of its values.

Keys that start with `x-` are notes: they are not part of the spec, nor of its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from capuchin_yaml.compiler.advice import advise
from capuchin_yaml.compiler.bind_approval import bind_approval
from capuchin_yaml.compiler.bind_prompt import bind_prompt
from capuchin_yaml.compiler.bind_requires import bind_requires
from capuchin_yaml.compiler.bind_rules import bind_rules
from capuchin_yaml.compiler.bind_tools import bind_tools
from capuchin_yaml.compiler.bind_variables import bind_injected, bind_variables
from capuchin_yaml.compiler.check import Checked
from capuchin_yaml.compiler.document import Document, Path
from capuchin_yaml.compiler.own_files import own_file
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.diagnostics import Diagnostic, Severity
from capuchin_yaml.spec import AgentSpec, Limits, Listing, ModelSettings, PriceSpec, PriceType


@dataclass(frozen=True, slots=True)
class Bound:
    """What a checked file means."""

    spec: AgentSpec | None = None
    diagnostics: Sequence[Diagnostic] = ()
    parts: Mapping[FilePath, str] = field(default_factory=dict)
    """Other files that were read, with their text."""


def bind(
    document: Document, checked: Checked, source: ToolSource | None, folder: FilePath | None
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
    model = _bind_model(reading, folder)
    settings = _bind_settings(reading)
    tools, uses = bind_tools(reading, source)
    bind_requires(reading, uses, source)
    rules = bind_rules(reading, tools, uses, variables, injected)
    approval = bind_approval(reading, uses, rules)
    limits = _bind_limits(reading)
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
        price=price,
        listing=_bind_listing(reading),
    )
    advise(reading, spec, uses)
    return Bound(spec, reading.problems, reading.parts)


def _bind_model(reading: Reading, folder: FilePath | None) -> str | None:
    node = reading.document.node(("model",))
    where: Path = ("model", "name") if node is not None and node.kind == "map" else ("model",)
    model = reading.text(where)
    if model is not None and folder is not None and model.startswith("scripted:"):
        own_file(reading, folder, model.removeprefix("scripted:"), where)
    return model


def _bind_settings(reading: Reading) -> ModelSettings:
    temperature = reading.node(("model", "temperature"))
    thinking = reading.whole(("model", "thinking"), 0) or None
    most = reading.whole(("model", "max_tokens"), 0) or None
    if thinking is not None and thinking >= (most or 4096):
        reading.error(
            "out-of-range",
            f"model.thinking must be less than model.max_tokens, which is {most or 4096}",
            ("model", "thinking"),
            f"max_tokens: {thinking + 4096}",
        )
    if thinking is not None and temperature is not None and temperature.value != 1:
        reading.error(
            "needless-key",
            "a model that thinks takes no temperature",
            reading.document.key_span(("model", "temperature")),
            "remove the line",
        )
    return ModelSettings(
        max_tokens=most,
        temperature=float(temperature.value) if temperature is not None else None,
        thinking_tokens=thinking,
        timeout_s=reading.duration_s(("model", "timeout")),
    )


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


def _bind_price(reading: Reading) -> PriceSpec:
    types: dict[str, PriceType] = {
        "free": "free",
        "per_call": "per_call",
        "per_conversation": "per_conversation",
    }
    return PriceSpec(
        type=types.get(reading.text(("price", "type")) or "free", "free"),
        amount=reading.positive_amount(("price", "amount")),
        currency=reading.text(("price", "currency")),
        min=reading.amount(("price", "min")),
        min_margin=reading.amount(("price", "min_margin")),
    )


def _bind_listing(reading: Reading) -> Listing:
    return Listing(
        license=reading.text(("listing", "license")),
        author=reading.text(("listing", "author")),
        homepage=reading.text(("listing", "homepage")),
        categories=reading.texts(("listing", "categories")),
        tags=reading.texts(("listing", "tags")),
    )
