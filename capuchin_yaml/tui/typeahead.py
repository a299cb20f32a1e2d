"""One key after the other: none acts before the one typed before it, none is lost to a field.

Textual hands a key to the focus and takes the next one at once; a key that is bound, such as
backspace or the one that opens a form, acts only after it came back from there. When the program
is busy, what follows such a key would act before it, or on what was there before.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widget import Widget

LIMIT_S = 3.0
"""A field that is not there by then gets nothing: the keys act as if nothing was awaited."""
PASSING_S = 0.5
"""A widget that was taken away does not say that it is done; after this long the next key acts."""
_ROUNDS = 2
"""How often a widget and those above it must be through with what they have: a key, its effects."""
_ALWAYS = frozenset({"escape", "ctrl+q"})
"""Keys that act at once while something is awaited that may take long."""

T = TypeVar("T")
Typed: TypeAlias = events.Key | events.Paste


class Form(ModalScreen[T]):
    """A box that keys are typed into; from the moment it is opened they are for it."""

    def draw(self) -> None:
        """Bring up to date what it shows of the desk; most show nothing of it."""


class TypedAhead:
    """Keys and pastes in the order they were typed, and those that wait for a field."""

    class Due(Message):
        """What was held can be given on; with a number, after a widget that does not answer."""

        def __init__(self, lost: int = 0) -> None:
            super().__init__()
            self.lost = lost

    class Passed(Message):
        """A widget and all above it are through with what they had before this."""

        def __init__(self, number: int, rounds: int, target: Widget) -> None:
            super().__init__()
            self.number = number
            self.rounds = rounds
            self.target = target

    def __init__(
        self,
        app: App[Any],
        act: Callable[[events.Event], Awaitable[None]],
        keep: Callable[[str], None],
    ) -> None:
        self._app = app
        self._act = act
        self._keep = keep
        self._held: list[Typed] = []
        self._for: Screen[Any] | None = None
        self._is_long = False
        self._limit: Timer | None = None
        self._numbers = itertools.count(1)
        self._under_way = 0
        self._target: Widget | None = None
        """Where the key under way went, until it was asked whether it is through."""
        self._give_up: asyncio.TimerHandle | None = None

    def hold(self, screen: Screen[Any], *, is_long: bool = False) -> None:
        """Hold what is typed until the screen takes it; a long wait can still be left by Esc."""
        self._stop_limit()
        self._for, self._is_long = screen, is_long
        if is_long:
            self._app.post_message(self.Due())
        else:
            self._limit = self._app.set_timer(LIMIT_S, self.release)

    def release(self) -> None:
        """Give what was held to whatever has the focus."""
        self._stop_limit()
        self._for = None
        if self._held:
            self._app.post_message(self.Due())

    def on_screen(self, screen: Screen[Any]) -> None:
        """Another screen is on top: a form that was opened is awaited, one that is gone is not."""
        if isinstance(screen, Form) and screen.focused is None:
            self.hold(screen)
        elif self._for is not None and self._for not in self._app.screen_stack:
            self._stop_limit()
            self._for = None
            held, self._held = self._held, []
            text = "".join(_text(event) for event in held)
            if text:
                self._keep(text)

    async def take(self, event: events.Event) -> None:
        """Act on an input when its turn is."""
        if not isinstance(event, events.Key | events.Paste):
            await self._act(event)
        elif event.is_forwarded:
            # It came back from the focus without having been taken there.
            if self._for is None:
                await self._act(event)
            else:
                self._held.append(_fresh(event))
                self._held.sort(key=lambda e: e.time)
        elif self._must_wait(event):
            self._held.append(event)
            self._ask_whether_passed()
        else:
            await self._act_on(event)

    async def passed(self, message: Passed) -> None:
        """One round is done; after the last one the next key acts."""
        if message.number != self._under_way:
            return
        rounds = message.rounds - 1
        again = self.Passed(message.number, rounds, message.target)
        if not rounds or not message.target.post_message(again):
            self._end_passing()
            await self._go_on()

    async def due(self, message: Due) -> None:
        """What was held acts, unless something is awaited again."""
        if message.lost and message.lost == self._under_way:
            self._end_passing()
        await self._go_on()
        if self._held:
            self._ask_whether_passed()

    async def _go_on(self) -> None:
        while not self._under_way:
            event = next((e for e in self._held if self._may_act(e)), None)
            if event is None:
                break
            self._held.remove(event)
            await self._act_on(event)

    def _may_act(self, event: Typed) -> bool:
        """Whether an input may act although something is awaited."""
        is_way_out = isinstance(event, events.Key) and event.key in _ALWAYS
        return self._for is None or (self._is_long and is_way_out)

    def _must_wait(self, event: Typed) -> bool:
        if self._for is not None:
            return not self._may_act(event)
        return bool(self._held or self._under_way)

    async def _act_on(self, event: Typed) -> None:
        target = self._app.focused or self._app.screen
        await self._act(event)
        if event.is_forwarded:
            self._under_way = next(self._numbers)
            self._target = target
            loop = asyncio.get_running_loop()
            self._give_up = loop.call_later(PASSING_S, self._lost, self._under_way)
            if self._held:
                self._ask_whether_passed()

    def _ask_whether_passed(self) -> None:
        """Have the widgets tell when they are through; only a key that waits wants to know."""
        target, self._target = self._target, None
        if target is not None and not target.post_message(
            self.Passed(self._under_way, _ROUNDS, target)
        ):
            self._app.post_message(self.Due(self._under_way))

    def _lost(self, number: int) -> None:
        if number == self._under_way:
            self._app.post_message(self.Due(number))

    def _end_passing(self) -> None:
        self._under_way = 0
        self._target = None
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None

    def _stop_limit(self) -> None:
        if self._limit is not None:
            self._limit.stop()
            self._limit = None


def take_keys(field: Widget) -> None:
    """Give a field the focus at once, and what was typed for it before."""
    screen = field.screen
    # Why not `focus()`: that one only asks for it, and the next key may come before.
    screen.set_focus(field, scroll_visible=False)
    screen.call_after_refresh(_bring_into_view, field)
    ahead = getattr(screen.app, "ahead", None)
    if isinstance(ahead, TypedAhead):
        ahead.release()


def _bring_into_view(field: Widget) -> None:
    """Scroll to a field once it is laid out."""
    if field.has_focus and field.is_attached and not field.screen.can_view_entire(field):
        field.screen.scroll_to_center(field, animate=False, origin_visible=True)


def _fresh(event: Typed) -> Typed:
    """The same input, as if it had just been read; its time stays."""
    again: Typed
    if isinstance(event, events.Key):
        again = events.Key(event.key, event.character)
    else:
        again = events.Paste(event.text)
    again.time = event.time
    return again


def _text(event: Typed) -> str:
    if isinstance(event, events.Paste):
        return event.text
    if event.key == "enter":
        return "\n"
    return event.character if event.character is not None and event.is_printable else ""
