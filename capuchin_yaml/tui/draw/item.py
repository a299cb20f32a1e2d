"""One item as rows: identity before alias, everything that a decision is bound to, whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from capuchin_yaml.items import Item, who_has, who_may
from capuchin_yaml.spec import JsonValue, canonical_json
from capuchin_yaml.terminal_text import one_line, visible
from capuchin_yaml.tui.draw.arguments import difference_rows, form_rows
from capuchin_yaml.tui.draw.clock import since, span, until
from capuchin_yaml.tui.draw.exact import argument_rows, exact_rows
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, row, wrap
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.entries import AgentSaid, Entry, Mark, ToolCard, UserSaid
from capuchin_yaml.tui.notices import Question

THEN = {
    "deny": "it is denied",
    "wait": "it goes on waiting",
    "close": "the conversation is closed",
    "escalate": "it goes to others",
}
"""What happens when the time is up, in words."""
_LAST_LINES = 6
_LABEL = 11


View: TypeAlias = Literal["laid out", "form", "exact"]
VIEWS: tuple[View, ...] = ("laid out", "exact", "form")
"""Ways to show arguments; each shows all of them, whole."""


def item_rows(
    item: Item,
    width: int,
    *,
    agent: str,
    version: str,
    view: View = "laid out",
    schema: Mapping[str, JsonValue] | None = None,
    edited: str | None = None,
) -> list[Row]:
    """Everything a person must see before answering, in the order in which it matters.

    `edited` are arguments that the person wrote instead of the item's, to be sent with the answer.
    """
    out: list[Row] = []
    if item.tool:
        out += _fact("tool", item.tool, width, "tool")
        if item.alias:
            out += _fact("alias", f"{item.alias} (the name the model used)", width, "muted")
    out += _fact("asks", item.title, width, "strong")
    if item.tool:
        out += _fact("package", item.distribution or "unknown", width)
        out += _fact("effect", item.effect or "unknown", width, _effect_role(item.effect))
    out += _fact("why", item.reason or "no reason was given", width)
    if item.rule:
        out += _fact("rule", item.rule, width)
    out += _people(item, width)
    name = f"{agent} {version}".strip()
    if item.definition_hash:
        name = f"{name} · definition {item.definition_hash[:12]}"
    out += _fact("agent", name, width)
    out += _fact("talk", item.conversation, width)
    if item.requested_by not in ("", "the model"):
        out += _fact("wanted by", f"{item.requested_by}, who changed the model's call", width)
    out += _changes(item, edited, width)
    arguments = item.arguments if edited is None else edited
    if item.tool or arguments:
        out += [(), *_arguments(arguments or "{}", width, view, schema, edited is not None)]
    if item.preview:
        note = "what the tool says it would do"
        out += [(), _section("preview", width, note if edited is None else "before your change")]
        for line in item.preview.splitlines():
            out += wrap((Piece(visible(line, keep_newlines=False)),), width)
    out += _mapping("config", item.config, width)
    out += _mapping("injected", item.injected, width)
    digest = f"digest {item.digest[:12]} · revision {item.revision}"
    if edited is not None:
        digest = f"{digest} · with your changes"
    return [*out, (), clip((Piece(f"─ end of the item · {digest}", "muted"),), width)]


def _people(item: Item, width: int) -> list[Row]:
    out: list[Row] = []
    if may := who_may(item):
        out += _fact("may decide", may, width)
    if has := who_has(item):
        out += _fact("approved", has, width, "strong")
    if item.escalated:
        out += _fact("escalated", f"to {item.escalated}: nobody decided in time", width)
    return out


def talk_rows(talk: Sequence[Entry], width: int) -> list[Row]:
    """The last lines of the talk that an item belongs to."""
    lines = [r for e in talk[-_LAST_LINES:] for r in _talk_line(e, width)]
    return [(), _section("last lines of the talk", width), *lines] if lines else []


def question_rows(question: Question, width: int) -> list[Row]:
    """A question of the program itself."""
    out = [*_fact("asks", question.title, width, "strong"), ()]
    out += wrap((Piece(visible(question.body)),), width)
    return [*out, (), clip((Piece("─ end of the question", "muted"),), width)]


def item_line(
    item: InboxRow | Item, width: int, now: datetime, mark: str = "", state: str = ""
) -> list[Row]:
    """An item as two rows of a list, with its mark and a word on how it stands."""
    what = one_line(item.tool or item.title, 80)
    wait = since(item.requested_at, now)
    glyph = Piece("○ ", "muted") if state else Piece("▲ ", "warn")
    marked = (Piece(f"{mark} ", "accent"),) if mark else ()
    left = (*marked, glyph, Piece(what, "tool"))
    if state:
        wait = f"{state} · {wait}"
    first = clip(left, max(width - len(wait) - 1, 8))
    pad = width - sum(len(p.text) for p in first) - len(wait)
    head = (*first, Piece(" " * pad + wait, "muted")) if pad > 0 else first
    agent = one_line(item.agent, 30) if isinstance(item, InboxRow) else ""
    note = one_line(item.arguments or item.title, 200)
    return [head, clip((Piece(f"  {agent}  {note}", "muted"),), width)]


def question_line(question: Question, width: int) -> list[Row]:
    """A question of the program itself as two rows of a list."""
    return [
        clip((Piece("▲ ", "warn"), Piece(one_line(question.title, 200), "tool")), width),
        clip((Piece(f"  capuchin  {one_line(question.body, 200)}", "muted"),), width),
    ]


def deadline(due: str | None, then: str, now: datetime) -> str:
    """How much time is left, and what happens then."""
    if due is None:
        return "waits without a deadline"
    left = until(due, now)
    word = THEN.get(then) or one_line(then, 40)
    if left is None:
        return f"until {one_line(due, 40)}, then {word}"
    return f"{span(left)} left, then {word}" if left > 0 else f"time is up: {word}"


def claim_text(item: Item, user: str, now: datetime) -> str:
    """Who else says to be looking at it; empty when nobody does."""
    if not item.claimed_by or item.claimed_by == user or not item.claimed_until:
        return ""
    left = until(item.claimed_until, now)
    return f"{one_line(item.claimed_by, 40)} looks at it" if left and left > 0 else ""


def _effect_role(effect: str) -> str:
    return {"read": "ok", "write": "warn"}.get(effect, "bad")


def _fact(label: str, value: str, width: int, role: str = "text") -> list[Row]:
    text = visible(value, keep_newlines=False)
    if width < _LABEL * 3:
        return [clip((Piece(label, "muted"),), width), *wrap((Piece(text, role),), width)]
    lead = Piece(f"{label:<{_LABEL}}", "muted")
    return wrap((Piece(text, role),), width, (lead,), (Piece(" " * _LABEL),))


def _section(title: str, width: int, note: str = "") -> Row:
    text = f"{title} ({note})" if note else title
    return clip((Piece("── ", "rule"), Piece(text, "strong"), Piece(" ──", "rule")), width)


def _changes(item: Item, edited: str | None, width: int) -> list[Row]:
    """What differs from the arguments that the model wrote."""
    before, after = (item.before, item.arguments) if edited is None else (item.arguments, edited)
    if not before or before == after:
        return []
    whose = "what was changed" if edited is None else "what you changed"
    title = _section(whose, width, "- as the model wrote it, + what runs")
    return [(), title, *difference_rows(before, after, width)]


def _arguments(
    arguments: str,
    width: int,
    view: View,
    schema: Mapping[str, JsonValue] | None,
    is_edited: bool,
) -> list[Row]:
    title = "arguments as you wrote them" if is_edited else "arguments"
    match view:
        case "exact":
            title_row = _section(title, width, "every byte as it is sent · v shows the form")
            return [title_row, *exact_rows(arguments, width)]
        case "form" if schema is not None:
            title_row = _section(title, width, "as the tool's form")
            return [title_row, *form_rows(schema, arguments, width)]
        case _:
            title_row = _section(title, width, "laid out · v shows the exact text")
            return [title_row, *argument_rows(arguments, width)]


def _mapping(title: str, values: Mapping[str, JsonValue] | None, width: int) -> list[Row]:
    if not values:
        return [clip(row(f"{title:<{_LABEL}}none", "muted"), width)]
    return [_section(title, width), *argument_rows(canonical_json(dict(values)), width)]


def _talk_line(entry: Entry, width: int) -> list[Row]:
    match entry:
        case UserSaid():
            who, text, role = entry.by or "you", entry.text, "you"
        case AgentSaid():
            who, text, role = "agent", entry.text, "agent"
        case ToolCard():
            who, text, role = "tool", f"{entry.identity}: {entry.state}", "tool"
        case Mark():
            who, text, role = "", entry.text, "muted"
    lead = (Piece(f"{one_line(who, 16)}  ", role),) if who else ()
    return [clip((*lead, Piece(one_line(text, 400))), width)]
