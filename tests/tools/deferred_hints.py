"""A tool whose hints are texts until they are resolved."""

from __future__ import annotations

from dataclasses import dataclass

from capuchin_yaml.tools.api import ToolContext, tool


@dataclass
class Thing:
    """A thing."""

    size: int


@tool
def later(thing: Thing, ctx: ToolContext) -> int:
    """Take a thing."""
    return thing.size
