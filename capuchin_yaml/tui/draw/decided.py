"""Decisions as rows: who, when, how, why, and what it was about."""

from __future__ import annotations

from datetime import datetime

from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.arguments import difference_rows
from capuchin_yaml.tui.draw.clock import clock_time, since, span
from capuchin_yaml.tui.draw.exact import argument_rows
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, row, spread, wrap
from capuchin_yaml.tui.model.arguments import differences
from capuchin_yaml.tui.model.marks import granted
from capuchin_yaml.tui.model.settled import Settled
from capuchin_yaml.tui.model.verdict import told

_LABEL = 11


def decided_line(entry: Settled, width: int, now: datetime, user: str) -> list[Row]:
    """A decision as two rows of the list."""
    item = entry.item
    what = item.tool or item.title if item else entry.decision.item_kind
    text, role = told(entry.decision, user)
    age = since(entry.decision.time, now)
    head = spread((Piece(one_line(what, 80), "tool"),), (Piece(age, "muted"),), width)
    return [head, clip((Piece(f"  {text}", role),), width)]


def decided_rows(entry: Settled, width: int, user: str) -> list[Row]:
    """All that is known of a decision."""
    decision, item = entry.decision, entry.item
    text, role = told(decision, user)
    out: list[Row] = [*wrap((Piece(text, role),), width), ()]
    name = decision.by or "nobody: the clock or a cancelled turn"
    how = "signed by its maker" if decision.proven else "the name is asserted, not signed"
    out += _fact("who", f"{name} ({how})" if decision.by else name, width)
    out += _fact("when", f"{clock_time(decision.time)} · {decision.time}", width)
    out += _fact("waited", span(decision.waited_s), width)
    out += _fact("reason", decision.reason or "none was given", width)
    if decision.client:
        out += _fact("from", decision.client, width)
    out += _fact("talk", entry.conversation, width)
    if item is None:
        return [*out, (), row("its opening lies before what was read", "muted")]
    if decision.grant:
        out += _fact("remembers", granted(decision, item.tool), width)
    if item.tool:
        out += _fact("tool", item.tool, width)
        out += _fact("package", item.distribution or "unknown", width)
    out += _fact("asked", item.title, width)
    out += _fact("why", item.reason or "no reason was given", width)
    ran = decision.arguments or item.arguments
    before = item.arguments if decision.arguments else item.before
    if before and ran and differences(before, ran):
        changed = row("what was changed (- as the model wrote it, + what ran)", "strong")
        out += [(), changed, *difference_rows(before, ran, width)]
    if ran:
        title = "arguments as they were changed" if decision.arguments else "arguments"
        out += [(), row(title, "strong"), *argument_rows(ran, width)]
    return out


def _fact(label: str, value: str, width: int) -> list[Row]:
    lead = Piece(f"{label:<{_LABEL}}", "muted")
    text = Piece(visible(value, keep_newlines=False))
    return wrap((text,), width, (lead,), (Piece(" " * _LABEL),))
