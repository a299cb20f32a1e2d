"""Figures: a value, its unit, the goal it must keep, and how they are printed."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    """The goal; None for a value that only explains the others."""
    note: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether there is a goal and the value is over it."""
        return self.at_most is not None and self.value > self.at_most


def ratio(name: str, ours: float, other: float, at_most: float | None = None) -> Figure:
    """Ours against the other, both of this run."""
    return Figure(name, ours / other, "x", at_most)


def spread(name: str, samples_s: Sequence[float]) -> list[Figure]:
    """Median and 90th percentile of times, in ms."""
    tenths = statistics.quantiles(samples_s, n=10)
    return [
        Figure(f"{name}, median", statistics.median(samples_s) * 1000, "ms"),
        Figure(f"{name}, 90th percentile", tenths[-1] * 1000, "ms"),
    ]


def lines(figures: Iterable[Figure]) -> list[str]:
    """A line each, goals and misses marked."""
    return [_line(figure) for figure in figures]


def as_json(groups: Mapping[str, Sequence[Figure]]) -> dict[str, list[dict[str, object]]]:
    """The same for programs."""
    return {
        group: [dataclasses.asdict(f) | {"is_missed": f.is_missed} for f in figures]
        for group, figures in groups.items()
    }


def _line(figure: Figure) -> str:
    text = f"  {figure.name:<58} {_number(figure):>12} {figure.unit:<8}"
    if figure.at_most is not None:
        verdict = "MISSED" if figure.is_missed else "kept"
        text += f" at most {figure.at_most:g}: {verdict}"
    return text + (f" ({figure.note})" if figure.note else "")


def _number(figure: Figure) -> str:
    match figure.unit:
        case "x":
            return f"{figure.value:.3f}"
        case "bytes":
            return f"{figure.value:,.0f}"
        case "" if figure.value == int(figure.value):
            return f"{figure.value:,.0f}"
        case _:
            return f"{figure.value:,.1f}"
