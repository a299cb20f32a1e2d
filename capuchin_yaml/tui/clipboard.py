"""Copying through the terminal (OSC 52), wrapped for tmux, with an honest word about it."""

from __future__ import annotations

import base64
from collections.abc import Mapping

MAX_BYTES = 74_000
"""Terminals drop longer ones without a word; this many bytes are under 100 KB in base64."""


def sequences(text: str, environ: Mapping[str, str]) -> list[str]:
    """What to write to the terminal so that it may take `text` to its clipboard."""
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    plain = f"\x1b]52;c;{encoded}\x07"
    if not environ.get("TMUX"):
        return [plain]
    # Why: tmux takes the plain form with `set-clipboard on` and passes the wrapped form on
    # with `allow-passthrough on`; which of them is set cannot be asked.
    return [plain, f"\x1bPtmux;{plain.replace(chr(27), chr(27) * 2)}\x1b\\"]


def word(text: str, environ: Mapping[str, str]) -> tuple[str, bool]:
    """What to tell the reader, and whether anything was sent."""
    size = len(text.encode("utf-8", "replace"))
    if not text:
        return "nothing to copy", False
    if size > MAX_BYTES:
        limit = MAX_BYTES // 1000
        return f"not copied: {size // 1000:,} KB, terminals take about {limit} KB", False
    told = f"{len(text):,} characters sent to the terminal's clipboard"
    if environ.get("TMUX"):
        told += " (tmux needs `set -g set-clipboard on`)"
    return told, True
