"""What is wrong with a file, as data; `compiler.render` turns it into text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How much a diagnostic matters: an error stops the agent, the others do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Span(NamedTuple):
    """A range in a file; lines and columns count from 1, in code points, the end excluded."""

    # Why no dataclass: a file has two for each value, and a tuple takes a quarter of the time.

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """A second place that explains the first, with a few words of its own."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A range of a file, and what to write in its place."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: its stable id names the problem, `help` is something to type."""

    id: str
    severity: Severity
    message: str
    span: Span
    help: str | None = None
    annotations: tuple[Annotation, ...] = ()
    fix: Edit | None = None
    """What repairs it for certain; None when a person has to decide."""


def in_file_order(diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort by path, position and id, which is the order every renderer prints."""
    return tuple(sorted(diagnostics, key=lambda d: (d.span, d.id, d.message)))
