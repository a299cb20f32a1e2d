"""How a running `up` talks with whoever started it: log lines here, the TUI elsewhere."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from capuchin_yaml.cli.decide import typed_word
from capuchin_yaml.cli.line_input import Lines
from capuchin_yaml.cli.output import Ink, Output

logger = logging.getLogger("capuchin_yaml.up")


class Face(Protocol):
    """What `up` says and asks."""

    def stage(self, text: str) -> None:
        """Say what is being done now, at start and stop."""

    def news(self, text: str) -> None:
        """Say what happened."""

    def warn(self, text: str) -> None:
        """Say what a person should know, or do something about."""

    async def agrees(self, title: str, body: str) -> bool | None:
        """Ask a person for a yes; None when there is nobody to ask."""


class LogFace:
    """Lines on stderr; asks there too when a person is at the terminal."""

    def __init__(self, out: Output, *, asks: bool) -> None:
        self._out = out
        self._asks = asks
        self._asking = asyncio.Lock()
        self._lines: Lines | None = None

    def stage(self, text: str) -> None:
        """One dim line."""
        logger.info("%s", text)
        self._out.tell(Ink(text, "dim"))

    def news(self, text: str) -> None:
        """One line."""
        logger.info("%s", text)
        self._out.tell(text)

    def warn(self, text: str) -> None:
        """One marked line."""
        logger.warning("%s", text)
        self._out.warn(text)

    async def agrees(self, title: str, body: str) -> bool | None:
        """Wait for the word yes; a new line without it is a no."""
        if not self._asks:
            return None
        async with self._asking:
            self._out.warn(title)
            self._out.tell(body)
            # Why one reader: a question that was taken back leaves its reader waiting, which
            # would swallow the answer to the next.
            self._lines = self._lines or Lines()
            return await typed_word(self._out, "type yes to use it: ", self._lines) == "yes"
