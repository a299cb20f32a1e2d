"""What can be typed after a slash in the plain mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.bars import STATUSES, short_id
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.model.verdict import told
from capuchin_yaml.tui.plain.answering import PlainAnswering

if TYPE_CHECKING:
    from capuchin_yaml.tui.plain.session import PlainSession

Command: TypeAlias = Callable[[str, float], Awaitable[None]]
_HELP = (
    ("/list", "the conversations, numbered"),
    ("/open N or ID", "go to a conversation"),
    ("/new AGENT", "begin one; asks for what the agent needs"),
    ("/inbox", "what waits for a person, numbered"),
    ("/show N", "one item whole, and what to type to answer it"),
    ("/grants, /revoke GRANT", "what is allowed beforehand, and take it back"),
    ("/decided", "the last decisions"),
    ("/rename TITLE", "the title of this conversation"),
    ("/cancel, /close, /reopen", "the turn; the conversation"),
    ("/status", "where one is, and how it stands"),
    ("/quit", "leave; conversations go on"),
    ("//text", "a message that begins with a slash"),
)
_LISTED = 20


class Commands:
    """Each command says what it did; an unknown one does nothing."""

    def __init__(self, session: PlainSession) -> None:
        self._s = session
        self._listed: list[str] = []
        self._answering = PlainAnswering(session)
        self._known: dict[str, Command] = {
            "help": self._help,
            "list": self._list,
            "open": self._open,
            "new": self._new,
            "decided": self._decided,
            "cancel": self._cancel,
            "close": self._close,
            "rename": self._rename,
            "reopen": self._reopen,
            "status": self._status,
            "quit": self._quit,
            **self._answering.commands(),
        }

    async def run(self, text: str, at: float) -> None:
        """Carry out one command, typed at `at`.

        Raises:
            CapuchinError: it was refused.
        """
        name, _, rest = text.partition(" ")
        command = self._known.get(name.lower())
        if command is None:
            self._s.say(f"error: there is no /{one_line(name, 40)}; /help tells what there is")
            return
        await command(rest.strip(), at)

    async def begin(self, agent: str) -> None:
        """Start a conversation, asking for what the agent needs.

        Raises:
            CapuchinError: it was refused.
        """
        card = next((c for c in self._s.desk.fleet.agents if c.name == agent), None)
        card = card or AgentCard(agent)
        if not card.is_served:
            self._s.say(f"error: {card.problem or 'it is not served'}")
            return
        variables: dict[str, JsonValue] = {}
        injected: dict[str, JsonValue] = {}
        if card.asks_first:
            for name, spec in card.variables.items():
                note = ", required" if spec.required else f", without it {spec.default}"
                if spec.enum:
                    note = f", one of {', '.join(str(v) for v in spec.enum)}{note}"
                value = await self._asked(f"{name} ({spec.type}{note}) {spec.description}")
                if value is None:
                    return
                if value or spec.required:
                    variables[name] = value
            for name in card.injected:
                value = await self._asked(f"{name} (tools see it, the model does not)")
                if value is None:
                    return
                injected[name] = value
        await self._s.started(card.name, variables, injected)

    async def _asked(self, label: str) -> str | None:
        self._s.say(f"question: {one_line(label, 300)}")
        line = await self._s.reader.next_line()
        if line is None:
            self._s.say("error: nothing was started: the lines ended")
        return line.strip() if line is not None else None

    async def _help(self, rest: str, at: float) -> None:
        for typed, does in _HELP:
            self._s.say(f"{typed}: {does}")

    async def _list(self, rest: str, at: float) -> None:
        fleet = self._s.desk.fleet
        rows = fleet.ordered(rest)[:_LISTED]
        self._listed = [r.id for r in rows]
        for n, row in enumerate(rows, 1):
            word = STATUSES.get(fleet.status(row), ("", fleet.status(row), ""))[1]
            title = one_line(fleet.title(row), 80) or "without a title"
            self._s.say(f"{n}: {one_line(row.agent, 40)} {short_id(row.id)}, {word}, {title}")
        self._s.say(f"{len(rows)} conversations; /open N goes to one" if rows else "none")

    async def _open(self, rest: str, at: float) -> None:
        found = [r for r in self._s.desk.fleet.rows if rest and (r == rest or r.endswith(rest))]
        if rest.isdecimal() and 1 <= int(rest) <= len(self._listed):
            found = [self._listed[int(rest) - 1]]
        if len(found) == 1:
            self._s.open(found[0])
        else:
            self._s.say("error: no one conversation is meant; /list numbers them")

    async def _new(self, rest: str, at: float) -> None:
        served = [c.name for c in self._s.desk.fleet.agents if c.is_served]
        agent = rest or (served[0] if len(served) == 1 else "")
        if not agent:
            self._s.say(f"error: /new AGENT; agents here: {', '.join(served) or 'none is known'}")
        else:
            await self.begin(agent)

    async def _decided(self, rest: str, at: float) -> None:
        await self._s.desk.look.decisions()
        found = self._s.desk.fleet.decided()[:_LISTED]
        for entry in found:
            text, _ = told(entry.decision, self._s.gateway.user)
            what = entry.item.tool or entry.item.title if entry.item else entry.decision.item_kind
            self._s.say(f"{entry.decision.time}: {one_line(what, 80)} {text}")
        if not found:
            self._s.say("nothing so far")

    async def _cancel(self, rest: str, at: float) -> None:
        if (talk := self._s.talk) is None or not await self._s.desk.cancel_turn(talk.id):
            self._s.say("note: no turn was running")

    async def _close(self, rest: str, at: float) -> None:
        talk = self._s.talk
        if talk is None or talk.is_over:
            self._s.say("error: no open conversation is here")
        elif rest != talk.agent:
            self._s.say(f"note: it ends for good; to close it type /close {talk.agent}")
        else:
            await self._s.desk.close_talk(talk.id)

    async def _rename(self, rest: str, at: float) -> None:
        talk = self._s.talk
        if talk is None or talk.is_over:
            self._s.say("error: no open conversation is here")
        elif not rest:
            self._s.say("error: /rename TITLE")
        else:
            await self._s.desk.rename(talk.id, rest)

    async def _reopen(self, rest: str, at: float) -> None:
        if self._s.talk is not None:
            await self._s.desk.reopen(self._s.talk.id)

    async def _status(self, rest: str, at: float) -> None:
        fleet, talk = self._s.desk.fleet, self._s.talk
        link = "the server answers" if fleet.link.is_up else "the server is away"
        hold = f", {fleet.hold}" if fleet.link.is_up and fleet.hold else ""
        self._s.say(f"project {one_line(self._s.gateway.project, 80)}: {link}{hold}")
        self._s.say(f"{len(fleet.waiting())} items wait for a person")
        if talk is not None:
            word = STATUSES.get(talk.status, ("", talk.status, ""))[1]
            name = f"{one_line(talk.agent, 40)} {short_id(talk.id)}"
            model = one_line(talk.model, 60) or "a model"
            self._s.say(f"{name}: {word}, {talk.usage.total:,} tokens with {model}")

    async def _quit(self, rest: str, at: float) -> None:
        self._s.is_leaving = True
