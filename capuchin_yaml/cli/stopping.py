"""The signals that ask this program to stop."""

from __future__ import annotations

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that mean stop, without one that the caller (such as nohup) has switched off."""
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return tuple(n for n in wanted if n == signal.SIGINT or signal.getsignal(n) != signal.SIG_IGN)
