"""Times as people read them: local, short, with their distance from now."""

from __future__ import annotations

from datetime import UTC, datetime


def local_time(iso: str) -> str:
    """`2026-11-30 15:04` in local time; the text itself when it is no time."""
    at = _parse(iso)
    return iso if at is None else f"{at.astimezone():%Y-%m-%d %H:%M}"


def clock_time(iso: str) -> str:
    """`15:04:05` in local time; the text itself when it is no time."""
    at = _parse(iso)
    return iso if at is None else f"{at.astimezone():%H:%M:%S}"


def distance(iso: str, now: datetime | None = None) -> str:
    """`3m ago` or `in 2h`; empty when it is no time."""
    at = _parse(iso)
    if at is None:
        return ""
    seconds = (at - (now or datetime.now(UTC))).total_seconds()
    words = span(abs(seconds))
    return f"in {words}" if seconds > 0 else f"{words} ago"


def span(seconds: float) -> str:
    """A length of time in its largest unit: `45s`, `3m`, `2h`, `5d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _parse(iso: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
