"""Times and spans as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(iso: str) -> datetime | None:
    """A time of the log, or None when it is none."""
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def clock_time(iso: str) -> str:
    """`13:02` by the reader's own clock; empty for what is no time."""
    at = parse(iso)
    return at.astimezone().strftime("%H:%M") if at else ""


def span(seconds_: float) -> str:
    """`0:21`, `59:59`, `3h 05m`, `2d 4h`: never negative."""
    left = max(int(seconds_), 0)
    if left < 3600:
        return f"{left // 60}:{left % 60:02}"
    if left < 86400:
        return f"{left // 3600}h {left % 3600 // 60:02}m"
    return f"{left // 86400}d {left % 86400 // 3600}h"


def since(iso: str, now: datetime) -> str:
    """How long ago, as a span; empty for what is no time."""
    at = parse(iso)
    return span((now - at).total_seconds()) if at else ""


def until(iso: str, now: datetime) -> float | None:
    """Seconds until then, negative when it is past; None for what is no time."""
    at = parse(iso)
    return (at - now).total_seconds() if at else None


def seconds(value: float) -> str:
    """A duration of a call: `0.3 s`, `12 s`, `2:05`."""
    if value < 10:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 60 else span(value)
