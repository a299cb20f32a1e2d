"""Warnings about what is allowed by the format and probably not meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capuchin_yaml.compiler.bind_tools import ToolUses
from capuchin_yaml.compiler.document import Node, Path
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.wording import shown
from capuchin_yaml.policy.gating import answers
from capuchin_yaml.spec import AgentSpec

_SECRET = re.compile(
    r"""\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}     # keys of model providers
      |gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}
      |xox[abprs]-[\w-]{10,}
      |A(?:KIA|SIA)[A-Z0-9]{16}|AIza[\w-]{30,})
    |-----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    |\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?![<$*{])[^\s/@]{3,}@""",
    re.VERBOSE,
)


def advise(reading: Reading, spec: AgentSpec | None, uses: ToolUses) -> None:
    """Add the warnings; those about power need a spec, so a file without errors."""
    _unknown_provider(reading)
    for node in _scalars(reading.document.root):
        if isinstance(node.value, str) and _SECRET.search(node.text):
            reading.warning(
                "secret-literal",
                "this looks like a secret, and whoever reads the file has it",
                node.span,
                "in the config of a tool write {env: NAME}; then make the secret anew",
            )
    if spec is None:
        return
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


def _unknown_provider(reading: Reading) -> None:
    where: Path = ("model",)
    model = reading.text(where)
    if model is None:
        where = ("model", "name")
        model = reading.text(where)
    if model is None:
        return
    from capuchin_yaml.models.registry import PROVIDERS

    provider = model.partition(":")[0]
    if provider in PROVIDERS:
        return
    meant = nearest(provider, PROVIDERS)
    reading.warning(
        "unknown-model",
        f"this version has no model provider {shown(provider)}; it has {', '.join(PROVIDERS)}",
        where,
        f"write {where[-1]}: {meant}:{model.partition(':')[2]}" if meant is not None else None,
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
