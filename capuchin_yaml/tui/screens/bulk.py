"""Several items at once: deny what was marked, approve calls that are the very same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.events import Choice
from capuchin_yaml.items import Item
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.gateway import InboxRow
from capuchin_yaml.tui.model.bench import identical
from capuchin_yaml.tui.screens.boxes import TextBox

if TYPE_CHECKING:
    from capuchin_yaml.tui.screens.inbox import InboxScreen


class Bulk:
    """Each item is read again from its conversation and decided by its own digest."""

    def __init__(self, screen: InboxScreen) -> None:
        self._screen = screen

    def deny_marked(self) -> None:
        """Ask for the reason, and then deny what is marked and is an approval."""
        screen = self._screen
        app = screen.capuchin
        rows = [
            r
            for r in screen.desk.fleet.waiting()
            if r.id in app.bench.marks and r.kind == "approval"
        ]
        if not rows:
            app.say("m marks approvals; D then denies the marked ones")
            return
        refusal = app.guard.bulk_refusal() or screen.desk.fleet.hold
        if refusal:
            app.say(f"not taken: {refusal}", "warn")
            return
        names = ", ".join(one_line(r.tool or r.title, 40) for r in rows[:4])
        more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
        box = TextBox(
            f"deny {len(rows)} calls", f"{names}{more}; a reason helps", may_be_empty=True
        )

        def written(reason: str | None) -> None:
            if reason is not None:
                app.bench.marks.clear()
                screen.desk.spawn(self._decide(rows, "deny", reason))

        screen.app.push_screen(box, written)

    async def approve_identical(self, item: Item) -> None:
        """Approve every waiting call that has the digest of one that was read."""
        rows = identical(item.digest, self._screen.desk.fleet.waiting())
        await self._decide(rows, "approve", "", item.digest)

    async def _decide(
        self, rows: list[InboxRow], choice: Choice, reason: str, digest: str = ""
    ) -> None:
        desk, app = self._screen.desk, self._screen.capuchin
        done, problems = 0, []
        for row in rows:
            try:
                item = await desk.read_item(row.conversation, row.id)
                if item is None:
                    problems.append("it waits no more")
                elif item.revision != row.revision or (digest and item.digest != digest):
                    problems.append("it changed meanwhile")
                else:
                    decided = await desk.decide(item, choice, reason)
                    done += decided.accepted
                    if not decided.accepted:
                        problems.append("it was decided elsewhere")
            except CapuchinError as error:
                problems.append(one_line(str(error), 120))
        word = "denied" if choice == "deny" else "approved"
        told = f"{done} of {len(rows)} calls {word}"
        app.say(f"{told}: {problems[0]}" if problems else told, "warn" if problems else "ok")
