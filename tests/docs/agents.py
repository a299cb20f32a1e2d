"""Agent files of the docs: whole ones, and parts of one that are completed to be compiled."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from capuchin_yaml.compiler.load import Compiled, compile_bytes
from capuchin_yaml.compiler.render import concise, report
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.tools.registry import GROUP, Registry

FILE = Path("agent.yaml")
KEYS = frozenset(read_schema("agent.v1")["properties"])
_NEEDED = {"apiVersion": "capuchin/v1", "name": "example", "prompt": "Answer."}
_PACKAGES = ("billing", "clock")


def is_part(value: object) -> bool:
    """Whether a YAML value is a part of an agent file: a map with no other keys."""
    return isinstance(value, dict) and all(k in KEYS or k.startswith("x-") for k in value)


def completed(text: str) -> str:
    """A part of an agent file with what it lacks below it, so that its own lines keep place."""
    keys = {line.partition(":")[0] for line in text.splitlines()}
    if "apiVersion" in keys or not keys - {""} or text.startswith("#"):
        return text
    needed = dict(_NEEDED)
    if "approval" in keys:
        needed["tools"] = "[billing.lookup_order, billing.issue_refund]"
    return text + "".join(f"{k}: {v}\n" for k, v in needed.items() if k not in keys)


def compiled(text: str) -> Compiled:
    """The file compiled against the packages of this project alone."""
    found = [e for e in entry_points(group=GROUP) if e.name in _PACKAGES]
    return compile_bytes(text.encode(), FILE, Registry(found))


def shown_briefly(of: Compiled) -> str:
    """Its diagnostics in the concise form, each with its help below."""
    lines: list[str] = []
    for diagnostic in of.diagnostics:
        lines.append(concise(diagnostic))
        lines += [f"  help: {diagnostic.help}"] if diagnostic.help else []
    return "".join(f"{line}\n" for line in lines)


def shown_whole(of: Compiled) -> str:
    """Its diagnostics as `validate` prints them."""
    return report(of.diagnostics, {str(FILE): of.source}, "full")
