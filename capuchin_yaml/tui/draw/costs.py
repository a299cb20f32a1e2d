"""Tokens as a table of rows."""

from __future__ import annotations

from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.rows import Piece, Row, cells, clip, row, wrap
from capuchin_yaml.tui.model.costs import By, CostLine, CostTable
from capuchin_yaml.tui.model.tokens import TokenCount

_NUMBER = 12
NO_MONEY = "money is not shown: no call of this release carries a price, so there is none to add up"


def cost_rows(table: CostTable, by: By, width: int) -> list[Row]:
    """The whole table for a width; narrow ones show the sums only."""
    columns = ("input", "output", "cache", "total") if width >= 76 else ("total",)
    out: list[Row] = [_line(f"by {by}", columns, width, "strong")]
    for line in table.lines:
        out.append(_line(_label(line, by), _numbers(line.tokens, columns), width))
    if not table.lines:
        out.append(row("no conversation has told its tokens yet", "muted"))
    out += [(), _line("all of these", _numbers(table.total, columns), width, "strong")]
    if table.read < table.listed:
        left = table.listed - table.read
        out.append(row(f"{left} conversations have not answered yet", "muted"))
    return [*out, (), *wrap((Piece(NO_MONEY, "muted"),), width)]


def _label(line: CostLine, by: By) -> str:
    name = one_line(line.label, 200)
    talks = "conversation" if line.talks == 1 else "conversations"
    return name if by == "conversation" else f"{name}  {line.talks} {talks}"


def _numbers(tokens: TokenCount, columns: tuple[str, ...]) -> tuple[str, ...]:
    values = {
        "input": tokens.input_tokens,
        "output": tokens.output_tokens,
        "cache": tokens.cache_tokens,
        "total": tokens.total,
    }
    return tuple(f"{values[name]:,}" for name in columns)


def _line(label: str, numbers: tuple[str, ...], width: int, role: str = "text") -> Row:
    room = max(width - _NUMBER * len(numbers), 1)
    head = clip((Piece(label, role),), room)
    pad = Piece(" " * (room - cells(head)))
    return clip((*head, pad, Piece("".join(f"{n:>{_NUMBER}}" for n in numbers), role)), width)
