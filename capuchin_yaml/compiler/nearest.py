"""Did you mean: the known word that a written one is closest to, or certainly stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

# Why: below this a suggestion is more often wrong than right ("tools" for "models" is 0.55).
_CLOSE_ENOUGH = 0.72
_MOST_LETTERS_OFF = 3


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
        matcher = SequenceMatcher(None, folded, other, autojunk=False)
        # Why first: these are bounds of the ratio, and much cheaper to find than it is.
        least = _CLOSE_ENOUGH if best is None else best[0]
        if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
            continue
        ratio = matcher.ratio()
        if ratio >= _CLOSE_ENOUGH and (best is None or ratio > best[0]):
            best = (ratio, candidate)
    return best[1] if best is not None else None


def certain(word: str, known: Iterable[str]) -> str | None:
    """The only known word that `word` can be a slip of the keyboard for, or None.

    Much narrower than `nearest`: what comes out is written into files. Each part of a name may
    be off by one letter, a long one by two, and a short one not at all, because `get` and `set`
    are no slips of each other.
    """
    candidates = sorted(set(known))
    same = [candidate for candidate in candidates if _fold(candidate) == _fold(word)]
    slips = same or [candidate for candidate in candidates if _is_slip(word, candidate)]
    return slips[0] if len(slips) == 1 else None


def _is_slip(word: str, other: str) -> bool:
    if abs(len(word) - len(other)) > _MOST_LETTERS_OFF:
        return False
    written, meant = (re.split(r"[\W_]+", text[:200].casefold()) for text in (word, other))
    # A digit is never a slip: `v1` and `v2` are two things.
    return len(written) == len(meant) and all(
        a == b or ((a + b).isalpha() and _distance(a, b) <= _most_slips(min(len(a), len(b))))
        for a, b in zip(written, meant, strict=True)
    )


def _most_slips(length: int) -> int:
    return 0 if length < 4 else 1 if length < 8 else 2


def _distance(a: str, b: str) -> int:
    """Letters left out, added, changed, or swapped with their neighbour."""
    rows = [list(range(len(b) + 1))]
    for i, mine in enumerate(a, start=1):
        row = [i]
        for j, theirs in enumerate(b, start=1):
            least = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (mine != theirs))
            if i > 1 and j > 1 and mine == b[j - 2] and a[i - 2] == theirs:
                least = min(least, rows[-2][j - 2] + 1)
            row.append(least)
        rows = [rows[-1], row]
    return rows[-1][-1]


def _fold(word: str) -> str:
    return word[:200].casefold().replace("-", "").replace("_", "").replace(" ", "")
