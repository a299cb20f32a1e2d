"""A new conversation: pick the agent, fill in what it needs, start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.desk import Desk
from capuchin_yaml.tui.draw.rows import Piece, Row, clip, row, wrap
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.typeahead import Form, TypedAhead, take_keys
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList

if TYPE_CHECKING:
    from capuchin_yaml.tui.app import CapuchinApp

_WIDTH = 66


class NewTalk(Form[str | None]):
    """Returns the id of the conversation that was started, or None."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="new.back", priority=True),
        Binding("ctrl+s", "start", "start", id="new.start", priority=True),
        Binding("enter", "pick", "pick", show=False, id="new.pick", priority=True),
    ]

    def __init__(self, desk: Desk, agent: str = "") -> None:
        super().__init__()
        self._desk = desk
        self._wanted = agent
        self._card: AgentCard | None = None
        self._fields: list[tuple[str, str, Input]] = []
        self._is_starting = False

    def compose(self) -> ComposeResult:
        """Agents, then the form of one."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield PickList(id="agents", height=2)
            yield Vertical(id="form")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """List the agents."""
        self.query_one("#title", Lines).set_rows([row("new conversation", "strong")])
        self.query_one("#form").display = False
        self.draw()
        agents = self.query_one(PickList)
        self.set_focus(agents)
        self._say("Enter picks · Esc goes back", "muted")
        if self._wanted and self._wanted in agents.keys:
            agents.mark(self._wanted)
            agents.action_open()
        else:
            self._ahead.release()

    def draw(self) -> None:
        """List the agents that are known by now, until one is picked."""
        if self._card is not None:
            return
        cards = self._desk.fleet.agents
        agents = self.query_one(PickList)
        agents.set_picks([Pick(c.name, partial(_card_rows, c)) for c in cards], _none())
        agents.styles.height = min(max(len(cards) * 2, 2), 16)

    @property
    def _ahead(self) -> TypedAhead:
        return cast("CapuchinApp", self.app).ahead

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter picks in the list only."""
        if action == "pick" and not isinstance(self.focused, PickList):
            return False
        return super().check_action(action, parameters)

    def action_pick(self) -> None:
        """Take the marked agent; what is typed from now on is for its form."""
        agents = self.query_one(PickList)
        if agents.keys:
            self._ahead.hold(self)
            agents.action_open()

    @on(PickList.Opened)
    async def _picked(self, event: PickList.Opened) -> None:
        event.stop()
        self._ahead.hold(self)
        card = next((c for c in self._desk.fleet.agents if c.name == event.key), None)
        if card is None:
            self._ahead.release()
            return
        if not card.is_served:
            self._say(card.problem or "it is not served", "bad")
            self._ahead.release()
            return
        self._card = card
        if not card.asks_first:
            self.action_start()
            return
        await self._show_form(card)

    async def _show_form(self, card: AgentCard) -> None:
        self.query_one(PickList).display = False
        title = [row(f"new conversation with {one_line(card.name, 60)}", "strong")]
        self.query_one("#title", Lines).set_rows([*title, *_policy(card)])
        form = self.query_one("#form", Vertical)
        form.display = True
        for name, spec in card.variables.items():
            note = f"{spec.type}, required" if spec.required else spec.type
            if spec.enum:
                note = "one of " + ", ".join(str(v) for v in spec.enum)
            label = f"{name} ({note}) {spec.description}"
            value = "" if spec.default is None else str(spec.default)
            await self._field(form, "variable", name, label, value)
        for name in card.injected:
            await self._field(form, "injected", name, f"{name} (tools see it, the model does not)")
        self._say("ctrl+s starts · Tab moves on · Esc goes back", "muted")
        take_keys(self._fields[0][2])

    async def _field(
        self, form: Vertical, group: str, name: str, label: str, value: str = ""
    ) -> None:
        lines = Lines()
        box = Input(value=value, compact=True, classes="field")
        await form.mount(lines, box)
        lines.set_rows([row(one_line(label, 200), "muted")])
        self._fields.append((group, name, box))

    @on(Input.Submitted)
    def _next_field(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input is self._fields[-1][2]:
            self.action_start()
        else:
            self.focus_next()

    def action_start(self) -> None:
        """Start with what the form holds."""
        if self._card is None or self._is_starting:
            return
        self._is_starting = True
        self._ahead.hold(self, is_long=True)
        self._say("starting…", "accent")
        self._desk.spawn(self._start(self._card))

    async def _start(self, card: AgentCard) -> None:
        variables: dict[str, JsonValue] = {}
        injected: dict[str, JsonValue] = {}
        for group, name, box in self._fields:
            if group == "injected":
                injected[name] = box.value
            elif box.value or card.variables[name].required:
                variables[name] = box.value
        try:
            conversation = await self._desk.start(card.name, variables, injected)
        except CapuchinError as error:
            self._is_starting = False
            self._ahead.release()
            self._say(str(error), "bad")
            return
        if self.is_mounted:
            # What is typed from now on is for the conversation.
            self._ahead.hold(cast("CapuchinApp", self.app).chat)
            self.dismiss(conversation)

    def action_back(self) -> None:
        """Start nothing."""
        self.dismiss(None)

    def _say(self, text: str, role: str) -> None:
        rows = wrap((Piece(one_line(text, 600), role),), _WIDTH)
        self.query_one("#keys", Lines).set_rows(rows)


def _card_rows(card: AgentCard, width: int) -> list[Row]:
    head = (
        Piece(one_line(card.name, 40), "agent"),
        Piece(f" {one_line(card.version, 20)}", "muted"),
    )
    if card.problem:
        return [clip(head, width), clip(row(f"  ✖ {one_line(card.problem, 300)}", "bad"), width)]
    note = f"  {one_line(card.description or card.policy, 300)}"
    return [clip(head, width), clip(row(note, "muted"), width)]


def _policy(card: AgentCard) -> list[Row]:
    return wrap((Piece(one_line(card.policy, 400), "muted"),), _WIDTH) if card.policy else []


def _none() -> list[Row]:
    return [row("no agent is known yet", "muted"), row("a worker tells which there are", "muted")]
