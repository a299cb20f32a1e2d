"""What a talk says changed, so that only that is drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Added:
    """Entries were added at the end, from `first` on."""

    first: int


@dataclass(frozen=True, slots=True)
class Prepended:
    """So many older entries were put before the first; all others are new objects."""

    count: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """The entry at `index` is another one now."""

    index: int


@dataclass(frozen=True, slots=True)
class ReplyGrew:
    """The open reply has other text, began or ended."""


@dataclass(frozen=True, slots=True)
class HeadChanged:
    """Status, usage, title, queue or definition are others now."""


@dataclass(frozen=True, slots=True)
class ItemsChanged:
    """An item opened, changed its revision or was decided."""


Change: TypeAlias = Added | Prepended | Replaced | ReplyGrew | HeadChanged | ItemsChanged
