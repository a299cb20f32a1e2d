"""Allowed beforehand: every grant that stands in an open conversation, to be taken back."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from capuchin_yaml.client.answers import Grant
from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.bars import status_row
from capuchin_yaml.tui.draw.clock import clock_time
from capuchin_yaml.tui.draw.exact import argument_rows
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, row, wrap
from capuchin_yaml.tui.model.remember import LIMITS_OF_ALL, grant_text
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList
from capuchin_yaml.tui.widgets.reader import Reader


class GrantsScreen(Frame):
    """Taking one back only tightens, so one key does it."""

    CSS_PATH = "lists.tcss"
    PANES = ("#facts", "#filter", "#list", "#detail")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="grants.back"),
        Binding("x", "revoke", "take it back", id="grants.revoke"),
        Binding("g", "go", "go to the talk", id="grants.go"),
    ]

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        yield Lines(id="facts")
        yield Input(id="filter", compact=True)
        with Horizontal(id="body"):
            yield PickList(id="list", height=2)
            yield Reader(id="detail")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Read what stands, and start in the list."""
        if not self.has_panes:
            return
        self.query_one("#filter").display = False
        self.query_one(PickList).focus()
        if self.desk.fleet.link.is_up:
            self.run_worker(self.desk.look.grants(), exit_on_error=False)
        self.draw()

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self.draw()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        self.draw_frame(None)
        found = self._found()
        head = row(f"allowed beforehand {len(found)}", "strong")
        self.query_one("#facts", Lines).set_rows([head])
        empty = "nothing is allowed beforehand; `r` beside an approval remembers it"
        picks = [Pick(g.id, partial(_grant_line, g)) for g in found.values()]
        self.query_one(PickList).set_picks(picks, [row(empty, "muted")])
        self._draw_detail()
        width = max(self.size.width - 2, 1)
        status = status_row(None, self.capuchin.notice_row, width, "x takes it back · Esc")
        self.query_one("#status", Lines).set_rows([status])

    def _found(self) -> dict[str, Grant]:
        return {g.id: g for grants in self.desk.fleet.grants.values() for g in grants}

    def _marked(self) -> Grant | None:
        return self._found().get(self.query_one(PickList).key or "")

    @on(PickList.Moved, "#list")
    def _draw_detail(self) -> None:
        if not self.is_ready:
            return
        grant = self._marked()
        if grant is None:
            self.query_one(Reader).show("", lambda width: [])
        else:
            self.query_one(Reader).show(grant.id, partial(_grant_rows, grant))

    def action_revoke(self) -> None:
        """Take the marked grant back."""
        grant = self._marked()
        if grant is not None:
            self.desk.spawn(self._revoke(grant))

    async def _revoke(self, grant: Grant) -> None:
        try:
            done = await self.desk.revoke(grant.id.rpartition(":")[0], grant.id)
        except CapuchinError as error:
            self.capuchin.say(f"not taken back: {error}", "bad")
            return
        text = "taken back: such calls ask again" if done else "it had ended before"
        self.capuchin.say(text, "ok" if done else "info")

    def action_go(self) -> None:
        """Go to the conversation of the marked grant."""
        grant = self._marked()
        if grant is not None:
            self.capuchin.to_chat()
            self.capuchin.chat.open(grant.id.rpartition(":")[0])

    def action_back(self) -> None:
        """Leave."""
        self.app.pop_screen()


def _grant_line(grant: Grant, width: int) -> list[Row]:
    left = "any number" if grant.left is None else f"{grant.left} more"
    what = "this very call" if grant.scope == "call" else "every call"
    return [
        clip((Piece(one_line(grant.tool, 80), "tool"), Piece(f"  {what}", "muted")), width),
        clip(row(f"  {left} · {one_line(grant.id.rpartition(':')[0], 80)}", "muted"), width),
    ]


def _grant_rows(grant: Grant, width: int) -> list[Row]:
    out = [*wrap((Piece(grant_text(grant), "strong"),), width), ()]
    by = f"given by {one_line(grant.by, 60)} at {clock_time(grant.at)}"
    out += [row(by, "muted"), row(f"id {one_line(grant.id, 100)}", "muted"), ()]
    if grant.arguments:
        out += [row("the call", "strong"), *argument_rows(grant.arguments, width)]
    return [*out, *wrap((Piece(LIMITS_OF_ALL, "muted"),), width)]
