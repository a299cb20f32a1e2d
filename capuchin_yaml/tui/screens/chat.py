"""The chat: conversations at the left, one transcript, what waits, and the composer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.bars import queue_rows, status_row, strip_rows, talk_rows
from capuchin_yaml.tui.draw.rows import Row, row
from capuchin_yaml.tui.screens.finding import Finding
from capuchin_yaml.tui.screens.frame import Frame
from capuchin_yaml.tui.screens.writing import Writing
from capuchin_yaml.tui.typeahead import take_keys
from capuchin_yaml.tui.widgets.composer import Composer
from capuchin_yaml.tui.widgets.lines import Lines
from capuchin_yaml.tui.widgets.picklist import Pick, PickList
from capuchin_yaml.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from capuchin_yaml.tui.desk import TalkChanged
    from capuchin_yaml.tui.gateway import TalkRow
    from capuchin_yaml.tui.model.changes import Change
    from capuchin_yaml.tui.model.fleet import Fleet
    from capuchin_yaml.tui.model.talk import Talk

TWICE_S = 2.0
"""The second ctrl+c or Esc must come within this time."""
_QUEUE_ROWS = 4


class ChatScreen(Frame):
    """One conversation at a time; drafts are kept for each."""

    CSS_PATH = "chat.tcss"
    PANES = ("#filter", "#talks", "#transcript", "#pill", "#queue", "#strip", "#menu", "#composer")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+b", "talks", "conversations", id="chat.talks"),
        Binding("ctrl+n", "app.new_talk", "new", id="chat.new", priority=True),
        Binding("slash", "filter", "filter", show=False, id="chat.filter", priority=True),
        Binding("escape", "compose", "composer", show=False, id="chat.compose"),
        Binding("ctrl+c", "interrupt", "copy or cancel", show=False, id="chat.copy"),
        Binding("ctrl+f", "find", "find", id="chat.find", priority=True),
        Binding("ctrl+r", "history", "messages sent before", id="chat.history", priority=True),
        Binding("ctrl+g", "editor", "external editor", id="chat.editor", priority=True),
        Binding(
            "ctrl+pageup",
            "neighbour(-1)",
            "conversation above",
            show=False,
            id="chat.previous",
            priority=True,
        ),
        Binding(
            "ctrl+pagedown",
            "neighbour(1)",
            "conversation below",
            show=False,
            id="chat.next",
            priority=True,
        ),
        *(
            Binding(
                str(n),
                f"nth({n})",
                f"conversation {n} of the list (not in text)",
                show=False,
                id=f"chat.nth{n}",
            )
            for n in range(1, 10)
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.talk: Talk | None = None
        self._changes: list[Change] = []
        self._first_press: tuple[str, float] = ("", float("-inf"))
        self._writing = Writing(self)
        self._finding = Finding(self)

    def compose(self) -> ComposeResult:
        """The panes."""
        yield Lines(id="top")
        yield Lines(id="banner")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield Input(placeholder="filter", id="filter", compact=True)
                yield PickList(id="talks")
            with Vertical(id="main"):
                yield Transcript(id="transcript")
                yield Lines(id="pill")
                yield Lines(id="queue")
                yield Lines(id="strip")
                yield Input(
                    placeholder="find · Enter or up: older · down: newer · Esc closes",
                    id="find",
                    compact=True,
                )
                yield PickList(id="menu", height=1)
                yield Composer(self.capuchin.drafts.pasted, id="composer")
        yield Lines(id="status")

    def on_mount(self) -> None:
        """Start in the composer."""
        composer = self.query_one(Composer)
        composer.accept = self._submit
        composer.put(self.capuchin.drafts.get(""))
        take_keys(composer)
        self.query_one("#find").display = False
        menu = self.query_one("#menu", PickList)
        menu.display, menu.can_focus = False, False
        self.draw()

    def on_resize(self) -> None:
        """Bars are cut for the width."""
        self.draw()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is on show and nothing was written yet."""
        return self.talk is None and not self.query_one(Composer).text

    def open(self, conversation: str) -> None:
        """Show a conversation; the draft of the one before is kept."""
        if self.talk is not None and self.talk.id == conversation:
            self._close_side()
            return
        composer = self.query_one(Composer)
        drafts = self.capuchin.drafts
        if self.talk is not None:
            drafts.put(self.talk.id, composer.text)
            self.desk.detach(self.talk.id)
        elif composer.text.strip():
            # Words written before any conversation was open belong to the first one.
            kept = drafts.get(conversation)
            drafts.put(conversation, f"{kept}\n{composer.text}" if kept.strip() else composer.text)
        drafts.put("", "")
        self.talk = self.desk.attach(conversation)
        self.capuchin.place.keep(conversation)
        self._changes.clear()
        self.query_one(Transcript).show(self.talk)
        composer.text = drafts.get(conversation)
        composer.move_cursor(composer.document.end)
        self._close_side()
        self.draw()

    def focus_composer(self) -> None:
        """Go to the composer; what was typed for it before is typed into it."""
        take_keys(self.query_one(Composer))

    def add_to_draft(self, text: str) -> None:
        """Write behind what is in the composer."""
        composer = self.query_one(Composer)
        composer.put(composer.text + text)

    def holds(self, text: str) -> bool:
        """Whether the composer still holds exactly this."""
        return self.query_one(Composer).message == text

    def send_first(self, text: str) -> None:
        """Send the words with which a conversation was begun, unless they were changed since."""
        if self.holds(text):
            self.query_one(Composer).action_submit()

    def take(self, change: TalkChanged) -> None:
        """Remember changes of the shown talk until the next drawing."""
        if self.talk is not None and change.talk == self.talk.id:
            self._changes.extend(change.changes)

    def take_now(self) -> None:
        """Bring the transcript up to date."""
        if self._changes:
            changes, self._changes = self._changes, []
            self.query_one(Transcript).take(changes)
        transcript = self.query_one(Transcript)
        if self.talk is not None and self.talk.first_offset and not transcript.max_scroll_y:
            self._read_older()

    def draw(self) -> None:
        """Bring everything up to date."""
        if not self.is_ready:
            return
        talk, fleet, now = self.talk, self.fleet, self.now()
        self.draw_frame(talk)
        self.take_now()
        pending = self.desk.outbox.of(talk.id) if talk else []
        queue = queue_rows(talk.queued if talk else [], pending)
        if len(queue) > _QUEUE_ROWS:
            rest = len(queue) - _QUEUE_ROWS + 1
            queue = [*queue[: _QUEUE_ROWS - 1], row(f"  and {rest} more", "muted")]
        self.query_one("#queue", Lines).set_rows(queue)
        waiting = fleet.waiting() if fleet is not None else ()
        self.query_one("#strip", Lines).set_rows(strip_rows(waiting, talk, now))
        width = max(self.size.width - 2, 1)
        keys = "^b list  ^n new  F2 inbox  F1 help" if width > 60 else "F1 help"
        status = status_row(talk, self.capuchin.notice_row, width, keys)
        self.query_one("#status", Lines).set_rows([status])
        self._draw_talks()
        transcript = self.query_one(Transcript)
        self._draw_pill(transcript.following, transcript.unseen)

    def _draw_talks(self) -> None:
        fleet, now = self.fleet, self.now()
        needle = self.query_one("#filter", Input).value

        def pick(fleet: Fleet, entry: TalkRow) -> Pick:
            status, title = fleet.status(entry), fleet.title(entry)
            return Pick(entry.id, lambda width: talk_rows(entry, status, title, width, now))

        empty: list[Row] = [row("no conversations yet", "muted"), row("ctrl+n starts one", "muted")]
        if needle:
            empty = [row("nothing holds that text", "muted"), row("Esc clears it", "muted")]
        talks = self.query_one("#talks", PickList)
        picks = [] if fleet is None else [pick(fleet, r) for r in fleet.ordered(needle)]
        talks.set_picks(picks, empty)

    @on(PickList.Opened, "#talks")
    def _open_talk(self, event: PickList.Opened) -> None:
        self.open(event.key)
        self.query_one(Composer).focus()

    @on(Input.Changed, "#filter")
    def _filter(self) -> None:
        self._draw_talks()

    @on(Input.Submitted, "#filter")
    def _filtered(self) -> None:
        self.query_one("#talks", PickList).focus()

    @on(Transcript.Moved)
    def _moved(self, event: Transcript.Moved) -> None:
        self._draw_pill(event.following, event.unseen)

    def _draw_pill(self, following: bool, unseen: int) -> None:
        rows: list[Row] = []
        if not following:
            is_reading = self.focused is self.query_one(Transcript)
            key = "End" if is_reading else "ctrl+End"
            new = f"{unseen} new · " if unseen else ""
            rows = [row(f"▼ {new}{key} to follow", "accent")]
        elif self.talk is None:
            known = self.fleet.agents[:5] if self.fleet is not None else ()
            agents = ", ".join(one_line(a.name, 40) for a in known)
            rows = [
                row("no conversation is open: write one's first message, or ctrl+b lists them"),
                row(f"agents here: {agents or 'not known yet'}", "muted"),
            ]
        self.query_one("#pill", Lines).set_rows(rows)

    @on(Transcript.OlderWanted)
    def _read_older(self) -> None:
        if self.talk is not None and self.talk.is_current:
            self.desk.spawn(self._older(self.talk.id))

    async def _older(self, conversation: str) -> None:
        try:
            await self.desk.older(conversation)
        except CapuchinError as error:
            self.capuchin.say(f"older messages could not be read: {error}", "bad")

    @on(Transcript.CopyWanted)
    def _copy(self, event: Transcript.CopyWanted) -> None:
        self.capuchin.copy_to_clipboard(event.text)

    @on(Composer.ScrollTalk)
    def _scroll_talk(self, event: Composer.ScrollTalk) -> None:
        transcript = self.query_one(Transcript)
        if event.pages:
            transcript.action_page(event.pages)
        else:
            transcript.action_follow()

    def _submit(self, text: str) -> bool:
        """Send what was written; False leaves it in the composer."""
        talk = self.talk
        if talk is None:
            self.capuchin.talks.begin(text)
            return False
        if talk.is_over:
            again = "; /reopen opens it again" if talk.status == "closed" else ""
            text = f"this conversation is {talk.status}{again}; the draft stays"
            self.capuchin.say(text, "warn")
            return False
        if text.startswith("/rename ") and "\n" not in text.strip():
            self.capuchin.talks.rename(text.removeprefix("/rename ").strip())
            return True
        self.desk.send(talk.id, text)
        self.capuchin.history.add(text)
        self.capuchin.drafts.put(talk.id, "")
        self.query_one(Transcript).action_follow()
        return True

    @on(Composer.Refused)
    def _refused(self, event: Composer.Refused) -> None:
        self.capuchin.say(event.why, "warn")

    @on(Composer.Changed)
    def _drafted(self) -> None:
        talk = self.talk.id if self.talk else ""
        self.capuchin.drafts.put(talk, self.query_one(Composer).text)
        self._writing.refresh()

    @on(Composer.Suggested)
    def _suggestion_key(self, event: Composer.Suggested) -> None:
        self._writing.key(event.step)

    @on(PickList.Opened, "#menu")
    def _suggestion_clicked(self, event: PickList.Opened) -> None:
        self._writing.take(event.key)

    @on(Composer.LookBack)
    def _look_back(self, event: Composer.LookBack) -> None:
        self._writing.look_back(event.step)

    @on(Input.Submitted, "#find")
    def _find_older(self) -> None:
        self._finding.go(-1)

    def on_key(self, event: events.Key) -> None:
        """In the line for finding, up and down go to the places found."""
        if self.focused is self._finding.box and event.key in ("up", "down"):
            event.stop()
            self._finding.go(-1 if event.key == "up" else 1)

    def action_find(self) -> None:
        """Look for a text in this conversation."""
        self._finding.open()

    def action_history(self) -> None:
        """Search the messages sent before."""
        self._writing.search()

    def action_editor(self) -> None:
        """Write the draft in an editor."""
        self._writing.edit()

    def action_neighbour(self, step: int) -> None:
        """Show the conversation above or below in the list."""
        keys = self.query_one("#talks", PickList).keys
        if keys:
            here = keys.index(self.talk.id) if self.talk and self.talk.id in keys else -1
            self.open(keys[min(max(here + step, 0), len(keys) - 1)])

    def action_nth(self, place: int) -> None:
        """Show a conversation by its place in the list."""
        keys = self.query_one("#talks", PickList).keys
        if place <= len(keys):
            self.open(keys[place - 1])

    @on(Composer.TakeBack)
    def take_back(self) -> None:
        """Put the newest message that has not gone out back into the composer."""
        composer = self.query_one(Composer)
        entry = self.desk.outbox.take_back(self.talk.id) if self.talk else None
        if entry is None:
            self.capuchin.say("no message here can be taken back")
            return
        draft = composer.text
        composer.put(f"{entry.text}\n{draft}" if draft.strip() else entry.text)
        self.draw()

    @on(Composer.Interrupted)
    def _interrupted(self, event: Composer.Interrupted) -> None:
        if event.key == "esc" and (self._writing.close() or self._close_find()):
            return
        self._interrupt(event.key)

    def _close_find(self) -> bool:
        was_open = bool(self._finding.box.display)
        self._finding.close()
        return was_open

    def action_interrupt(self) -> None:
        """Copy what is selected, else count as one of two presses that cancel the turn."""
        self._interrupt("ctrl+c")

    def _interrupt(self, key: str) -> None:
        selected = self.get_selected_text()
        if key == "ctrl+c" and selected:
            self.capuchin.copy_to_clipboard(selected)
            self.clear_selection()
            return
        if self.talk is None or not self.talk.is_running:
            if key == "ctrl+c":
                self.capuchin.say("nothing runs here; ctrl+q leaves the TUI")
            return
        now = self.desk.clock()
        first, at = self._first_press
        if first == key and now - at <= TWICE_S:
            self._first_press = ("", float("-inf"))
            self.cancel_turn()
        else:
            self._first_press = (key, now)
            self.capuchin.say(f"{key} again cancels the turn", "warn")

    def cancel_turn(self) -> None:
        """Ask the workflow to end the turn; the screen changes when it says so."""
        if self.talk is not None:
            self.desk.spawn(self._cancel(self.talk.id))

    async def _cancel(self, conversation: str) -> None:
        try:
            if not await self.desk.cancel_turn(conversation):
                self.capuchin.say("no turn was running")
        except CapuchinError as error:
            self.capuchin.say(f"not cancelled: {error}", "bad")

    def action_talks(self) -> None:
        """Go to the list of conversations, or back to the composer."""
        talks = self.query_one("#talks", PickList)
        if self.focused is talks:
            self.action_compose()
            return
        self.add_class("-side")
        talks.focus()

    def action_filter(self) -> None:
        """Go to the filter of the list."""
        self.add_class("-side")
        take_keys(self.query_one("#filter", Input))

    def action_compose(self) -> None:
        """Clear the filter and go to the composer."""
        self.query_one("#filter", Input).value = ""
        self._close_find()
        self._close_side()
        self.query_one(Composer).focus()

    def _close_side(self) -> None:
        self.remove_class("-side")
