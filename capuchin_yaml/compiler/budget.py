"""How much work one prompt may make: every loop and every text it touches is paid for."""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, ValuesView

from jinja2.exceptions import TemplateRuntimeError
from jinja2.runtime import Undefined

WORK = 1_000_000
"""Characters, list entries and loop steps that one rendering may touch."""
MAX_PROMPT_CHARS = 200_000
"""Characters of a rendered prompt."""
MAX_STEPS = 10_000
"""Entries of one `range`."""
_MAX_INTEGER_BITS = 1024


class TooMuchWork(TemplateRuntimeError):
    """The template would make a prompt that is too large, or work for too long."""


class Budget:
    """The work left to one rendering."""

    def __init__(self, work: int = WORK) -> None:
        self._left = work

    def spend(self, amount: int) -> None:
        """Pay for `amount` units.

        Raises:
            TooMuchWork: nothing is left.
        """
        self._left -= amount
        if self._left < 0:
            raise TooMuchWork("the prompt needs too much work: its loops or texts are too large")

    def touch(self, *values: object) -> None:
        """Pay for every character and entry of `values`, however they are nested.

        Raises:
            TooMuchWork: nothing is left, or a number is too large.
            TemplateRuntimeError: a value is neither text, number, list nor map.
            UndefinedError: a list or map holds an undefined value.
        """
        waiting: list[object] = []
        for value in values:
            if not isinstance(value, Undefined):
                self._touch_one(value, waiting)
        while waiting:
            self._touch_one(waiting.pop(), waiting)

    def _touch_one(self, value: object, waiting: list[object]) -> None:
        match value:
            case str():
                self.spend(len(value) + 1)
            case int():
                if value.bit_length() > _MAX_INTEGER_BITS:
                    raise TooMuchWork("the prompt computes a number that is too large")
                self.spend(1)
            case float() | None:
                self.spend(1)
            case list() | tuple() | KeysView() | ValuesView() | ItemsView():
                self.spend(len(value) + 1)
                waiting.extend(value)
            case dict():
                self.spend(len(value) + 1)
                waiting.extend(value)
                waiting.extend(value.values())
            case range():
                self.spend(len(value))
            case Undefined():
                str(value)  # raises what a strict undefined name raises
            case _:
                raise TemplateRuntimeError(
                    f"a {type(value).__name__} is neither text, number, list nor map"
                )
