"""Messages that were sent before, newest last; with a file they outlive the program."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

KEPT = 1000
_MAX_CHARS = 20_000
_PRIVATE = 0o600


class History:
    """What this person sent; looking back keeps the draft that was being written."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.texts: list[str] = []
        self._at: int | None = None
        self._draft = ""
        if file is not None:
            with contextlib.suppress(OSError, ValueError):
                for line in file.read_text("utf-8").splitlines()[-KEPT:]:
                    text = json.loads(line)
                    if isinstance(text, str):
                        self.texts.append(text)

    def add(self, text: str) -> None:
        """Remember a message; one that repeats the last, or is very long, is not kept."""
        self._at = None
        if len(text) > _MAX_CHARS or (self.texts and self.texts[-1] == text):
            return
        self.texts = [*self.texts[-KEPT + 1 :], text]
        if self._file is None:
            return
        with contextlib.suppress(OSError, ValueError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            fd = os.open(self._file, flags, _PRIVATE)
            with os.fdopen(fd, "a", encoding="utf-8", errors="surrogatepass") as out:
                out.write(json.dumps(text) + "\n")

    def step(self, by: int, draft: str) -> str | None:
        """The message before (-1) or after (1) the one on show; None when there is none.

        `draft` is what stands in the composer now; stepping past the newest brings it back.
        """
        if self._at is None:
            if by > 0 or not self.texts:
                return None
            self._draft, self._at = draft, len(self.texts)
        at = self._at + by
        if at < 0:
            return None
        if at >= len(self.texts):
            self._at = None
            return self._draft
        self._at = at
        return self.texts[at]

    @property
    def is_looking_back(self) -> bool:
        """Whether an older message is on show."""
        return self._at is not None

    def stop(self) -> None:
        """What is in the composer is a draft again."""
        self._at = None
