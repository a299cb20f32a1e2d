"""Drafts of all conversations; with a file they outlive the program."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from capuchin_yaml.tui.model.pasted import Pasted

_KEPT = 200
_PRIVATE = 0o600


class Drafts:
    """One draft for each conversation; `""` is the one written before any was open."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._drafts: dict[str, str] = {}
        self._is_dirty = False
        self.pasted = Pasted()
        """Large pastes that drafts only name; in the file they are in their place."""
        if file is not None:
            with contextlib.suppress(OSError, ValueError):
                kept = json.loads(file.read_text("utf-8"))
                if isinstance(kept, dict):
                    self._drafts = {str(k): str(v) for k, v in kept.items()}

    def get(self, conversation: str) -> str:
        """The draft, empty if there is none."""
        return self._drafts.get(conversation, "")

    def put(self, conversation: str, text: str) -> None:
        """Keep a draft; an empty one is forgotten."""
        if self.get(conversation) == text:
            return
        self._drafts.pop(conversation, None)
        if text:
            self._drafts[conversation] = text
        self._is_dirty = True

    def save(self) -> None:
        """Write the file if something changed; a disk that refuses is no reason to stop."""
        if self._file is None or not self._is_dirty:
            return
        self._is_dirty = False
        newest = list(self._drafts.items())[-_KEPT:]
        text = json.dumps({k: self.pasted.expand(v) for k, v in newest}, ensure_ascii=False)
        partial = self._file.with_suffix(".new")
        with contextlib.suppress(OSError, ValueError):
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
            with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass") as out:
                out.write(text)
            partial.replace(self._file)
