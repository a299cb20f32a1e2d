"""The guard: whether a key may answer an item, and if not, why. Pure; times in seconds.

An answer is let through only when the whole content of this very revision was painted, line
by line; 0.3 s have passed since then and since the last key; the terminal has had the focus
for 0.3 s; and no other input follows the key within the hold. So a key that was on its way
when something appeared, a paste, a held key or the click that brings a window back can never
decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SETTLE_S = 0.3
"""Between the last line painted and a key that may answer, by the time the key was read."""
QUIET_S = 0.3
"""Without any input before a key that may answer."""
FOCUS_S = 0.3
"""With the terminal's focus before a key that may answer."""
HOLD_S = 0.08
"""A key waits this long for others: in a paste without brackets they come at once."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is on the screen to be answered: one revision of one item, laid out once."""

    item: str
    digest: str
    revision: int
    lines: int
    layout: int = 0
    """Another number whenever the lines were laid out anew, such as at another width."""


@dataclass(slots=True)
class Guard:
    """Watches painting, input and focus, and answers `refusal`."""

    shown: Shown | None = None
    _unseen: set[int] = field(default_factory=set)
    _seen_at: float | None = None
    _last_input: float = float("-inf")
    _input_before: float = float("-inf")
    _focused_at: float | None = float("-inf")
    _inputs: int = 0

    def show(self, shown: Shown | None) -> None:
        """Something else is to be answered, or nothing; what was seen before counts no more."""
        if shown == self.shown:
            return
        self.shown = shown
        self._unseen = set(range(shown.lines)) if shown else set()
        self._seen_at = None

    def painted(self, shown: Shown, first: int, last: int, at: float) -> None:
        """Lines `first` up to `last` (excluded) of `shown` are on the terminal since `at`."""
        if shown != self.shown or (self._seen_at is not None and not self._unseen):
            return
        self._unseen.difference_update(range(first, last))
        if not self._unseen:
            self._seen_at = at

    def input(self, at: float) -> None:
        """A key, a paste or a mouse button came, read from the terminal at `at`."""
        self._input_before = self._last_input
        self._last_input = max(at, self._last_input)
        self._inputs += 1

    def focus(self, has_focus: bool, at: float) -> None:
        """The terminal window got or lost the focus."""
        if not has_focus:
            self._focused_at = None
        elif self._focused_at is None:
            self._focused_at = at

    @property
    def inputs(self) -> int:
        """A count of inputs; it stays the same while a key is held back alone."""
        return self._inputs

    @property
    def unseen(self) -> int:
        """Lines that were not painted yet."""
        return len(self._unseen)

    def refusal(self, shown: Shown | None, at: float) -> str | None:
        """Why a key read at `at` may not answer `shown`; None when it may.

        Call it after `input` was told of that key.
        """
        if shown is None or self.shown is None:
            return "nothing is open to be answered"
        if shown != self.shown:
            return "it changed while the key came: read it again"
        if self._seen_at is None:
            return f"scroll to the end first: {self.unseen} more lines"
        if self._focused_at is None:
            return "the terminal does not have the focus"
        if at - self._seen_at <= SETTLE_S:
            return "it has only just been painted: wait a moment"
        if at - self._focused_at <= FOCUS_S:
            return "the terminal has only just got the focus: wait a moment"
        if at < self._last_input:
            return "other keys came right after it"
        if at - self._input_before <= QUIET_S:
            return "keys came just before: wait a moment"
        return None

    def bulk_refusal(self) -> str | None:
        """Why the newest input may not begin something for many items; None when it may."""
        if self._focused_at is None:
            return "the terminal does not have the focus"
        if self._last_input - self._focused_at <= FOCUS_S:
            return "the terminal has only just got the focus: wait a moment"
        if self._last_input - self._input_before <= QUIET_S:
            return "keys came just before: wait a moment"
        return None

    def armed(self, now: float) -> bool:
        """Whether a key that came now would be let through; for showing, never for deciding."""
        return (
            self.shown is not None
            and self._seen_at is not None
            and self._focused_at is not None
            and now - self._seen_at > SETTLE_S
            and now - self._focused_at > FOCUS_S
            and now - self._last_input > QUIET_S
        )
