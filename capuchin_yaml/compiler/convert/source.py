"""A file of another format while it is converted; no key of it is dropped without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capuchin_yaml.compiler.document import Document, Node, Path, plain_value
from capuchin_yaml.compiler.wording import place_name

NOTHING_LIKE_IT = "agent.yaml has nothing like it"


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """One key that the new file does not carry."""

    line: int
    key: str
    """Where it stands in the old file, such as `agents.root.toolsets[0]`."""
    why: str


@dataclass(frozen=True, slots=True, order=True)
class FillIn:
    """Something that only the author can write into the new file."""

    line: int
    """What it is about in the old file; 1 where the old file says nothing."""
    key: str
    """Where it belongs in the new file."""
    what: str


class Source:
    """The old file: what is taken from it, what is lost, and what the author must write."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._done: set[Path] = set()
        self._losses: set[Loss] = set()
        self._fill_ins: set[FillIn] = set()

    def node(self, *path: str | int) -> Node | None:
        """The value at `path`; not taken yet."""
        node = self.document.node(path)
        return None if node is None or node.broken else node

    def keys(self, *path: str | int) -> tuple[str, ...]:
        """The keys of the map at `path`."""
        node = self.node(*path)
        return tuple(node.entries) if node is not None else ()

    def count(self, *path: str | int) -> int:
        """How many items the list at `path` has."""
        node = self.node(*path)
        return len(node.items) if node is not None else 0

    def line(self, *path: str | int) -> int:
        """The line of the key or item at `path`."""
        return self.document.key_span(path).line

    def take(self, *path: str | int) -> None:
        """Say that everything at `path` is in the new file."""
        self._done.add(path)

    def text(self, *path: str | int) -> str | None:
        """Take the text at `path`; None when there is none, or it is no scalar."""
        node = self.node(*path)
        if node is None or node.kind != "scalar" or node.value is None:
            return None
        self.take(*path)
        return node.text

    def number(self, *path: str | int) -> int | float | None:
        """Take the number at `path`, in quotes or not; None when there is none."""
        node = self.node(*path)
        value = plain_value(node.text) if node is not None and node.kind == "scalar" else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        self.take(*path)
        return value

    def lose(self, path: Path, why: str) -> None:
        """Say that what is at `path` is lost, and why."""
        if self.document.node(path) is not None:
            self._done.add(path)
            self._losses.add(Loss(self.line(*path), place_name(path), why))

    def lose_all(self, path: Path, reasons: Mapping[str, str]) -> None:
        """Lose every key of the map at `path` for which there is a reason."""
        for key in self.keys(*path):
            if key in reasons and (*path, key) not in self._done:
                self.lose((*path, key), reasons[key])

    def fill_in(self, path: Path, key: str, what: str) -> None:
        """Say that the author must write `what` at `key` of the new file, because of `path`."""
        line = self.line(*path) if path else 1
        self._fill_ins.add(FillIn(line, key, what))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Everything that is lost, also what no one has looked at, in the order of the file."""
        rest = {
            Loss(self.line(*path), place_name(path), NOTHING_LIKE_IT) for path in self._left_over()
        }
        return tuple(sorted(self._losses | rest))

    @property
    def fill_ins(self) -> tuple[FillIn, ...]:
        """What the author must write, in the order of the file."""
        return tuple(sorted(self._fill_ins))

    def _left_over(self) -> Iterator[Path]:
        around = {path[:i] for path in self._done for i in range(len(path))}
        if self.document.root is not None and () not in self._done:
            yield from self._left_in(self.document.root, (), around)

    def _left_in(self, node: Node, path: Path, around: set[Path]) -> Iterator[Path]:
        steps: list[tuple[str | int, Node]] = [(k, e.node) for k, e in node.entries.items()]
        steps += enumerate(node.items)
        for step, inner in steps:
            there = (*path, step)
            is_empty = inner.kind != "scalar" and not inner.entries and not inner.items
            if there in self._done or (is_empty and not inner.broken):
                continue
            if there in around:
                yield from self._left_in(inner, there, around)
            else:
                yield there
