"""Steps and events of a log as rows."""

from __future__ import annotations

from collections.abc import Sequence

from capuchin_yaml.events import Event
from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.clock import clock_time, seconds
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, fold, row, spread
from capuchin_yaml.tui.model.steps import Step, StepState, json_line, json_text

STATES: dict[StepState, tuple[str, str]] = {
    "open": ("●", "accent"),
    "done": ("✔", "ok"),
    "bad": ("✖", "bad"),
    "waiting": ("▲", "warn"),
}
_INDENT = {"turn": "", "talk": ""}


def step_rows(step: Step, width: int) -> list[Row]:
    """A step as one row of the list."""
    glyph, role = STATES[step.state]
    left = [
        Piece(f"{clock_time(step.time):<6}", "muted"),
        Piece(_INDENT.get(step.kind, "  ")),
        Piece(f"{glyph} ", role),
        Piece(f"{step.kind:<6}", "muted"),
        Piece(one_line(step.title, 80), "strong" if step.kind == "turn" else "text"),
        Piece(f"  {one_line(step.note, 300)}" if step.note else "", "muted"),
    ]
    took = seconds(step.duration_s) if step.duration_s is not None else ""
    return [spread(left, (Piece(took, "muted"),), width) if took else clip(left, width)]


def event_rows(event: Event, width: int) -> list[Row]:
    """An event as one row of the list: its place and its JSON."""
    left = (Piece(f"{event.offset:>6}  ", "muted"), Piece(one_line(json_line(event), 2000)))
    return [clip(left, width)]


def detail_rows(events: Sequence[Event], width: int) -> list[Row]:
    """The whole events of a step."""
    out: list[Row] = []
    for event in events:
        head = f"event {event.offset} · {event.kind} · {visible(event.time)}"
        out += [(), clip(row(head, "strong"), width)] if out else [clip(row(head, "strong"), width)]
        for line in json_text(event).split("\n"):
            body = visible(line, keep_newlines=False)
            blanks = len(body) - len(body.lstrip(" "))
            rest = (Piece(" " * min(blanks + 2, max(width // 2, 1))),)
            out += fold((Piece(body, "block"),), width, (), rest)
    return out
