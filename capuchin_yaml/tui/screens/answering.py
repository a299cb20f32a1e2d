"""From a key to a decision: the guard's word, the hold, the box, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.timer import Timer

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.items import Item, unanswerable
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.rows import Piece, Row, row
from capuchin_yaml.tui.model.answers import Answer, must_type_name
from capuchin_yaml.tui.model.guard import HOLD_S, QUIET_S, Shown
from capuchin_yaml.tui.model.remember import Remembered
from capuchin_yaml.tui.model.verdict import answered
from capuchin_yaml.tui.notices import Question
from capuchin_yaml.tui.screens.boxes import NameBox, TextBox

if TYPE_CHECKING:
    from capuchin_yaml.tui.screens.inbox import InboxScreen

_LATE_S = 0.05
_FLASH_S = 4.0


class Answering:
    """One item at a time; nothing is shown as decided before its conversation says so."""

    def __init__(self, screen: InboxScreen) -> None:
        self._screen = screen
        self._flash: Row = ()
        self._flash_until = 0.0
        self._held: Timer | None = None
        self._sending: set[tuple[str, str]] = set()

    def drop(self) -> None:
        """Another item is on show: a key still held back is void."""
        if self._held is not None:
            self._held.stop()
            self._held = None
        self._flash = ()

    def keys_row(self) -> Row:
        """The answer keys, and whether they act now."""
        screen = self._screen
        now = screen.capuchin.event_clock()
        if self._flash and now < self._flash_until:
            return self._flash
        item = screen.item
        labels = self.labels()
        if screen.detail.shown is None or not labels:
            if item is not None and not labels:
                return row(unanswerable(item.kind, item.conversation), "warn")
            return row("nothing to answer here", "muted")
        if item is not None and (item.id, item.digest) in self._sending:
            return row("… sent, waiting for the conversation's word", "accent")
        reason = self._why_not(now)
        keys = "  ".join(f"{key} {label}" for key, label in labels)
        if reason:
            return (Piece(f"○ {reason}  ", "muted"), Piece(keys, "muted"))
        return (Piece("● ", "ok"), Piece(keys, "strong"))

    def watch_arming(self) -> None:
        """Draw the keys again when they may have become live."""
        self._screen.set_timer(QUIET_S + 0.05, self._screen.draw_facts)

    def press(self, key: str, at: float) -> None:
        """An answer key was pressed at `at`; it acts only if the guard lets it through."""
        screen = self._screen
        shown = screen.detail.shown
        refusal = screen.capuchin.guard.refusal(shown, at) or self._link_refusal()
        if refusal or shown is None:
            self._say(f"not taken: {refusal}", "warn")
            self.watch_arming()
            return
        if screen.question is not None:
            question = screen.question
            self._hold(shown, lambda: self._answer_question(question, key))
            return
        item = screen.item
        answer = next((a for a in screen.answers(item) if a.key == key), None) if item else None
        if item is None or answer is None:
            return
        if (item.id, item.digest) in self._sending:
            self._say("an answer is on its way", "muted")
            return
        if answer.choice == "edit":
            # Why here: what is sent is what was painted when the key came.
            answer = replace(answer, arguments=screen.showing.edited or "")
        self._hold(shown, partial(self._go_on, item, answer))

    def labels(self) -> list[tuple[str, str]]:
        """Each answer key with what it does."""
        screen = self._screen
        if screen.question is not None:
            return [(o.key, one_line(o.label, 60)) for o in screen.question.options]
        item = screen.item
        return [(a.key, a.label) for a in screen.answers(item)] if item is not None else []

    def _why_not(self, now: float) -> str:
        screen = self._screen
        guard = screen.capuchin.guard
        if screen.focused is not screen.detail:
            first = self.labels()[:1]
            return f"Enter opens it, then {first[0][0]}" if first else "Enter opens it"
        if guard.unseen:
            return f"{guard.unseen} more lines to read (space)"
        link = self._link_refusal()
        if link:
            return link
        return "" if guard.armed(now) else "wait a moment"

    def _link_refusal(self) -> str:
        if self._screen.question is not None:
            return ""
        return self._screen.desk.fleet.hold

    def _hold(self, shown: Shown, then: Callable[[], None]) -> None:
        """Wait whether other input follows at once, as in a paste; then go on."""
        guard = self._screen.capuchin.guard
        clock = self._screen.capuchin.event_clock
        inputs, since = guard.inputs, clock()

        def look() -> None:
            nonlocal since
            self._held = None
            if guard.inputs != inputs:
                self._say("not taken: other keys came right after it", "warn")
            elif self._screen.detail.shown != shown:
                self._say("not taken: it changed meanwhile", "warn")
            elif clock() - since > HOLD_S + _LATE_S:
                # Why: the program was busy, so keys may wait that were not looked at yet.
                since = clock()
                self._held = self._screen.set_timer(HOLD_S, look)
            else:
                then()

        self.drop()
        self._held = self._screen.set_timer(HOLD_S, look)

    def _go_on(self, item: Item, answer: Answer) -> None:
        title = item.tool or item.title
        if must_type_name(item, answer):
            box = NameBox(item.tool, f"{answer.label}: {item.title}")
            self._screen.app.push_screen(box, lambda ok: self._typed(item, answer, bool(ok)))
        elif answer.asks_rule:
            self._ask_rule(item, answer)
        elif answer.asks == "reason":
            text = TextBox(
                f"deny {title}", "a reason helps the agent; it may be empty", may_be_empty=True
            )
            self._screen.app.push_screen(text, lambda text: self._written(item, answer, text))
        elif answer.asks == "result":
            text = TextBox(
                f"{title} happened",
                "what it would have answered; the model reads it",
                may_be_empty=False,
            )
            self._screen.app.push_screen(text, lambda text: self._written(item, answer, text))
        else:
            self._send(item, answer)

    def _typed(self, item: Item, answer: Answer, ok: bool) -> None:
        if ok and answer.asks_rule:
            self._ask_rule(item, answer)
        elif ok:
            self._send(item, answer)

    def _ask_rule(self, item: Item, answer: Answer) -> None:
        from capuchin_yaml.tui.screens.remembering import RememberBox

        def chosen(rule: Remembered | None) -> None:
            if rule is not None:
                self._send(item, answer, grant=rule.to_json())

        self._screen.app.push_screen(RememberBox(item, self._screen.now), chosen)

    def edit(self) -> None:
        """Open the editor on the arguments of the approval on show."""
        from capuchin_yaml.tui.screens.editing import EditBox

        screen = self._screen
        item = screen.item
        if item is None or item.kind != "approval" or screen.detail.shown is None:
            screen.capuchin.say("only a call that waits for approval can be changed")
            return
        begun = screen.showing.written or item.arguments

        def written(arguments: str | None) -> None:
            if arguments is not None:
                screen.showing.keep(item, arguments)
                screen.action_detail()
                screen.draw_facts()

        box = EditBox(f"change {item.tool}", begun, screen.showing.schema)
        screen.app.push_screen(box, written)

    def _written(self, item: Item, answer: Answer, text: str | None) -> None:
        if text is None:
            return
        if answer.asks == "result":
            self._send(item, answer, result=text)
        else:
            self._send(item, answer, reason=text)

    def _send(
        self,
        item: Item,
        answer: Answer,
        *,
        reason: str = "",
        result: str = "",
        grant: Mapping[str, JsonValue] | None = None,
    ) -> None:
        current = self._screen.desk.talk(item.conversation).items.get(item.id)
        if current is not None and (current.digest, current.revision) != (
            item.digest,
            item.revision,
        ):
            self._say("not sent: it changed meanwhile, read it again", "warn")
            return
        self._sending.add((item.id, item.digest))
        if answer.is_for_all:
            self._screen.desk.spawn(self._approve_all(item))
        else:
            self._screen.desk.spawn(self._decide(item, answer, reason, result, grant))
        self._screen.draw_facts()

    async def _decide(
        self,
        item: Item,
        answer: Answer,
        reason: str,
        result: str,
        grant: Mapping[str, JsonValue] | None,
    ) -> None:
        app = self._screen.capuchin
        try:
            decided = await self._screen.desk.decide(
                item, answer.choice, reason, result, arguments=answer.arguments, grant=grant
            )
        except CapuchinError as error:
            app.say(f"not decided: {one_line(str(error), 300)}", "bad")
        else:
            if not decided.accepted:
                app.say(answered(decided, app.user), "warn")
        finally:
            self._sending.discard((item.id, item.digest))
            if self._screen.is_mounted:
                self._screen.draw()

    async def _approve_all(self, item: Item) -> None:
        try:
            await self._screen.bulk.approve_identical(item)
        finally:
            self._sending.discard((item.id, item.digest))
            if self._screen.is_mounted:
                self._screen.draw()

    def _answer_question(self, question: Question, key: str) -> None:
        option = next(o for o in question.options if o.key == key)
        if not self._screen.capuchin.board.answer(question.id, option.choice):
            self._say("it was answered or taken back before", "muted")
        self._screen.draw()

    def _say(self, text: str, role: str) -> None:
        self._flash = row(text, role)
        self._flash_until = self._screen.capuchin.event_clock() + _FLASH_S
        self._screen.draw_facts()
        self._screen.set_timer(_FLASH_S, self._screen.draw_facts)
