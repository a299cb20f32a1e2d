"""Did you mean: the known word that a written one is closest to."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

# Why: below this a suggestion is more often wrong than right ("tools" for "models" is 0.55).
_CLOSE_ENOUGH = 0.72


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, or None when none is close.

    Case, `-` and `_` do not count, so `Max-Steps` finds `max_steps`.
    """
    folded = _fold(word)
    best: tuple[float, str] | None = None
    for candidate in sorted(known):
        other = _fold(candidate)
        if folded == other:
            return candidate
        if abs(len(folded) - len(other)) > max(len(folded), len(other)) // 2:
            continue
        ratio = SequenceMatcher(None, folded, other, autojunk=False).ratio()
        if ratio >= _CLOSE_ENOUGH and (best is None or ratio > best[0]):
            best = (ratio, candidate)
    return best[1] if best is not None else None


def _fold(word: str) -> str:
    return word[:200].casefold().replace("-", "").replace("_", "").replace(" ", "")
