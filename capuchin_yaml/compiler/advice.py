"""Warnings about what is allowed by the format and probably not meant."""

from __future__ import annotations

from collections.abc import Iterator

from capuchin_yaml.compiler.bind_model import model_places
from capuchin_yaml.compiler.bind_tools import ToolUses
from capuchin_yaml.compiler.document import Node, Path
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.secret_text import (
    SECRET_HELP,
    SECRET_MESSAGE,
    looks_secret,
    may_hold_secrets,
)
from capuchin_yaml.compiler.wording import either, shown
from capuchin_yaml.policy.gating import answers, rules_about
from capuchin_yaml.spec import AgentSpec, ToolSpec


def advise(reading: Reading, spec: AgentSpec | None, uses: ToolUses) -> None:
    """Add the warnings; those about power need a spec, so a file without errors."""
    for model, where in model_places(reading):
        _unknown_model(reading, model, where)
    # Why first: looking at each text alone takes ten times as long, and few files hold a secret.
    suspicious = may_hold_secrets(reading.document.written)
    for node in _scalars(reading.document.root) if suspicious else ():
        if isinstance(node.value, str) and looks_secret(node.text):
            reading.warning("secret-literal", SECRET_MESSAGE, node.span, SECRET_HELP)
    if spec is None:
        return
    _in_vain(reading, spec)
    for tool in spec.tools:
        if tool.effect != "destructive" or answers(spec, tool) != {"allow"}:
            continue
        use = next(u for u in uses.uses if (u.identity, u.alias) == (tool.identity, tool.alias))
        reading.warning(
            "ungated-destructive",
            f"nothing asks before {tool.identity}, which is destructive",
            use.span,
            f"approval: {{policy: denylist, tools: [{tool.identity}]}}",
        )


def _in_vain(reading: Reading, spec: AgentSpec) -> None:
    """Warn of entries of the policy's list that change nothing."""
    block = reading.node(("approval", "tools"))
    for item in block.items if block is not None else ():
        key = "identity" if "." in item.text else "alias"
        tools = [tool for tool in spec.tools if getattr(tool, key) == item.text]
        reason = _why_in_vain(spec, tools) if tools else None
        if reason is not None:
            reading.warning(
                "listed-in-vain",
                f"{shown(item.text)} is listed in vain: {reason}",
                item.span,
                "remove this entry",
            )


def _why_in_vain(spec: AgentSpec, tools: list[ToolSpec]) -> str | None:
    if all(any(rule.when is None for rule in rules_about(spec, tool)) for tool in tools):
        return "a rule without a condition answers every call before the list is looked at"
    if spec.approval.policy == "allowlist" and all(tool.needs_approval for tool in tools):
        return "its author wants a person to decide, so it asks all the same"
    return None


def _unknown_model(reading: Reading, model: str, where: Path) -> None:
    from capuchin_yaml.models.known import PROVIDERS

    provider, _, name = model.partition(":")
    if provider in PROVIDERS:
        own_address = (*where[:-1], "base_url") if where[-1] == "name" else None
        if own_address is None or reading.document.node(own_address) is None:
            _unknown_name(reading, provider, name, where)
        return
    meant = nearest(provider, PROVIDERS)
    reading.warning(
        "unknown-model",
        f"this version has no model provider {shown(provider)}; it has {', '.join(PROVIDERS)}",
        where,
        f"write {'model' if isinstance(where[-1], int) else where[-1]}: {meant}:{name}"
        if meant is not None
        else "write provider:name, such as anthropic:claude-opus-4-8, or rehearsal",
    )


def _unknown_name(reading: Reading, provider: str, name: str, where: Path) -> None:
    from capuchin_yaml.models.known import is_known, known_names

    if is_known(provider, name):
        return
    known = known_names(provider)
    meant = nearest(name, known)
    # The newest of a provider come last in the order of their names.
    others = [f"{provider}:{other}" for other in sorted(known)[-3:]]
    reading.warning(
        "unknown-model",
        f"{provider} is not known to have a model {shown(name)}",
        where,
        f"did you mean '{provider}:{meant}'?"
        if meant is not None
        else f"if there is none of that name, write another, such as {either(others)}",
    )


def _scalars(node: Node | None) -> Iterator[Node]:
    if node is None or node.broken:
        return
    if node.kind == "scalar":
        yield node
    for entry in node.entries.values():
        yield from _scalars(entry.node)
    for item in node.items:
        yield from _scalars(item)
