"""Where a person was: the conversation on show, kept so that the next TUI begins there."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

_PRIVATE = 0o600
_MAX_BYTES = 4096


class Place:
    """The conversation that was on show last; without a file nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.conversation = ""
        """What was on show when the file was written, by this TUI or the one before."""
        if file is not None:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                with file.open("rb") as kept:
                    told = json.loads(kept.read(_MAX_BYTES))
                self.conversation = str(told.get("conversation") or "")

    def keep(self, conversation: str) -> None:
        """Write it at once, for a program that may be killed the moment after."""
        if conversation == self.conversation:
            return
        self.conversation = conversation
        if self._file is None:
            return
        partial = self._file.with_suffix(f".{os.getpid()}.new")
        with contextlib.suppress(OSError):
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
            with os.fdopen(fd, "w", encoding="utf-8") as out:
                out.write(json.dumps({"v": 1, "conversation": conversation}))
            partial.replace(self._file)
