"""The composer: where a message is written. Enter sends, ctrl+j breaks the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from capuchin_yaml.tui.model import outbox
from capuchin_yaml.tui.model.pasted import Pasted, clean, is_large
from capuchin_yaml.tui.widgets.draft import Draft


class Composer(Draft):
    """A draft. It is emptied only after its text was handed on as a message."""

    DEFAULT_CSS = """
    Composer {
        height: auto;
        min-height: 1;
        max-height: 8;
        border: none;
        padding: 0 1;
        background: $surface;
        scrollbar-size-vertical: 1;
        &:focus { border: none; background: $boost; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "send", id="composer.send"),
        Binding("ctrl+j,shift+enter,alt+enter", "newline", "new line", id="composer.newline"),
        Binding("alt+up", "take_back", "take back", id="composer.take_back", show=False),
        Binding("ctrl+c,super+c", "interrupt", "copy or cancel", id="composer.copy", show=False),
        Binding("escape", "escape", "cancel turn (twice)", id="composer.escape", show=False),
        Binding(
            "up",
            "back(-1)",
            "line up, at the top the message before",
            id="composer.before",
            show=False,
        ),
        Binding(
            "down",
            "back(1)",
            "line down, at the end the message after",
            id="composer.after",
            show=False,
        ),
        Binding("tab", "complete", "take the suggestion", id="composer.complete", show=False),
        Binding("pageup", "scroll_talk(-1)", "page up", id="composer.page_up", show=False),
        Binding("pagedown", "scroll_talk(1)", "page down", id="composer.page_down", show=False),
        Binding("ctrl+end", "follow", "follow the end", id="composer.follow", show=False),
    ]

    class Refused(Message):
        """The draft cannot go out as it is; it stays."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    class Interrupted(Message):
        """The writer pressed ctrl+c or Esc with nothing to copy."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class TakeBack(Message):
        """The writer wants the newest message that has not gone out."""

    class Suggested(Message):
        """A key for the suggestions: a step of the mark, or 0 to take what is marked."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class LookBack(Message):
        """The writer wants the message sent before (-1) or after (1)."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class ScrollTalk(Message):
        """The writer wants to see other pages of the talk; 0 is its end."""

        def __init__(self, pages: int) -> None:
            super().__init__()
            self.pages = pages

    def __init__(self, pasted: Pasted, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            highlight_cursor_line=False,
            soft_wrap=True,
            placeholder="write a message · Enter sends · ctrl+j breaks the line",
        )
        self.pasted = pasted
        self.accept: Callable[[str], bool] = lambda text: False
        """Takes a message with held pastes in place; False leaves it in the draft."""
        self.cursor_blink = False
        self.suggests = False
        """Whether suggestions are open, which then take the arrows, Tab, Enter and Esc."""

    @property
    def message(self) -> str:
        """The draft with held pastes in place."""
        return self.pasted.expand(self.text)

    def put(self, text: str) -> None:
        """Replace the draft, with a large part held, and go to its end."""
        self.text = self.pasted.hold(text) if is_large(text) else text
        self.move_cursor(self.document.end)

    def action_submit(self) -> None:
        """Hand the draft on, or say why not; blank drafts do nothing."""
        if self.suggests:
            self.post_message(self.Suggested(0))
            return
        text = self.message
        if not text.strip():
            return
        why = outbox.refusal(text)
        if why is not None:
            self.post_message(self.Refused(why))
            return
        if self.accept(text):
            self.text = ""

    def action_back(self, step: int) -> None:
        """Move by a line; at the edge of the text, ask for another message."""
        row = self.cursor_location[0]
        edge = 0 if step < 0 else self.document.line_count - 1
        if self.suggests:
            self.post_message(self.Suggested(step))
        elif row == edge and self.wrapped_document.height <= self.document.line_count:
            self.post_message(self.LookBack(step))
        elif step < 0:
            self.action_cursor_up()
        else:
            self.action_cursor_down()

    def action_complete(self) -> None:
        """Take the marked suggestion; without suggestions, go to the next pane."""
        if self.suggests:
            self.post_message(self.Suggested(0))
        else:
            self.screen.focus_next()

    def action_newline(self) -> None:
        """Break the line."""
        self.insert("\n")

    def action_take_back(self) -> None:
        """Ask for the newest message that has not gone out."""
        self.post_message(self.TakeBack())

    def action_interrupt(self) -> None:
        """Copy what is selected; without a selection, ask to interrupt."""
        if self.selected_text:
            self.action_copy()
        else:
            self.post_message(self.Interrupted("ctrl+c"))

    def action_escape(self) -> None:
        """Ask to interrupt."""
        self.post_message(self.Interrupted("esc"))

    def action_scroll_talk(self, pages: int) -> None:
        """Show another page of the talk."""
        self.post_message(self.ScrollTalk(pages))

    def action_follow(self) -> None:
        """Show the end of the talk."""
        self.post_message(self.ScrollTalk(0))

    async def _on_paste(self, event: events.Paste) -> None:
        # Why: the editor wraps anew at every key, which takes half a second for 500 KB.
        event.prevent_default()
        event.stop()
        text, _ = clean(event.text)
        self.insert(self.pasted.hold(text) if is_large(text) else text)
        self.scroll_cursor_visible()
