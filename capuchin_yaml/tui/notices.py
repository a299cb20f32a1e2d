"""What the program around the TUI has to say or to ask, from any thread; it takes no focus."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from capuchin_yaml.tui.model.entries import Tone


@dataclass(frozen=True, slots=True)
class Notice:
    """A line that is shown for a while and kept in the notice list."""

    text: str
    tone: Tone = "info"


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to a question, given by a key of its own."""

    key: str
    """A single letter; none of them is a default."""
    choice: str
    label: str


@dataclass(frozen=True, slots=True)
class Question:
    """Something the program asks its user; it waits in the inbox like any other item."""

    id: str
    title: str
    body: str
    options: tuple[Option, ...]


Listener: TypeAlias = Callable[[], object]


class NoticeBoard:
    """A board that the program writes on and the TUI reads from. All methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: list[Notice] = []
        self._open: dict[str, tuple[Question, Future[str]]] = {}
        self._numbers = itertools.count(1)
        self._listener: Listener | None = None

    def push(self, text: str, tone: Tone = "info") -> None:
        """Show a line."""
        with self._lock:
            self._new.append(Notice(text, tone))
        self._wake()

    def ask(self, title: str, body: str, options: tuple[Option, ...]) -> Future[str]:
        """Ask, and return a future of the choice; cancelling it takes the question back."""
        answer: Future[str] = Future()
        with self._lock:
            question = Question(f"q{next(self._numbers)}", title, body, options)
            self._open[question.id] = (question, answer)
        answer.add_done_callback(lambda _: self._drop(question.id))
        self._wake()
        return answer

    def take(self) -> list[Notice]:
        """The notices that were not taken yet."""
        with self._lock:
            new, self._new = self._new, []
        return new

    def questions(self) -> tuple[Question, ...]:
        """What waits for an answer, oldest first."""
        with self._lock:
            return tuple(question for question, _ in self._open.values())

    def answer(self, question_id: str, choice: str) -> bool:
        """Give the answer; False when it was answered or taken back before."""
        with self._lock:
            found = self._open.pop(question_id, None)
        if found is None or not found[1].set_running_or_notify_cancel():
            return False
        found[1].set_result(choice)
        self._wake()
        return True

    def listen(self, listener: Listener | None) -> None:
        """Have `listener` called, from any thread, when something is new."""
        self._listener = listener
        if listener is not None:
            listener()

    def _drop(self, question_id: str) -> None:
        with self._lock:
            self._open.pop(question_id, None)
        self._wake()

    def _wake(self) -> None:
        listener = self._listener
        if listener is not None:
            listener()
