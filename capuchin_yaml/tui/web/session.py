"""One visit: a TUI of its own in a process of its own, tied to one websocket."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from textual_serve.app_service import AppService

STOP_S = 5.0
_MAX_CELLS = 500
_DRIVER = "capuchin_yaml.tui.web.driver:LinkedDriver"


class Session(AppService):
    """Runs `command` without a shell; `environ` is laid over the server's environment."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], **options: Any) -> None:
        super().__init__(" ".join(command), **options)
        self._words = tuple(command)
        self._over = dict(environ)

    @property
    def pid(self) -> int | None:
        """The process, once it was started."""
        return self._process.pid if self._process is not None else None

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environ = super()._build_environment(_cells(width), _cells(height))
        # Why without the editor: it would run on this machine, with nobody in front of it.
        kept = {k: v for k, v in environ.items() if k not in ("VISUAL", "EDITOR", "TMUX")}
        return {**kept, **self._over, "TEXTUAL_DRIVER": _DRIVER}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            # Why: Ctrl-C in the server's terminal is for the server, which ends its visits itself.
            start_new_session=True,
        )
        assert process.stdin is not None
        self._stdin = process.stdin
        return process

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Tell the app of another window size, within reason."""
        await super().set_terminal_size(_cells(width), _cells(height))

    async def stop(self) -> None:
        """Ask the app to end, and end it when it does not."""
        with suppress(TimeoutError):
            await asyncio.wait_for(super().stop(), STOP_S)
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), STOP_S)
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _cells(count: int) -> int:
    return min(max(int(count), 1), _MAX_CELLS)
