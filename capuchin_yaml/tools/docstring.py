"""Reads a Google-style docstring: what the tool does, and what each parameter means."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_SECTION = re.compile(r"(Args|Arguments|Parameters|Params):\s*")
_PARAMETER = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)")


@dataclass(frozen=True, slots=True)
class Docstring:
    """The parts of a docstring that a model reads."""

    description: str
    """The first paragraph, on one line."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What the `Args:` section says of each name, each on one line."""


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring; a missing one has a blank description."""
    lines = inspect.cleandoc(text or "").splitlines()
    first = next((i for i, line in enumerate(lines) if _SECTION.fullmatch(line)), len(lines))
    paragraph: list[str] = []
    for line in lines[:first]:
        if not line.strip():
            break
        paragraph.append(line.strip())
    return Docstring(" ".join(paragraph), _parameters(lines[first + 1 :]))


def _parameters(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    name: str | None = None
    indent: int | None = None
    for line in lines:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            break  # the next section
        indent = depth if indent is None else indent
        match = _PARAMETER.fullmatch(line.strip()) if depth == indent else None
        if match:
            name = match["name"]
            found[name] = [match["text"].strip()]
        elif name is not None:
            found[name].append(line.strip())
    return {name: " ".join(filter(None, words)) for name, words in found.items()}
