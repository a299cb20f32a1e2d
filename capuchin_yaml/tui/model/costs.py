"""Tokens by conversation, agent or model, from what is known so far. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from capuchin_yaml.tui.model.fleet import Fleet
from capuchin_yaml.tui.model.tokens import TokenCount

By: TypeAlias = Literal["conversation", "agent", "model"]


@dataclass(slots=True)
class CostLine:
    """One line of the table; `talks` conversations are in it."""

    key: str
    label: str
    tokens: TokenCount = field(default_factory=TokenCount)
    talks: int = 0


@dataclass(frozen=True, slots=True)
class CostTable:
    """Lines with the most tokens first, their sum, and how much of the list was read."""

    lines: tuple[CostLine, ...]
    total: TokenCount
    read: int
    listed: int


def cost_table(fleet: Fleet, by: By) -> CostTable:
    """Add up every listed conversation; one that is watched counts by its own events."""
    lines: dict[str, CostLine] = {}
    total = TokenCount()
    read = 0
    for row in fleet.rows.values():
        talk = fleet.talks.get(row.id)
        known = fleet.usage.get(row.id)
        if talk is not None and talk.is_live:
            tokens, model = talk.usage, talk.model
        elif known is not None:
            tokens, model = known.tokens, known.model
        else:
            continue
        read += 1
        total.add(tokens)
        title = fleet.title(row)
        key, label = {
            "conversation": (row.id, f"{row.agent}  {title}" if title else row.agent),
            "agent": (row.agent, row.agent),
            "model": (model, model or "unknown"),
        }[by]
        line = lines.setdefault(key, CostLine(key, label))
        line.tokens.add(tokens)
        line.talks += 1
    ordered = sorted(lines.values(), key=lambda line: line.tokens.total, reverse=True)
    return CostTable(tuple(ordered), total, read, len(fleet.rows))
