"""The guard: no key that was not meant for what is on the screen answers anything."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from capuchin_yaml.items import Item
from capuchin_yaml.tui.model.answers import ANSWERS, answers, must_type_name
from capuchin_yaml.tui.model.guard import FOCUS_S, HOLD_S, QUIET_S, SETTLE_S, Guard, Shown

ONE = Shown("c:a1", "d1", 1, 10)
STORMS = 3_000


def ready(shown: Shown = ONE, at: float = 0.0) -> Guard:
    guard = Guard()
    guard.show(shown)
    guard.painted(shown, 0, shown.lines, at)
    return guard


def press(guard: Guard, at: float, shown: Shown | None = ONE) -> str | None:
    guard.input(at)
    return guard.refusal(shown, at)


def test_a_key_after_everything_was_read_in_peace_is_let_through() -> None:
    assert press(ready(), 1.0) is None


def test_a_key_read_before_the_last_line_was_painted_is_refused() -> None:
    guard = Guard()
    guard.show(ONE)
    guard.input(5.0)

    guard.painted(ONE, 0, 10, 5.2)

    assert "only just been painted" in (guard.refusal(ONE, 5.0) or "")


def test_lines_never_painted_are_counted_and_refuse() -> None:
    guard = Guard()
    guard.show(ONE)
    guard.painted(ONE, 0, 4, 0.0)
    guard.painted(ONE, 7, 10, 0.0)

    assert press(guard, 1.0) == "scroll to the end first: 3 more lines"


def test_lines_painted_of_another_revision_do_not_count() -> None:
    guard = ready()
    second = replace(ONE, revision=2, digest="d2")
    guard.show(second)

    guard.painted(ONE, 0, 10, 1.0)

    assert guard.unseen == 10
    assert "scroll" in (press(guard, 2.0, second) or "")


def test_a_key_for_the_revision_before_is_refused() -> None:
    guard = ready()
    second = replace(ONE, revision=2, digest="d2")
    guard.show(second)
    guard.painted(second, 0, 10, 1.0)

    assert "changed" in (press(guard, 2.0, ONE) or "")


def test_laid_out_anew_it_must_be_read_anew() -> None:
    guard = ready()

    guard.show(replace(ONE, layout=1))

    assert guard.unseen == 10


def test_a_key_in_a_row_of_keys_is_refused() -> None:
    guard = ready()

    assert press(guard, 1.0) is None
    assert "keys came just before" in (press(guard, 1.2) or "")
    assert "keys came just before" in (press(guard, 1.4) or "")
    assert press(guard, 2.0) is None


def test_a_key_with_newer_ones_behind_it_is_refused() -> None:
    guard = ready()
    guard.input(1.0)
    guard.input(3.0)

    assert guard.refusal(ONE, 1.0) == "other keys came right after it"


def test_without_the_focus_and_just_after_it_keys_are_refused() -> None:
    guard = ready()
    guard.focus(False, 1.0)

    assert "does not have the focus" in (press(guard, 2.0) or "")
    guard.focus(True, 3.0)
    assert "only just got the focus" in (press(guard, 3.1) or "")
    assert press(guard, 4.0) is None


def test_nothing_open_is_never_answered() -> None:
    assert press(Guard(), 1.0, None) is not None
    assert press(Guard(), 1.0) is not None


def test_no_kind_of_item_has_a_default_answer() -> None:
    for kind, choices in ANSWERS.items():
        keys = [a.key for a in choices]
        assert len(set(keys)) == len(keys), kind
        assert not set(keys) & {"enter", "space", "escape", "tab", " ", "\r"}, kind


@pytest.mark.parametrize(
    ("effect", "typed"), [("read", False), ("write", False), ("destructive", True), ("", True)]
)
def test_a_destructive_or_unknown_effect_wants_the_tools_name(effect: str, typed: bool) -> None:
    item = Item("i", "approval", "c", "d", 1, "t", "", None, "wait", tool="a.b", effect=effect)

    asked = {answer.label: must_type_name(item, answer) for answer in answers(item)}

    assert asked == {
        "approve": typed,
        "deny (reason)": False,
        "approve and remember": typed,
    }


@dataclass
class Facts:
    """What happened in a storm, kept apart from the guard so that it can be held to it."""

    shown: Shown | None = None
    painted: dict[int, float] = field(default_factory=dict)
    inputs: list[float] = field(default_factory=list)
    focused_at: float | None = float("-inf")

    def allows(self, shown: Shown | None, at: float) -> bool:
        """Whether the rules, read literally, let a key of `at` answer `shown`."""
        if shown is None or shown != self.shown or len(self.painted) < shown.lines:
            return False
        others = list(self.inputs)
        others.remove(at)
        is_quiet = all(at - t > QUIET_S for t in others)
        is_settled = at - max(self.painted.values(), default=at) > SETTLE_S
        return (
            is_quiet
            and is_settled
            and self.focused_at is not None
            and at - self.focused_at > FOCUS_S
        )


@pytest.mark.parametrize("block", range(6))
def test_in_no_storm_a_key_is_let_through_that_the_rules_forbid(block: int) -> None:
    let_through = 0
    for seed in range(block * STORMS // 6, (block + 1) * STORMS // 6):
        storm = Storm(random.Random(seed))
        storm.blow()
        let_through += storm.passed

    # The storms are no proof if the guard refuses everything.
    assert let_through > 20


class Storm:
    """Arrivals, paints, stalls, keys and focus changes in a random order."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._guard, self._facts = Guard(), Facts()
        self._now, self._number = 0.0, 0
        self._late: list[float] = []
        self.passed = 0

    def blow(self) -> None:
        """Let it all happen, and hold every key that passes to the rules."""
        acts = [self.arrive, self.arrive, self.redraw, self.lay_out, self.type_late, self.type_late]
        acts += [self.paint] * 4 + [self.type] * 3 + [self.focus, self.blur, self.catch_up]
        for _ in range(self._chance.randint(10, 60)):
            self._now += self._chance.choice([0.0, 0.001, 0.02, 0.09, 0.25, 0.31, 0.5, 1.0])
            self._chance.choice(acts)()

    def arrive(self) -> None:
        self._number += 1
        item = f"c:a{self._chance.randint(1, 2)}"
        lines = self._chance.randint(1, 5)
        self._show(Shown(item, f"d{self._number}", self._number, lines))

    def redraw(self) -> None:
        self._guard.show(self._facts.shown)

    def lay_out(self) -> None:
        if self._facts.shown is not None:
            self._number += 1
            self._show(replace(self._facts.shown, layout=self._number))

    def paint(self) -> None:
        shown, painted = self._facts.shown, self._facts.painted
        if shown is None:
            return
        first, last = 0, shown.lines
        if self._chance.random() < 0.5:
            first = self._chance.randrange(shown.lines)
            last = self._chance.randint(first + 1, shown.lines)
        self._facts.painted = {i: self._now for i in range(first, last)} | painted
        self._guard.painted(shown, first, last, self._now)

    def type(self) -> None:
        self._input()
        self._ask(self._now)

    def type_late(self) -> None:
        """Read by the terminal now, handled by a stalled program only later."""
        self._input()
        self._late.append(self._now)

    def catch_up(self) -> None:
        if self._late:
            self._ask(self._late.pop())

    def focus(self) -> None:
        self._guard.focus(True, self._now)
        if self._facts.focused_at is None:
            self._facts.focused_at = self._now

    def blur(self) -> None:
        self._guard.focus(False, self._now)
        self._facts.focused_at = None

    def _show(self, shown: Shown) -> None:
        self._facts.shown, self._facts.painted = shown, {}
        self._guard.show(shown)

    def _input(self) -> None:
        self._guard.input(self._now)
        self._facts.inputs.append(self._now)

    def _ask(self, at: float) -> None:
        refusal = self._guard.refusal(self._facts.shown, at)
        assert refusal or self._facts.allows(self._facts.shown, at)
        self.passed += refusal is None


def test_ten_thousand_storms_of_input_decide_nothing() -> None:
    """Keys, pastes, clicks, focus changes and stalls in a row, around items that arrive."""
    pressed = 0
    for seed in range(10_000):
        chance = random.Random(seed)
        guard, read, now = Guard(), 100.0, 100.0
        shown: Shown | None = None
        held: list[tuple[float, int]] = []
        arrivals = {chance.randrange(1, 24), chance.randrange(1, 24)}
        for n in range(25):
            now = max(now, read)
            if chance.random() < 0.15:
                # The program stalls: what is read meanwhile is handled after the screen changed.
                now += chance.choice([0.05, 0.2, 0.6])
            if n in arrivals:
                shown = Shown("i", f"d{n}", n, chance.randint(1, 30))
                guard.show(shown)
            if shown is not None and chance.random() < 0.7:
                guard.painted(shown, 0, chance.choice([1, shown.lines]), now)
            if chance.random() < 0.1:
                guard.focus(chance.random() < 0.5, read)
            guard.input(read)
            if n and chance.random() < 0.6:
                pressed += 1
                if guard.refusal(shown, read) is None:
                    held.append((now, guard.inputs))
            # The next input comes in a row with this one, however late it is handled.
            read += chance.choice([0.0, 0.001, 0.02, HOLD_S / 2, 0.15, 0.25])
            assert not [1 for _, count in held if count == guard.inputs], f"storm {seed}"
    assert pressed > 100_000
