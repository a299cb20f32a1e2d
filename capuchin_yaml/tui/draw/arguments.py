"""Arguments as a form to read, and what differs between two versions of them."""

from __future__ import annotations

from collections.abc import Mapping

from capuchin_yaml.spec import JsonValue, canonical_json
from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.rows import Piece, Row, fold
from capuchin_yaml.tui.model.arguments import WrongArguments, differences, form

_CONTINUED = Piece("↪ ", "muted")
_NOTE = 300


def form_rows(schema: Mapping[str, JsonValue], arguments: str, width: int) -> list[Row]:
    """Each argument with its whole value as JSON, and what its schema says of it."""
    try:
        fields = form(schema, arguments)
    except WrongArguments:
        return _value_rows("", arguments, "block", width)
    out: list[Row] = []
    for field in fields:
        value = canonical_json(field.text) if field.kind == "string" else field.text
        out += _value_rows(
            f"{visible(field.name, keep_newlines=False)}  ",
            value if field.is_given else "(not given)",
            "block" if field.is_given else "muted",
            width,
        )
        if field.note:
            out += fold((Piece(one_line(field.note, _NOTE), "muted"),), width, (Piece("      "),))
    return out or [(Piece("  (no arguments)", "muted"),)]


def difference_rows(before: str, after: str, width: int) -> list[Row]:
    """A line with `-` for every value that goes and one with `+` for every value that comes."""
    out: list[Row] = []
    for found in differences(before, after):
        path = visible(found.path, keep_newlines=False)
        for sign, value, role in (("-", found.before, "bad"), ("+", found.after, "ok")):
            if value is not None:
                out += _value_rows(f"{sign} {path}  ", value, role, width)
    return out or [(Piece("  (nothing differs)", "muted"),)]


def _value_rows(label: str, value: str, role: str, width: int) -> list[Row]:
    text = Piece(visible(value, keep_newlines=False), role)
    lead = Piece("  ")
    return fold((Piece(label, role), text), width, (lead,), (lead, _CONTINUED))
