"""Durations on the command line, in the form of agent files: `30s`, `5m`, `1h30m`."""

from __future__ import annotations

import re

import click

_FORM = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        if isinstance(value, int | float):
            return float(value)
        found = _FORM.fullmatch(str(value))
        if not found or not any(found.groups()):
            self.fail(f"{value!r} is not a duration; write 30s, 5m or 1h30m", param, ctx)
        hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds


DURATION = _Duration()
