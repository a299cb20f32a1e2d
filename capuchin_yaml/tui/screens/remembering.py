"""What an approval shall allow beforehand: its scope and its end, shown as the rule that it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from capuchin_yaml.items import Item
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.rows import Piece, Row, row, wrap
from capuchin_yaml.tui.model.remember import (
    LIMITS_OF_ALL,
    Remembered,
    lets_through,
    remembered,
    rule_text,
    seconds,
    still_asks,
    yaml_rule,
)
from capuchin_yaml.tui.typeahead import Form, take_keys
from capuchin_yaml.tui.widgets.lines import Lines

_WIDTH = 66
_FIELDS = (
    ("scope", "for: write `call` (this very call) or `tool` (every call of it)"),
    ("times", "how many times more (1 to 1,000); may be empty with a time"),
    ("lasting", "for how long (30m, 2h, 1d); may be empty with a number"),
)


class RememberBox(Form[Remembered | None]):
    """Returns what was chosen; nothing is chosen beforehand, and Enter never sends."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "approve and remember", id="remember.take", priority=True),
        Binding("ctrl+y", "copy", "copy a rule for all talks", id="remember.copy", priority=True),
        Binding("escape", "back", "back", id="remember.back", priority=True),
    ]

    def __init__(self, item: Item, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._item = item
        self._now = now

    def compose(self) -> ComposeResult:
        """What is asked, the rule that comes of it, keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            for name, _ in _FIELDS:
                yield Lines(id=f"label-{name}")
                yield Input(id=name, compact=True, classes="field")
            yield Lines(id="rule")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Start in the scope."""
        title = f"approve {one_line(self._item.tool, 60)} now, and remember in this conversation"
        self.query_one("#title", Lines).set_rows(self._wrapped(title, "strong"))
        for name, label in _FIELDS:
            self.query_one(f"#label-{name}", Lines).set_rows(self._wrapped(label, "muted"))
        keys = "ctrl+s approves and remembers · ctrl+y copies a rule for all talks · Esc goes back"
        self.query_one("#keys", Lines).set_rows(self._wrapped(keys, "muted"))
        self._draw_rule()
        take_keys(self.query_one("#scope", Input))

    @on(Input.Changed)
    def _draw_rule(self) -> None:
        """Show the rule as it stands, with calls that it lets through and calls that still ask."""
        rows: list[Row]
        try:
            found = self._chosen()
        except ValueError as error:
            rows = self._wrapped(str(error), "warn")
        else:
            text = rule_text(found.scope, self._item.tool, found.times, found.until)
            rows = self._wrapped(text, "strong")
            rows += self._listed("runs without asking", lets_through(self._item, found.scope))
            rows += self._listed("still asks", still_asks(self._item, found.scope))
            rows += self._wrapped(LIMITS_OF_ALL, "muted")
        self.query_one("#rule", Lines).set_rows(rows)

    def _listed(self, title: str, calls: list[str]) -> list[Row]:
        rows = [row(title, "muted")]
        for call in calls:
            rows += self._wrapped(f"  {one_line(call, 160)}", "text")
        return rows

    def _chosen(self) -> Remembered:
        scope, times, lasting = (self.query_one(f"#{n}", Input).value for n, _ in _FIELDS)
        return remembered(scope.strip().lower(), times, seconds(lasting), self._now())

    @on(Input.Submitted)
    def _next_field(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()

    def action_take(self) -> None:
        """Hand on what was chosen, once it is whole."""
        try:
            found = self._chosen()
        except ValueError as error:
            self.query_one("#rule", Lines).set_rows(self._wrapped(str(error), "bad"))
            return
        self.dismiss(found)

    def action_copy(self) -> None:
        """Copy a rule for the agent's file: what holds for all conversations belongs there."""
        text = yaml_rule(self._item)
        rows = self._wrapped("a rule for the agent's file, to be pasted and read again:", "muted")
        rows += [r for line in text.splitlines() for r in self._wrapped(line, "code")]
        self.query_one("#rule", Lines).set_rows(rows)
        self.app.copy_to_clipboard(text)

    def action_back(self) -> None:
        """Decide nothing."""
        self.dismiss(None)

    def _wrapped(self, text: str, role: str) -> list[Row]:
        return wrap((Piece(text, role),), max(min(_WIDTH, self.app.size.width - 8), 1))
