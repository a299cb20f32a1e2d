"""Costs: tokens by conversation, agent and model."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from capuchin_yaml.tui.draw.bars import status_row
from capuchin_yaml.tui.draw.costs import cost_rows
from capuchin_yaml.tui.model.costs import By, cost_table
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.reader import Reader

_ORDER: tuple[By, ...] = ("conversation", "agent", "model")
_REREAD_S = 10.0


class CostsScreen(Frame):
    """One table; the same numbers are added up in three ways."""

    CSS_PATH = "lists.tcss"
    PANES = ("#table",)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f4", "back", "back", id="costs.back"),
        Binding("tab,v", "turn", "by conversation, agent or model", id="costs.by"),
        Binding("r", "reread", "read again", id="costs.reread"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._by: By = "conversation"

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        yield Reader(id="table")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Read the tokens of every conversation, now and again while this is open."""
        if not self.has_panes:
            return
        self.query_one(Reader).focus()
        self.action_reread()
        self.set_interval(_REREAD_S, self.action_reread)
        self.draw()

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self.draw()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        self.draw_frame(None)
        table, by = cost_table(self.desk.fleet, self._by), self._by
        self.query_one(Reader).show(by, lambda width: cost_rows(table, by, width))
        width = max(self.size.width - 2, 1)
        keys = "Tab by conversation, agent, model · Esc back" if width > 56 else "Tab · Esc back"
        status = status_row(None, self.capuchin.notice_row, width, keys)
        self.query_one("#status", Lines).set_rows([status])

    def action_turn(self) -> None:
        """Add up in the next way."""
        self._by = _ORDER[(_ORDER.index(self._by) + 1) % len(_ORDER)]
        self.draw()

    def action_reread(self) -> None:
        """Ask for what changed since it was read."""
        if self.desk.fleet.link.is_up:
            self.run_worker(
                self.desk.look.usage(), group="usage", exclusive=True, exit_on_error=False
            )

    def action_back(self) -> None:
        """Leave."""
        self.app.pop_screen()
