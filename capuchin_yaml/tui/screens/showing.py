"""What the inbox shows at the right: one item whole, with what a person changed of it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from capuchin_yaml.client.claimant import has_ended
from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.items import Item
from capuchin_yaml.spec import JsonValue
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.draw.clock import since
from capuchin_yaml.tui.draw.item import (
    VIEWS,
    View,
    claim_text,
    deadline,
    item_rows,
    question_rows,
    talk_rows,
)
from capuchin_yaml.tui.draw.rows import Piece, Row, row
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.answers import EDITED, Answer, answers
from capuchin_yaml.tui.model.bench import identical
from capuchin_yaml.tui.model.verdict import told
from capuchin_yaml.tui.notices import Question

if TYPE_CHECKING:
    from capuchin_yaml.tui.screens.inbox import InboxScreen

REREAD_S = 5.0
"""An open item is read again so often: a claim of somebody else changes no log."""
CLAIM_AGAIN_S = 240.0
"""A claim fades after five minutes, and is made again before that."""


class Showing:
    """One thing at a time; whatever changes of it must be seen again before it is answered."""

    def __init__(self, screen: InboxScreen) -> None:
        self._screen = screen
        self.row: InboxRow | None = None
        self.item: Item | None = None
        self.question: Question | None = None
        self.problem = ""
        self.schema: Mapping[str, JsonValue] | None = None
        self._view: View = VIEWS[0]
        self._edits: dict[str, tuple[str, str]] = {}
        """By item: the digest it had, and the arguments that a person wrote."""
        self._claimed: dict[str, float] = {}
        self._read_at = float("-inf")

    @property
    def edited(self) -> str | None:
        """Arguments that were written instead of those of the very item on show."""
        if self.item is None:
            return None
        digest, arguments = self._edits.get(self.item.id, ("", ""))
        return arguments if digest == self.item.digest else None

    @property
    def written(self) -> str | None:
        """Arguments that were written for this item, be it for an earlier revision."""
        return self._edits.get(self.item.id, ("", None))[1] if self.item is not None else None

    def keep(self, item: Item, arguments: str) -> None:
        """Take what a person wrote for an item; the item's own arguments are no change."""
        self._edits.pop(item.id, None)
        if arguments != item.arguments:
            self._edits[item.id] = (item.digest, arguments)
        self.lay_out()

    def answers(self, item: Item) -> tuple[Answer, ...]:
        """What can be answered to an item here; one key for all that run the very same call."""
        given = answers(item)
        if item is self.item and self.edited is not None:
            return tuple(EDITED if a.choice == "approve" else a for a in given if not a.asks_rule)
        same = identical(item.digest, self._screen.desk.fleet.waiting())
        if len(same) < 2 or not given:
            return given
        label = f"approve all {len(same)} identical calls"
        return (*given, Answer("A", "approve", label, runs_tool=True, is_for_all=True))

    def show(self, key: str) -> bool:
        """Show an item or a question; False when it is on show already."""
        if key in (self.row.id if self.row else None, self.question.id if self.question else None):
            return False
        screen = self._screen
        self.item, self.row, self.question, self.problem, self.schema = None, None, None, "", None
        self.question = next((q for q in screen.capuchin.board.questions() if q.id == key), None)
        self.row = next((r for r in screen.desk.fleet.waiting() if r.id == key), None)
        screen.detail.show(None, None)
        if self.row is not None:
            screen.desk.attach(self.row.conversation)
            self._read(self.row)
        self.refresh()
        return True

    def claim(self) -> None:
        """Say to others that one looks at this item; once in a while is enough."""
        item, now = self.item, self._screen.desk.clock()
        if item is None or now - self._claimed.get(item.id, float("-inf")) < CLAIM_AGAIN_S:
            return
        self._claimed[item.id] = now
        self._screen.desk.spawn(self._screen.desk.claim(item))

    def reread(self) -> None:
        """Read the item again when that was long ago; logs do not tell who looks at it."""
        now = self._screen.desk.clock()
        if self.row is not None and self.item is not None and now - self._read_at > REREAD_S:
            self._read(self.row)

    def _read(self, wanted: InboxRow) -> None:
        self._read_at = self._screen.desk.clock()
        self._screen.desk.spawn(self._read_now(wanted))

    async def _read_now(self, wanted: InboxRow) -> None:
        desk, problem = self._screen.desk, ""
        schema: Mapping[str, JsonValue] | None = None
        try:
            item = await desk.read_item(wanted.conversation, wanted.id)
            if item is not None and item.tool:
                schema = await desk.look.schema(item)
        except CapuchinError as error:
            item, problem = None, str(error)
        if self.row is None or self.row.id != wanted.id or not self._screen.is_ready:
            return
        if item is None and not problem and self.item is None:
            problem = "its conversation has no such item any more"
        self.item, self.problem = item or self.item, problem
        self.schema = schema or self.schema
        self.lay_out()
        self._screen.draw_facts()

    def refresh(self) -> None:
        """Follow what the log says of the item on show."""
        if self.row is None:
            if self.question is not None:
                self._lay_out_question(self.question)
            return
        talk = self._screen.desk.talk(self.row.conversation)
        newest = talk.items.get(self.row.id)
        if newest is not None and talk.is_current and newest != self.item:
            self.item, self.problem = newest, ""
        self.lay_out()

    def lay_out(self) -> None:
        """Hand the item to the pane, which watches what of it was painted."""
        item, shown_row, detail = self.item, self.row, self._screen.detail
        if item is None or shown_row is None:
            detail.show(None, None)
            return
        talk = self._screen.desk.talk(item.conversation)
        view, schema, edited = self._view, self.schema, self.edited

        def draw(width: int) -> list[Row]:
            return item_rows(
                item,
                width,
                agent=talk.agent or shown_row.agent,
                version=talk.version,
                view=view,
                schema=schema,
                edited=edited,
            )

        def context(width: int) -> list[Row]:
            return talk_rows(talk.entries, width)

        is_open = item.id in talk.items and item.id not in talk.decided
        detail.answer_keys = frozenset(a.key for a in self.answers(item))
        # Why the hash: another edit is something else to answer, even of the same revision.
        mark = f"{item.digest}:{sha256(edited.encode()).hexdigest()}" if edited else item.digest
        detail.show((item.id, mark, item.revision) if is_open else None, draw, context)

    def _lay_out_question(self, question: Question) -> None:
        is_open = question in self._screen.capuchin.board.questions()
        self._screen.detail.answer_keys = frozenset(o.key for o in question.options)
        key = (question.id, "", 0) if is_open else None
        self._screen.detail.show(key, lambda width: question_rows(question, width))

    def next_view(self) -> View:
        """Show the arguments in another way, and return which."""
        at = VIEWS.index(self._view) + 1
        views = [v for v in VIEWS if v != "form" or self.schema is not None]
        self._view = next((v for v in VIEWS[at:] if v in views), VIEWS[0])
        self.lay_out()
        return self._view

    def facts(self) -> Row:
        """The line above the detail: how it stands, how long it waits, what happens then."""
        if self.question is not None:
            return row("question of capuchin itself", "strong")
        if self.row is None:
            return row("nothing is open", "muted")
        user = self._screen.capuchin.user
        decided = self._screen.desk.talk(self.row.conversation).decided.get(self.row.id)
        if decided is not None:
            return row(*told(decided, user))
        if self.problem:
            return row(f"✖ cannot be read, so not answered: {one_line(self.problem, 200)}", "bad")
        if self.item is None:
            return row("reading it from its conversation…", "muted")
        now = self._screen.now()
        left = deadline(self.item.due, self.item.then, now)
        wait = since(self.item.requested_at, now)
        kind = one_line(self.item.kind, 20)
        head = f"{kind} · " if not self._screen.is_narrow else ""
        claim = claim_text(self.item, user, now)
        if claim and has_ended(self.item.claimed_process):
            claim = ""
        other = (Piece(f"{claim} · ", "accent"),) if claim else ()
        return (*other, Piece(f"{head}waits {wait} · ", "strong"), Piece(left, "warn"))
