"""The TUI: one app, a chat and other screens over one desk. It paints first and connects after.

Screens that the first frame does not need are imported when they are opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import signal
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message

from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui import clipboard
from capuchin_yaml.tui.commands import choosables, run_chosen
from capuchin_yaml.tui.drafts import Drafts
from capuchin_yaml.tui.draw.rows import Row, row
from capuchin_yaml.tui.history import History
from capuchin_yaml.tui.keys import read_keymap
from capuchin_yaml.tui.model.bench import Bench
from capuchin_yaml.tui.model.entries import Tone
from capuchin_yaml.tui.model.guard import Guard
from capuchin_yaml.tui.model.pasted import clean, hidden_marks
from capuchin_yaml.tui.notices import NoticeBoard
from capuchin_yaml.tui.place import Place
from capuchin_yaml.tui.presence import Other, Presence, terminal_name
from capuchin_yaml.tui.screens.boxes import HelpBox, QuitBox, TooSmall
from capuchin_yaml.tui.screens.chat import ChatScreen
from capuchin_yaml.tui.screens.chooser import Chooser
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.talks import Talks
from capuchin_yaml.tui.terminal import keep
from capuchin_yaml.tui.typeahead import Form, TypedAhead
from capuchin_yaml.tui.widgets.item_detail import ItemDetail

if TYPE_CHECKING:
    from capuchin_yaml.tui.desk import Connect, Desk, DeskChange

MIN_COLUMNS = 40
MIN_ROWS = 12
FLUSH_S = 0.1
SLOW_FLUSH_S = 0.25
_GC_THRESHOLDS = (5_000, 20, 50)
NOTICE_S = 8.0
_NOTICE_ROLES = {"info": "muted", "ok": "ok", "warn": "warn", "bad": "bad"}
_INPUTS = (events.Key, events.Paste, events.MouseDown, events.MouseScrollDown, events.MouseScrollUp)


class CapuchinApp(App[int]):
    """The terminal UI over a gateway that `connect` opens once the first frame is painted."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    TITLE = "capuchin"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "help", id="app.help"),
        Binding("f2", "inbox", "inbox", id="app.inbox"),
        Binding("f3", "events", "events", id="app.events"),
        Binding("f4", "costs", "costs", id="app.costs"),
        Binding("f5", "agents", "agents", id="app.agents"),
        Binding("ctrl+p", "palette", "every action", id="app.palette", priority=True),
        Binding("ctrl+q", "quit", "quit (talks go on)", id="app.quit", priority=True),
        Binding("ctrl+l", "repaint", "repaint", id="app.repaint", show=False),
        Binding("ctrl+z", "suspend_process", "suspend", id="app.suspend", show=False),
    ]

    class BoardChanged(Message):
        """The program around the TUI has something to say or to ask."""

    def __init__(
        self,
        connect: Connect,
        *,
        start: str | None = None,
        agent: str | None = None,
        board: NoticeBoard | None = None,
        drafts_file: Path | None = None,
        home: Path | None = None,
        ends_worker: bool = False,
        is_read_only: bool = False,
        clock: Callable[[], float] = monotonic,
        poll_s: float = 1.0,
    ) -> None:
        super().__init__()
        self.animation_level = "none"
        self.board = board or NoticeBoard()
        self.guard = Guard()
        self.bench = Bench()
        self.ahead = TypedAhead(self, super().on_event, self._keep_typed)
        self.drafts = Drafts(drafts_file or (home / "drafts.json" if home else None))
        self.place = Place(home / "place.json" if home else None)
        self._resume = "" if start or agent else self.place.conversation
        self.history = History(home / "history.jsonl" if home else None)
        self.presence = Presence(home)
        self.others: tuple[Other, ...] = ()
        """Other TUIs of this machine on the same project."""
        self._keys_file = home / "keys.yaml" if home else None
        self.is_read_only = is_read_only
        self.clock = clock
        self.started_at = clock()
        self.has_begun = False
        """Whether the desk may be asked: after the first frame, which needs nothing of it."""
        self._connect_to = connect
        self._poll_s = poll_s
        self.chat = ChatScreen()
        self.talks = Talks(self)
        self._open_first = start
        self._agent_first = agent
        self._after_leaving = "the worker ends with this TUI: they go on with the next `up`"
        if not ends_worker:
            self._after_leaving = "they go on without this TUI"
        self._notice: tuple[Row, float] = ((), 0.0)
        self._was_down = False
        self._is_flush_due = False
        self._last_flush = float("-inf")
        self._flush_s = SLOW_FLUSH_S if os.environ.get("SSH_CONNECTION") else FLUSH_S
        self._known_waiting: set[str] = set()

    @cached_property
    def desk(self) -> Desk:
        """What is known of conversations; the first to ask for it waits for its import."""
        from capuchin_yaml.tui.desk import Desk

        return Desk(self._connect_to, self._on_change, self.clock, self._poll_s)

    @property
    def user(self) -> str:
        """The name that decisions are made under."""
        return self.desk.gateway.user if self.desk.gateway is not None else ""

    def drop_notice(self, text: str = "") -> None:
        """Show no notice any more, or not this one."""
        if not text or (self._notice[0] and text in "".join(p.text for p in self._notice[0])):
            self._notice = ((), 0.0)
            self._draw_soon()

    @property
    def notice_row(self) -> Row:
        """The notice on show, empty when there is none."""
        shown, until = self._notice
        return shown if self.event_clock() < until else ()

    def event_clock(self) -> float:
        """Now, by the clock that keys are stamped with when they are read."""
        return monotonic()

    @property
    def stopped_by(self) -> str:
        """The fault that ended the app, in one line; empty when a person left it."""
        error = self._exception
        return one_line(f"{type(error).__name__}: {error}", 300) if error is not None else ""

    def on_mount(self) -> None:
        """Paint, then connect."""
        self._leave_on_signals(asyncio.get_running_loop())
        # Why: Textual takes in what is printed while it runs, and drops it when nobody asks.
        self.begin_capture_print(self)
        keymap = read_keymap(self._keys_file)
        self.set_keymap(dict(keymap.keys))
        if keymap.problems:
            self.say("; ".join(keymap.problems), "warn")
        self.screen_change_signal.subscribe(self, self.ahead.on_screen, immediate=True)
        self.ahead.hold(self.chat)
        self.push_screen(self.chat)
        self.guard.focus(True, float("-inf"))
        self.set_interval(1.0, self._tick)
        self.call_after_refresh(self._begin)

    def on_print(self, event: events.Print) -> None:
        """Keep in the log what something printed."""
        keep(event.text)

    def _leave_on_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the terminal back when the program is told to end."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit, 0, 128 + number)

    def _begin(self) -> None:
        # Why a message: it may be posted from any thread, and is handled in the app's context.
        self.board.listen(lambda: self.post_message(self.BoardChanged()))
        self.run_desk()

    @work(exclusive=True, group="desk", exit_on_error=True)
    async def run_desk(self) -> None:
        """Keep the desk fresh; open what was asked for once it is reached."""
        # Why in a thread: what is typed while it is imported is shown at once.
        await asyncio.to_thread(importlib.import_module, "capuchin_yaml.tui.desk")
        self.has_begun = True
        if not self.is_headless:
            # Why: a search through everything ever made takes 50 ms, and a key waits for it.
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)
        await self.desk.run()

    async def on_event(self, event: events.Event) -> None:
        """Tell the guard of every input and of the focus before anything acts on it."""
        if isinstance(event, _INPUTS) and not event.is_forwarded:
            self.guard.input(event.time)
            # Why: some terminals tell that the focus went and not that it came back.
            self.guard.focus(True, event.time)
            if isinstance(event, events.Paste):
                self._clean_paste(event)
        elif isinstance(event, events.AppFocus):
            self.guard.focus(True, event.time)
        elif isinstance(event, events.AppBlur):
            self.guard.focus(False, event.time)
        await self.ahead.take(event)

    async def on_typed_ahead_due(self, event: TypedAhead.Due) -> None:
        """Act on what was typed before its field was there."""
        await self.ahead.due(event)

    async def on_typed_ahead_passed(self, event: TypedAhead.Passed) -> None:
        """A key was dealt with: the next one."""
        await self.ahead.passed(event)

    def _keep_typed(self, text: str) -> None:
        """What was typed for a form that is gone: into the draft, seen and not sent."""
        self.chat.add_to_draft(text)
        self.say("what you typed last is in the draft: its form was closed before")

    def on_resize(self, event: events.Resize) -> None:
        """Say so when the window is too small, and go on when it is not."""
        is_small = event.size.width < MIN_COLUMNS or event.size.height < MIN_ROWS
        shown = isinstance(self.screen, TooSmall)
        if is_small and not shown:
            for detail in self.screen.query(ItemDetail):
                detail.forget()
            self.push_screen(TooSmall(MIN_COLUMNS, MIN_ROWS))
        elif shown and not is_small:
            self.pop_screen()

    def _clean_paste(self, event: events.Paste) -> None:
        """Write control characters out: the terminal would act on them once they are drawn."""
        event.text, controls = clean(event.text)
        hidden = hidden_marks(event.text)
        if controls:
            self.say(f"{controls} control characters of the paste are written out", "warn")
        elif hidden:
            self.say(f"the paste holds {hidden} marks that are not seen, such as bidi", "warn")

    def say(self, text: str, tone: Tone = "info", *, lasts_s: float = NOTICE_S) -> None:
        """Show a line at the bottom for a while; it covers nothing and takes no focus."""
        shown = row(one_line(text, 500), _NOTICE_ROLES[tone])
        self._notice = (shown, self.event_clock() + lasts_s)
        self._draw_soon()

    def copy_to_clipboard(self, text: str) -> None:
        """Hand a text to the terminal's clipboard, and say honestly what was done."""
        told, is_sent = clipboard.word(text, os.environ)
        if is_sent:
            self._clipboard = text
            if self._driver is not None:
                for sequence in clipboard.sequences(text, os.environ):
                    self._driver.write(sequence)
        self.say(told, "info" if is_sent else "warn")

    def action_inbox(self) -> None:
        """Open the inbox, at what this conversation waits for."""
        from capuchin_yaml.tui.screens.inbox import InboxScreen

        talk = self.chat.talk
        mine = [r.id for r in self.desk.fleet.waiting() if talk and r.conversation == talk.id]
        self._go_to(InboxScreen(mine[0] if mine else ""))

    def action_decided(self) -> None:
        """Open what was decided before."""
        from capuchin_yaml.tui.screens.decided import DecidedScreen

        self._go_to(DecidedScreen())

    def action_grants(self) -> None:
        """Open what stands allowed beforehand."""
        from capuchin_yaml.tui.screens.grants import GrantsScreen

        self._go_to(GrantsScreen())

    def action_events(self) -> None:
        """Open the log of the conversation on show."""
        from capuchin_yaml.tui.screens.events import EventsScreen

        self._go_to(EventsScreen(self.chat.talk))

    def action_costs(self) -> None:
        """Open the tokens of all conversations."""
        from capuchin_yaml.tui.screens.costs import CostsScreen

        self._go_to(CostsScreen())

    def action_agents(self) -> None:
        """Open the list of agents."""
        from capuchin_yaml.tui.screens.agents import AgentsScreen

        self._go_to(AgentsScreen())

    def action_palette(self) -> None:
        """Open every action, conversation and agent by name."""

        def chosen(key: str | None) -> None:
            if key is not None:
                run_chosen(self, key)

        if isinstance(self.screen, Frame):
            self.push_screen(Chooser("actions, conversations, agents", choosables(self)), chosen)

    def to_chat(self) -> None:
        """Leave whatever full screen lies over the chat."""
        while isinstance(self.screen, Frame) and self.screen is not self.chat:
            self.pop_screen()

    def _go_to(self, screen: Frame) -> None:
        """Show a full screen over the chat, in place of the one that is there."""
        if isinstance(self.screen, Frame):
            self.to_chat()
            self.push_screen(screen)

    def action_new_talk(self, agent: str = "") -> None:
        """Open the picker of agents."""
        self.talks.pick_agent(agent)

    def action_help(self) -> None:
        """Show the keys that act here."""
        if isinstance(self.screen, Frame):
            keys = {
                active.binding.key: active.binding.description
                for active in self.screen.active_bindings.values()
                if active.binding.description and active.binding.id
            }
            notes = [
                "ctrl+p lists every action, / in the composer too. Approvals are answered in "
                "the inbox (F2) only: Enter opens one, read it to its end, then press a or d. "
                "keys.yaml in the state folder gives actions other keys."
            ]
            self.push_screen(HelpBox([*self.screen.answer_keys(), *sorted(keys.items())], notes))

    def action_repaint(self) -> None:
        """Draw the whole screen again."""
        self.refresh(repaint=True, layout=True)
        self.screen.refresh(repaint=True, layout=True)

    async def action_quit(self) -> None:
        """Leave; while turns run, ask first, and once more pressed it leaves."""
        fleet = self.desk.fleet
        running = sum(fleet.status(r) == "thinking" for r in fleet.rows.values())
        if not running or not isinstance(self.screen, Frame):
            self.exit(0)
            return

        def told(leaves: bool | None) -> None:
            if leaves:
                self.exit(0)

        self.push_screen(QuitBox(running, self._after_leaving), told)

    async def on_unmount(self) -> None:
        """Keep the drafts and let go of the server."""
        self.board.listen(None)
        self.drafts.save()
        self.presence.leave()
        if self.has_begun:
            await self.desk.shut()

    def _on_change(self, change: DeskChange) -> None:
        from capuchin_yaml.tui.desk import Fault, TalkChanged
        from capuchin_yaml.tui.lookups import What

        if isinstance(change, TalkChanged):
            self.chat.take(change)
        elif change is What.LINK:
            self._tell_link()
        elif isinstance(change, Fault):
            self.say(f"a fault of this program, it goes on: {change.text}", "bad")
        self._draw_soon()

    def _tell_link(self) -> None:
        is_up = self.desk.fleet.link.is_up
        if is_up and self._was_down:
            self.say("the server is back; nothing was missed", "ok")
        self._was_down = self.desk.fleet.link.state == "down"

    def _draw_soon(self) -> None:
        """Draw at once after a quiet time, else when the frame is due."""
        if self._is_flush_due or not self.is_running:
            return
        self._is_flush_due = True
        wait = self._last_flush + self._flush_s - self.event_clock()
        if wait <= 0:
            self.call_next(self._draw_now)
        else:
            self.set_timer(wait, self._draw_now)

    def _draw_now(self) -> None:
        self._is_flush_due = False
        self._last_flush = self.event_clock()
        if self.has_begun:
            self._ring()
            self._open_wanted()
            self.talks.go_on()
        for screen in self.screen_stack:
            if isinstance(screen, Frame | Form) and screen.is_mounted:
                screen.draw()

    def _tick(self) -> None:
        """Ages, drafts no older than a second, and who else is here."""
        self.drafts.save()
        if self.has_begun and self.desk.gateway is not None:
            self.presence.enter(self.user, terminal_name())
            self.others = self.presence.others()
        self._draw_soon()

    def _ring(self) -> None:
        """One bell for something new that waits while nobody looks at the terminal."""
        waiting = {r.id for r in self.desk.fleet.waiting()}
        gateway = self.desk.gateway
        rings = gateway is not None and gateway.rings
        if waiting - self._known_waiting and (rings or not self.app_focus):
            self.bell()
        self._known_waiting = waiting

    def _open_wanted(self) -> None:
        if not self.desk.fleet.link.is_up:
            return
        if self._open_first is not None:
            wanted, self._open_first = self._open_first, None
            self.chat.open(wanted)
        elif self._agent_first is not None and self.desk.fleet.agents:
            agent, self._agent_first = self._agent_first, None
            self.action_new_talk(agent)
        elif self._resume and self.desk.fleet.rows:
            wanted, self._resume = self._resume, ""
            row = self.desk.fleet.rows.get(wanted)
            is_open = row is not None and row.status not in ("closed", "failed")
            # Why: who has begun to do something else is not taken away from it.
            if is_open and self.screen is self.chat and self.chat.is_untouched:
                self.chat.open(wanted)

    @on(BoardChanged)
    def _read_board(self) -> None:
        for notice in self.board.take():
            self.say(notice.text, notice.tone)
        self._draw_soon()
