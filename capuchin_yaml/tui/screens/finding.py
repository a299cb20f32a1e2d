"""Find a text in the conversation on show, reading older pages as far as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.typeahead import take_keys
from capuchin_yaml.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from capuchin_yaml.tui.screens.chat import ChatScreen

_PAGE = 2000
"""Events that are read at once while something is looked for."""


class Finding:
    """The line for the text that is looked for; Enter and up go to older places, down to newer."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._is_looking = False

    @property
    def box(self) -> Input:
        """Where the text is typed."""
        return self._screen.query_one("#find", Input)

    def open(self) -> None:
        """Go to the line."""
        self.box.display = True
        take_keys(self.box)

    def close(self) -> None:
        """Forget what was looked for."""
        self.box.display = False
        self.box.value = ""
        self._screen.query_one(Transcript).find("", -1)

    def go(self, step: int) -> None:
        """Go to the next place towards `step`."""
        if not self._is_looking and self.box.value:
            self._screen.desk.spawn(self._go(self.box.value, step))

    async def _go(self, needle: str, step: int) -> None:
        screen, talk = self._screen, self._screen.talk
        transcript = screen.query_one(Transcript)
        self._is_looking = True
        try:
            while not transcript.find(needle, step):
                if step > 0 or talk is None or not talk.first_offset or screen.talk is not talk:
                    where = "below" if step > 0 else "above"
                    screen.capuchin.say(f"nothing {where} holds {one_line(needle, 60)!r}")
                    return
                screen.capuchin.say(f"looking in {talk.first_offset:,} older events…")
                if not await screen.desk.older(talk.id, _PAGE):
                    return
                screen.take_now()
        except CapuchinError as error:
            screen.capuchin.say(f"older events could not be read: {error}", "bad")
        finally:
            self._is_looking = False
