"""Other arguments for a call that waits: a form from the tool's schema, or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input

from capuchin_yaml.engine.contract import MAX_EDIT_BYTES
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.rows import Piece, row, wrap
from capuchin_yaml.tui.editor import edited
from capuchin_yaml.tui.model.arguments import (
    Field,
    WrongArguments,
    checked,
    filled,
    form,
    laid_out,
)
from capuchin_yaml.tui.typeahead import Form, take_keys
from capuchin_yaml.tui.widgets.draft import Draft
from capuchin_yaml.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from capuchin_yaml.tui.app import CapuchinApp

_WIDTH = 66


class EditBox(Form[str | None]):
    """Returns the checked canonical text; Esc changes nothing. Sending is another step."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "check and show what changes", id="edit.take", priority=True),
        Binding("ctrl+t", "turn", "form or JSON", id="edit.turn", priority=True),
        Binding("ctrl+g", "editor", "external editor", id="edit.editor", priority=True),
        Binding("escape", "back", "back", id="edit.back", priority=True),
    ]

    def __init__(self, title: str, arguments: str, schema: Mapping[str, JsonValue] | None) -> None:
        super().__init__()
        self._title = title
        self._arguments = arguments
        self._schema = schema
        self._fields: tuple[Field, ...] = ()
        self._is_json = schema is None

    def compose(self) -> ComposeResult:
        """Title, form or text, keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield VerticalScroll(id="form", can_focus=False)
            yield Draft(id="text", compact=True)
            yield Lines(id="keys")

    async def on_mount(self) -> None:
        """Start in the first field, or in the text where there is no schema."""
        if not self.query("#title"):
            # It was left before it was there.
            return
        note = "" if self._schema is not None else "the tool's schema cannot be read here: JSON"
        title = [row(one_line(self._title, 120), "strong"), *([row(note, "warn")] if note else [])]
        self.query_one("#title", Lines).set_rows(title)
        await self._show(self._arguments)

    async def _show(self, arguments: str) -> None:
        """Put arguments into the form, or into the text."""
        box, text = self.query_one("#form", VerticalScroll), self.query_one(Draft)
        if not self._is_json and self._schema is not None:
            self._fields = form(self._schema, arguments)
            await box.remove_children()
            for field in self._fields:
                label = Lines()
                # Why not selected: the first key would drop a value that is only to be changed.
                value = Input(field.text, compact=True, classes="field", select_on_focus=False)
                await box.mount(label, value)
                label.set_rows([row(one_line(f"{field.name} ({field.note})", 200), "muted")])
        else:
            text.text = laid_out(arguments)
        box.display, text.display = not self._is_json, self._is_json
        first = text if self._is_json else next(iter(box.query(Input)), None)
        if first is not None:
            take_keys(first)
        self._say("ctrl+s checks it · ctrl+t form or JSON · ctrl+g editor · Esc drops", "muted")

    def _written(self) -> str:
        if self._is_json:
            return self.query_one(Draft).text
        texts = [box.value for box in self.query_one("#form").query(Input)]
        return filled(self._fields, texts)

    @on(Input.Submitted)
    def _next_field(self, event: Input.Submitted) -> None:
        """Enter moves on and sends nothing."""
        event.stop()
        self.focus_next()

    async def action_turn(self) -> None:
        """Change between the form and JSON, with what was written so far."""
        if self._schema is None:
            self._say("without the tool's schema there is no form", "warn")
            return
        try:
            written = self._written()
            form(self._schema, written)
        except WrongArguments as error:
            self._say(str(error), "bad")
            return
        self._is_json = not self._is_json
        await self._show(written)

    async def action_editor(self) -> None:
        """Write in the person's own editor; what is saved comes back as JSON."""
        try:
            begun = laid_out(self._written())
        except WrongArguments as error:
            self._say(str(error), "bad")
            return
        text = edited(cast("CapuchinApp", self.app), begun, "arguments.json")
        if text is not None:
            self._is_json = True
            await self._show(text)

    def action_take(self) -> None:
        """Hand the arguments on when the tool would take them."""
        try:
            text = checked(self._schema, self._written())
            size = len(text.encode())
        except WrongArguments as error:
            self._say(str(error), "bad")
            return
        if size > MAX_EDIT_BYTES:
            self._say(f"too long: at most {MAX_EDIT_BYTES // 1024} KB", "bad")
        else:
            self.dismiss(text)

    def action_back(self) -> None:
        """Leave everything as it was."""
        self.dismiss(None)

    def _say(self, text: str, role: str) -> None:
        rows = wrap((Piece(one_line(text, 600), role),), max(min(_WIDTH, self.size.width - 8), 1))
        self.query_one("#keys", Lines).set_rows(rows)
