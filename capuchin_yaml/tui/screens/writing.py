"""Help with writing: suggestions after / and @, messages sent before, the external editor."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.commands import commands
from capuchin_yaml.tui.draw.rows import Piece, Row, clip
from capuchin_yaml.tui.editor import edited
from capuchin_yaml.tui.model import suggest
from capuchin_yaml.tui.model.pasted import clean
from capuchin_yaml.tui.model.search import Choosable
from capuchin_yaml.tui.screens.chooser import Chooser
from capuchin_yaml.tui.widgets.composer import Composer
from capuchin_yaml.tui.widgets.picklist import Pick, PickList

if TYPE_CHECKING:
    from capuchin_yaml.tui.screens.chat import ChatScreen

_ROWS = 8


class Writing:
    """What stands around the composer of a chat."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._word: suggest.Word | None = None
        self._refused: tuple[str, int] | None = None
        """The word whose suggestions were closed with Esc."""

    @property
    def _composer(self) -> Composer:
        return self._screen.query_one(Composer)

    @property
    def _menu(self) -> PickList:
        return self._screen.query_one("#menu", PickList)

    def refresh(self) -> None:
        """Show what fits the word at the cursor, or nothing."""
        composer = self._composer
        row, column = composer.cursor_location
        word = suggest.word_at(composer.document.get_line(row), column, row == 0)
        if word is None or (word.kind, word.start) == self._refused:
            if word is None:
                self._refused = None
            self._show(None, [])
            return
        self._show(word, self._fitting(word))

    def _fitting(self, word: suggest.Word) -> list[Choosable]:
        if word.kind == "/":
            app = self._screen.capuchin
            named = [Choosable(c.slash, c.slash, c.help) for c in commands(app)]
            return suggest.matching(word.text, named)
        # Why not in a browser: these are files of the machine that serves it.
        return [] if self._screen.app.is_web else suggest.files(word.text, Path.cwd())

    def _show(self, word: suggest.Word | None, fitting: list[Choosable]) -> None:
        menu = self._menu
        self._word = word if fitting else None
        self._composer.suggests = bool(fitting)
        menu.display = bool(fitting)
        if word is None or not fitting:
            return
        menu.styles.height = min(len(fitting), _ROWS, max(self._screen.size.height // 3, 1))
        menu.set_picks([Pick(c.key, partial(_suggestion, word.kind, c)) for c in fitting])
        if menu.key not in menu.keys:
            menu.mark(fitting[0].key)

    def close(self) -> bool:
        """Close the suggestions until another word is begun; False when none were open."""
        if self._word is None:
            return False
        self._refused = (self._word.kind, self._word.start)
        self._show(None, [])
        return True

    def key(self, step: int) -> None:
        """Move the mark, or take what is marked."""
        if step:
            self._menu.action_move(step)
        elif self._word is not None and self._menu.key:
            self.take(self._menu.key)

    def take(self, key: str) -> None:
        """Run the command, or put the file into the draft."""
        word = self._word
        if word is None:
            return
        composer = self._composer
        row, column = composer.cursor_location
        if word.kind == "/":
            composer.text = ""
            self._show(None, [])
            for command in commands(self._screen.capuchin):
                if command.slash == key:
                    command.run()
            return
        if key.endswith("/"):
            composer.replace(f"@{key}", (row, word.start), (row, column))
            return
        try:
            text = suggest.file_text(key, Path.cwd())
        except ValueError as error:
            self._screen.capuchin.say(str(error), "warn")
            return
        mark = composer.pasted.hold(clean(text)[0], one_line(key, 60))
        self._show(None, [])
        composer.replace(f"{mark} ", (row, word.start), (row, column))

    def look_back(self, step: int) -> None:
        """Show the message sent before or after in place of the draft."""
        history = self._screen.capuchin.history
        found = history.step(step, self._composer.text)
        if found is not None:
            self._composer.put(found)

    def search(self) -> None:
        """Choose one of the messages sent before."""
        texts = self._screen.capuchin.history.texts
        entries = [
            Choosable(str(n), one_line(texts[n], 300)) for n in range(len(texts) - 1, -1, -1)
        ]

        def chosen(key: str | None) -> None:
            if key is not None:
                self._composer.put(texts[int(key)])
                self._composer.focus()

        if entries:
            self._screen.app.push_screen(Chooser("sent before", entries), chosen)
        else:
            self._screen.capuchin.say("nothing was sent before")

    def edit(self) -> None:
        """Write the draft in the person's editor; what is saved there comes back."""
        text = edited(self._screen.capuchin, self._composer.message, "message.md")
        if text is not None:
            self._composer.put(clean(text)[0].rstrip("\n"))


def _suggestion(sign: str, entry: Choosable, width: int) -> list[Row]:
    name = Piece(f"{sign}{one_line(entry.name, 200)}", "accent")
    return [clip((name, Piece(f"  {entry.note}" if entry.note else "", "muted")), width)]
