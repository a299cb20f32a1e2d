"""The life of a conversation as a person leads it: begin, name, close for good, open again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.bars import short_id
from capuchin_yaml.tui.screens.boxes import NameBox

if TYPE_CHECKING:
    from capuchin_yaml.tui.app import CapuchinApp


_EARLY = "no agent is known yet: what you wrote goes out as soon as one is"


class Talks:
    """What an app does with whole conversations; what was written is kept until it is sent."""

    def __init__(self, app: CapuchinApp) -> None:
        self._app = app
        self._first_words = ""
        """What was written before there was a conversation to send it to."""
        self._early_words = ""
        """What was sent before any agent was known."""

    def pick_agent(self, agent: str = "") -> None:
        """Open the picker of agents, at one of them when it is named."""
        from capuchin_yaml.tui.screens.new_talk import NewTalk

        app = self._app
        if app.screen is app.chat:
            app.push_screen(NewTalk(app.desk, agent), self._picked)

    def begin(self, text: str) -> None:
        """Start a conversation with a first message; ask which agent when there is a choice."""
        app = self._app
        if not app.has_begun or not app.desk.fleet.agents:
            self._early_words = text
            app.say(_EARLY, lasts_s=float("inf"))
            return
        cards = [c for c in app.desk.fleet.agents if c.is_served]
        if len(cards) == 1 and not cards[0].asks_first:
            app.desk.spawn(self._begin(cards[0].name, text))
        else:
            self._first_words = text
            app.say("pick an agent: what you wrote goes to it")
            self.pick_agent()

    def go_on(self) -> None:
        """Begin with what was sent too early, unless it was changed or a conversation opened."""
        app = self._app
        if not self._early_words or not app.desk.fleet.agents or app.screen is not app.chat:
            return
        words, self._early_words = self._early_words, ""
        app.drop_notice(_EARLY)
        if app.chat.talk is None and app.chat.holds(words):
            self.begin(words)

    async def _begin(self, agent: str, text: str) -> None:
        app = self._app
        begun = f"starting a conversation with {agent}…"
        app.say(begun, lasts_s=float("inf"))
        try:
            conversation = await app.desk.start(agent, {}, {})
        except CapuchinError as error:
            app.say(f"not started, what you wrote stays: {error}", "bad")
            return
        app.drop_notice(begun)
        if app.chat.talk is None:
            app.chat.open(conversation)
            app.chat.send_first(text)

    def _picked(self, conversation: str | None) -> None:
        app = self._app
        words, self._first_words = self._first_words, ""
        if conversation is None:
            if words:
                app.say("no agent was picked; what you wrote stays")
            return
        app.drop_notice()
        app.chat.open(conversation)
        if words:
            app.chat.send_first(words)
        app.chat.focus_composer()

    def close(self) -> None:
        """End the conversation on show for good, once its agent's name was typed."""
        app = self._app
        talk = app.chat.talk
        if talk is None or talk.is_over:
            app.say("no open conversation is on show")
            return

        def typed(is_right: bool | None) -> None:
            if is_right:
                app.desk.spawn(self._close(talk.id))

        title = f"close {talk.agent} {short_id(talk.id)} for good"
        app.push_screen(NameBox(talk.agent, title), typed)

    async def _close(self, conversation: str) -> None:
        try:
            await self._app.desk.close_talk(conversation)
        except CapuchinError as error:
            self._app.say(f"not closed: {error}", "bad")

    def rename(self, title: str = "") -> None:
        """Give the conversation on show a title; without one, ask for it."""
        from capuchin_yaml.tui.screens.boxes import LineBox

        app = self._app
        talk = app.chat.talk
        if talk is None or talk.is_over:
            app.say("no open conversation is on show")
            return

        def written(title: str | None) -> None:
            if title:
                app.desk.spawn(self._rename(talk.id, title))

        if title:
            written(title)
        else:
            app.push_screen(LineBox("the title of this conversation", talk.title), written)

    async def _rename(self, conversation: str, title: str) -> None:
        try:
            await self._app.desk.rename(conversation, title)
        except CapuchinError as error:
            self._app.say(f"not renamed to {one_line(title, 60)!r}: {error}", "bad")

    def reopen(self) -> None:
        """Open the closed conversation on show again; what was written is sent by its writer."""
        app = self._app
        talk = app.chat.talk
        if talk is None or talk.status != "closed":
            app.say("no closed conversation is on show")
        else:
            app.desk.spawn(self._reopen(talk.id))

    async def _reopen(self, conversation: str) -> None:
        try:
            await self._app.desk.reopen(conversation)
        except CapuchinError as error:
            self._app.say(f"not opened again: {error}", "bad")
