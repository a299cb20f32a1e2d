"""The plain session: a conversation and the inbox as lines, for pipes, poor terminals and ears.

Nothing is ever redrawn and the cursor stays where one types. What happens is told as it comes;
what is typed is a message, or a command when it begins with a slash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.desk import Desk, DeskChange
from capuchin_yaml.tui.gateway import Gateway
from capuchin_yaml.tui.model.outbox import Pending, refusal
from capuchin_yaml.tui.model.talk import Talk
from capuchin_yaml.tui.plain.commands import Commands
from capuchin_yaml.tui.plain.decisions import Docket
from capuchin_yaml.tui.plain.teller import Teller

DONE, NO_ANSWER, PERSON_NEEDED = 0, 1, 4
SETTLES_S = 600.0
"""How long a pipe that has ended waits for the turn it began."""


class Reader(Protocol):
    """Where lines come from."""

    async def next_line(self, prompt: str = "") -> str | None:
        """The next line without its end; None when there are no more.

        Raises:
            CapuchinError: what came is no text.
        """

    def forget(self) -> None:
        """Drop what was typed before now."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How it talks."""

    by_person: bool = True
    """Whether somebody types; in a pipe, decisions need the digest."""
    says_states: bool = False
    """Whether every change of state is told in words, for who cannot see the screen."""
    rings: bool = False
    """Whether a bell marks the end of a turn and something new that waits."""


def _silent() -> None:
    """Ring no bell."""


class PlainSession:
    """One run of the plain mode. `say` writes a line about things, `answer` one of the talk."""

    def __init__(
        self,
        gateway: Gateway,
        reader: Reader,
        say: Callable[[str], None],
        manner: Manner,
        *,
        clock: Callable[[], float] = monotonic,
        poll_s: float = 1.0,
        is_broken: Callable[[], bool] = lambda: False,
        ring: Callable[[], None] = _silent,
    ) -> None:
        async def connect() -> Gateway:
            return gateway

        self.gateway = gateway
        self.reader = reader
        self.say = say
        self.manner = manner
        self.clock = clock
        self.docket = Docket()
        self.desk = Desk(connect, self._changed, monotonic, poll_s)
        self.talk: Talk | None = None
        self.is_leaving = False
        self._is_broken = is_broken
        self._ring = ring
        self._teller = Teller(
            gateway.user, says_states=manner.says_states, echoes=not manner.by_person
        )
        self._commands = Commands(self)
        self._news = asyncio.Event()
        self._rung = 0
        """The turn whose end was rung."""
        self._later: set[tuple[str, int]] = set()

    async def run(
        self,
        *,
        conversation: str = "",
        agent: str = "",
        variables: Mapping[str, JsonValue] | None = None,
        injected: Mapping[str, JsonValue] | None = None,
    ) -> int:
        """Talk until the person leaves or the lines end; returns the exit code.

        Raises:
            CapuchinError: the conversation that was asked for cannot be begun.
        """
        self.desk.gateway = self.gateway
        await self.desk.refresh()
        tasks = [
            asyncio.create_task(self.desk.run()),
            asyncio.create_task(self._tell_for_ever()),
        ]
        try:
            self.tell()
            if conversation:
                self.open(conversation)
            elif agent and (variables or injected):
                await self.started(agent, variables or {}, injected or {})
            elif agent:
                await self._commands.begin(agent)
            elif self.manner.by_person:
                self.say("note: plain mode; /help tells what can be typed")
            return await self._listen()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.desk.shut()

    async def _listen(self) -> int:
        while not self.is_leaving and not self._is_broken():
            line = await self.reader.next_line()
            if line is None:
                return await self._at_end()
            at = self.clock()
            self.docket.line(at)
            text = line.strip()
            if not text:
                continue
            try:
                if text.startswith("/") and not text.startswith("//"):
                    await self._commands.run(text[1:], at)
                else:
                    await self._send(line.strip("\r\n")[1 if text.startswith("//") else 0 :])
            except CapuchinError as error:
                self.say(f"error: {one_line(str(error), 500)}")
        return DONE

    async def _send(self, text: str) -> None:
        if self.talk is None:
            cards = [c for c in self.desk.fleet.agents if c.is_served]
            if len(cards) != 1:
                names = ", ".join(c.name for c in cards) or "none is known"
                self.say(f"error: nothing was sent; begin with /new AGENT ({names}) or /open ID")
                return
            await self._commands.begin(cards[0].name)
        if self.talk is None:
            return
        if self.talk.is_over:
            self.say("error: not sent: this conversation is closed; /reopen opens it again")
            return
        if (why := refusal(text)) is not None:
            self.say(f"error: not sent: {why}")
            return
        message = self.desk.send(self.talk.id, text).id
        while (entry := self._pending(message)) is not None and entry.state == "sending":
            await self._changed_again()
        if entry is not None and entry.state == "held":
            self.say(f"note: held, {entry.why}; it goes out by itself")
        elif entry is not None and entry.state == "unsent":
            self.say(f"error: not sent: {one_line(entry.why, 300)}")
        elif self.manner.says_states:
            self.say("state: Your message is sent.")
        if not self.manner.by_person:
            await self._settled()

    async def _settled(self) -> None:
        """Wait until the turn has ended or a person is needed, so that a pipe has its answer."""
        talk = self.talk
        if talk is None:
            return
        try:
            async with asyncio.timeout(SETTLES_S):
                while not talk.is_current or talk.status == "thinking" or self._has_unseen(talk):
                    await self._changed_again()
        except TimeoutError:
            self.say(f"error: no answer within {SETTLES_S:.0f} s; it goes on")
        self.tell()

    def _pending(self, message: str) -> Pending | None:
        return next((p for p in self.desk.outbox.pending if p.id == message), None)

    def _has_unseen(self, talk: Talk) -> bool:
        return any(p.state in ("sending", "taken") for p in self.desk.outbox.of(talk.id))

    async def _at_end(self) -> int:
        """What the end of the lines means: a person leaves; a pipe wants to know how it stands."""
        if self.manner.by_person or self.talk is None:
            return DONE
        await self._settled()
        if self.talk.items:
            return PERSON_NEEDED
        return NO_ANSWER if self.desk.outbox.of(self.talk.id) else DONE

    def open(self, conversation: str) -> None:
        """Go to a conversation; its last lines are told."""
        if self.talk is not None and self.talk.id != conversation:
            self.desk.detach(self.talk.id)
        self.talk = self.desk.attach(conversation)
        self._rung = self.talk.turn
        self._wake()

    def put_off(self, item: str, revision: int) -> None:
        """Say no more of this revision of an item."""
        self._later.add((item, revision))

    async def started(
        self,
        agent: str,
        variables: Mapping[str, JsonValue],
        injected: Mapping[str, JsonValue],
    ) -> None:
        """Start a conversation and go to it.

        Raises:
            CapuchinError: it was refused.
        """
        self.open(await self.desk.start(agent, variables, injected))

    def tell(self) -> None:
        """Write what is new."""
        fleet = self.desk.fleet
        for line in self._teller.link(fleet.link, fleet.hold):
            self.say(line)
        talk = self.talk
        if talk is not None:
            for line in self._teller.news(talk):
                self.say(line)
        waiting = fleet.waiting()
        announced = self.docket.announce(
            [r for r in waiting if (r.id, r.revision) not in self._later]
        )
        for line in announced:
            self.say(line)
        turn = talk.turn if talk is not None and talk.status != "thinking" else self._rung
        if self.manner.rings and (announced or turn > self._rung):
            self._ring()
        self._rung = turn

    async def _tell_for_ever(self) -> None:
        while True:
            await self._changed_again()
            self.tell()

    def _changed(self, change: DeskChange) -> None:
        self._wake()

    def _wake(self) -> None:
        # Why another event: one that stays set would let whoever waits spin.
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _changed_again(self) -> None:
        await self._news.wait()
