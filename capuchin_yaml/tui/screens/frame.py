"""What every full screen shares: the bars around it, and the desk behind it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, cast

from textual.screen import Screen
from textual.widgets import Input, TextArea

from capuchin_yaml.tui.draw.bars import banner_rows, others_rows, top_row
from capuchin_yaml.tui.draw.rows import row
from capuchin_yaml.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from capuchin_yaml.tui.app import CapuchinApp
    from capuchin_yaml.tui.desk import Desk
    from capuchin_yaml.tui.model.fleet import Fleet
    from capuchin_yaml.tui.model.talk import Talk

NARROW = 60
MEDIUM = 100
_OPENING = frozenset({"edit", "filter"})
"""Actions whose key is a letter where text is written."""


class Frame(Screen[None]):
    """A screen with a top bar and a banner that follow the link."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-medium"), (MEDIUM, "-wide")]  # noqa: RUF012  # the type is fixed by the parent class

    PANES: ClassVar[tuple[str, ...]] = ()
    """What it draws on, beside the bars."""

    @property
    def capuchin(self) -> CapuchinApp:
        """The app, typed."""
        return cast("CapuchinApp", self.app)

    @property
    def desk(self) -> Desk:
        """What is known, and what can be asked for."""
        return self.capuchin.desk

    @property
    def fleet(self) -> Fleet | None:
        """What is known of conversations; None until the first frame was painted."""
        return self.desk.fleet if self.capuchin.has_begun else None

    def now(self) -> datetime:
        """Now, for ages."""
        return datetime.now(UTC)

    @property
    def is_narrow(self) -> bool:
        """Whether only one pane fits."""
        return self.size.width < NARROW

    @property
    def has_panes(self) -> bool:
        """Whether all its panes are there; while it is taken away they go one by one."""
        return all(bool(self.query(pane)) for pane in ("#top", "#status", *self.PANES))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key that opens a field is a letter in a text; elsewhere it acts before the next key."""
        if action in _OPENING and isinstance(self.focused, Input | TextArea):
            return False
        return super().check_action(action, parameters)

    @property
    def is_ready(self) -> bool:
        """Whether it can be drawn."""
        return self.is_mounted and self.has_panes

    def draw_frame(self, talk: Talk | None) -> None:
        """Bring top bar and banner up to date."""
        fleet = self.fleet
        gateway = self.desk.gateway if fleet is not None else None
        project = gateway.project if gateway is not None else ""
        waiting = len(fleet.waiting()) if fleet is not None else 0
        waiting += len(self.capuchin.board.questions())
        width = max(self.size.width - 2, 1)
        self.query_one("#top", Lines).set_rows([top_row(talk, fleet, waiting, project, width)])
        now = self.capuchin.clock()
        rows = banner_rows(fleet, now, now - self.capuchin.started_at)
        rows += others_rows(self.capuchin.others)
        rows = rows[:1] if self.is_narrow else rows
        if self.capuchin.is_read_only:
            rows = [*rows, row("read-only: nothing is sent and nothing decided here", "warn")]
        self.query_one("#banner", Lines).set_rows(rows)

    def answer_keys(self) -> list[tuple[str, str]]:
        """Keys that answer what is on show; none outside the inbox."""
        return []

    def draw(self) -> None:
        """Bring everything up to date; called at most ten times a second."""
        raise NotImplementedError
