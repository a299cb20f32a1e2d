"""Boxes that are opened on purpose: a reason, a result, a tool's name, help."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.rows import Piece, Row, row, wrap
from capuchin_yaml.tui.model.pasted import clean
from capuchin_yaml.tui.typeahead import Form, take_keys
from capuchin_yaml.tui.widgets.draft import Draft
from capuchin_yaml.tui.widgets.lines import Lines

_WIDTH = 64
_FRAME = 8
"""Columns that the box and its frame take around the text."""


class TextBox(Form[str | None]):
    """A text for an answer: ctrl+s sends it, Esc goes back and decides nothing."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "send", id="box.send"),
        Binding("escape", "back", "back", id="box.back"),
    ]

    def __init__(self, title: str, hint: str, *, may_be_empty: bool) -> None:
        super().__init__()
        self._title = title
        self._hint = hint
        self._may_be_empty = may_be_empty

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield Draft(id="text", compact=True)
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Start in the text."""
        self.query_one("#title", Lines).set_rows(
            _title(self._title, self._hint, self.app.size.width)
        )
        self._keys(row("ctrl+s sends · Enter breaks the line · Esc goes back", "muted"))
        take_keys(self.query_one(Draft))

    def action_send(self) -> None:
        """Hand the text on, unless it is too long or must not be empty."""
        from capuchin_yaml.engine.contract import MAX_REASON_BYTES

        text, _ = clean(self.query_one(Draft).text)
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_REASON_BYTES:
            self._keys(row(f"too long: at most {MAX_REASON_BYTES // 1024} KB", "bad"))
        elif not text.strip() and not self._may_be_empty:
            self._keys(row("write what the tool would have answered", "bad"))
        else:
            self.dismiss(text.strip())

    def action_back(self) -> None:
        """Decide nothing."""
        self.dismiss(None)

    def _keys(self, keys: Row) -> None:
        self.query_one("#keys", Lines).set_rows([keys])


class LineBox(Form[str | None]):
    """One line of text that has a value already: Enter takes it, Esc changes nothing."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="line.back"),
    ]

    def __init__(self, title: str, value: str) -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        """Title, line, keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield Input(self._value, id="name", compact=True, select_on_focus=False)
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Start in the line."""
        self.query_one("#title", Lines).set_rows([row(one_line(self._title, 200), "strong")])
        keys = row("Enter takes it · ctrl+u empties the line · Esc goes back", "muted")
        self.query_one("#keys", Lines).set_rows([keys])
        take_keys(self.query_one(Input))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand the line on."""
        event.stop()
        self.dismiss(event.value.strip())

    def action_back(self) -> None:
        """Change nothing."""
        self.dismiss(None)


class NameBox(Form[bool]):
    """The name of a destructive tool, to be typed; anything else sends nothing."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="name.back"),
    ]

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        self._tool_name = name
        self._title = title

    def compose(self) -> ComposeResult:
        """Title, name, keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield Input(id="name", compact=True)
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Start in the name."""
        hint = f"type its name to go on: {one_line(self._tool_name, 120)}"
        rows = _title(self._title, hint, self.app.size.width)
        self.query_one("#title", Lines).set_rows(rows)
        keys = row("Enter sends when the name is right · Esc goes back", "muted")
        self.query_one("#keys", Lines).set_rows([keys])
        take_keys(self.query_one(Input))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on only with the very name."""
        event.stop()
        if event.value == self._tool_name:
            self.dismiss(True)
        else:
            self.query_one("#keys", Lines).set_rows([row("that is not its name", "bad")])

    def action_back(self) -> None:
        """Decide nothing."""
        self.dismiss(False)


class QuitBox(ModalScreen[bool]):
    """Whether to leave while turns run; staying is what every other key does."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l,ctrl+q", "leave", "leave", id="quit.leave", priority=True),
        Binding("escape", "stay", "stay", id="quit.stay"),
    ]

    def __init__(self, running: int, then: str) -> None:
        super().__init__()
        self._turns = running
        self._then = then

    def compose(self) -> ComposeResult:
        """What runs, and the keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Fill it."""
        turns = "1 turn runs" if self._turns == 1 else f"{self._turns} turns run"
        title = _title(turns, self._then, self.app.size.width)
        self.query_one("#title", Lines).set_rows(title)
        self.query_one("#keys", Lines).set_rows([row("l leaves · Esc stays", "strong")])

    def action_leave(self) -> None:
        """Leave."""
        self.dismiss(True)

    def action_stay(self) -> None:
        """Stay."""
        self.dismiss(False)


class HelpBox(ModalScreen[None]):
    """The keys that act here, from the bindings themselves."""

    CSS_PATH = "boxes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter", "back", "back", id="help.back"),
    ]

    def __init__(self, keys: list[tuple[str, str]], notes: list[str]) -> None:
        super().__init__()
        self._key_list = keys
        self._notes = notes

    def compose(self) -> ComposeResult:
        """The list of keys."""
        with Vertical(id="box"):
            yield Lines(id="title")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one("#title", Lines).set_rows([row("keys that act here", "strong"), ()])
        rows: list[Row] = [
            (Piece(f"{key:<22}", "accent"), Piece(text)) for key, text in self._key_list
        ]
        rows += [(), *(r for n in self._notes for r in wrap((Piece(n, "muted"),), _WIDTH))]
        self.query_one("#keys", Lines).set_rows(rows)

    def action_back(self) -> None:
        """Close it."""
        self.dismiss(None)


class TooSmall(ModalScreen[None]):
    """One line that says what size is needed; agents go on meanwhile."""

    CSS_PATH = "boxes.tcss"

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self._need = f"needs {columns}x{rows}; agents go on"

    def compose(self) -> ComposeResult:
        """The line."""
        yield Lines(id="small")

    def on_mount(self) -> None:
        """Fill it."""
        for line in self.query("#small").results(Lines):
            line.set_rows([row(self._need, "warn")])


def _title(title: str, hint: str, columns: int) -> list[Row]:
    width = max(min(_WIDTH, columns - _FRAME), 1)
    return [
        *wrap((Piece(one_line(title, 200), "strong"),), width),
        *wrap((Piece(hint, "muted"),), width),
    ]
