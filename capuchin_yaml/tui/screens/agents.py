"""Agents: what is served, what each asks about, what is wrong with its file, and the worker."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from capuchin_yaml.tui.draw.agents import agent_line, agent_rows, worker_state
from capuchin_yaml.tui.draw.bars import status_row
from capuchin_yaml.tui.draw.rows import Piece, Row, row
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList
from capuchin_yaml.tui.widgets.reader import Reader

_NONE: list[Row] = [
    row("no agent is known yet", "muted"),
    row("`capuchin up` tells which there are", "muted"),
]


class AgentsScreen(Frame):
    """List and detail; Enter begins a conversation with the marked agent."""

    CSS_PATH = "lists.tcss"
    PANES = ("#facts", "#list", "#detail")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f5", "back", "back", id="agents.back"),
        Binding("n", "talk", "new conversation", id="agents.new"),
        Binding("tab,right", "detail", "to the detail", show=False, id="agents.detail"),
        Binding("shift+tab,left", "list", "to the list", show=False, id="agents.list"),
    ]

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        yield Lines(id="facts")
        with Horizontal(id="body"):
            yield PickList(id="list", height=2)
            yield Reader(id="detail")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Start in the list."""
        if not self.has_panes:
            return
        self.query_one(PickList).focus()
        self.draw()

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self.draw()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        self.draw_frame(None)
        fleet = self.desk.fleet
        text, role = worker_state(fleet)
        self.query_one("#facts", Lines).set_rows([(Piece("worker: ", "strong"), Piece(text, role))])
        cards = sorted(fleet.agents, key=lambda c: (not c.problem, c.name))
        picks = [Pick(c.name, partial(agent_line, c)) for c in cards]
        self.query_one(PickList).set_picks(picks, _NONE)
        self._draw_detail()
        width = max(self.size.width - 2, 1)
        keys = "Enter reads it · n new conversation · Esc back" if width > 50 else "n new · Esc"
        status = status_row(None, self.capuchin.notice_row, width, keys)
        self.query_one("#status", Lines).set_rows([status])

    def _draw_detail(self) -> None:
        if not self.is_ready:
            return
        key = self.query_one(PickList).key
        fleet = self.desk.fleet
        card = next((c for c in fleet.agents if c.name == key), None)
        rows = (lambda width: agent_rows(card, fleet, width)) if card else (lambda width: [])
        self.query_one(Reader).show(key, rows)

    @on(PickList.Moved, "#list")
    def _moved(self) -> None:
        self._draw_detail()

    @on(PickList.Opened, "#list")
    def _opened(self) -> None:
        self.action_detail()

    def action_talk(self) -> None:
        """Begin a conversation with the marked agent."""
        name = self.query_one(PickList).key
        if name:
            self.app.pop_screen()
            self.capuchin.action_new_talk(name)

    def action_detail(self) -> None:
        """Go to what is known of it."""
        self.add_class("-open")
        self.query_one(Reader).focus()

    def action_list(self) -> None:
        """Go to the list."""
        self.remove_class("-open")
        self.query_one(PickList).focus()

    def action_back(self) -> None:
        """Leave the detail, else the screen."""
        if self.is_narrow and self.has_class("-open"):
            self.action_list()
        else:
            self.app.pop_screen()
