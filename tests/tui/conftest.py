"""What every test of the TUI needs: a fake world, a quiet environment, and text of the screen."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from capuchin_yaml.tui.app import CapuchinApp
from capuchin_yaml.tui.gateway import Gateway
from capuchin_yaml.tui.notices import NoticeBoard
from tests.tui.fake_gateway import FakeGateway


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours, terminal and zone of whoever runs the tests do not matter."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "SSH_CONNECTION", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()


@pytest.fixture
def fake() -> FakeGateway:
    """A world without conversations."""
    return FakeGateway()


def text_of(app: CapuchinApp) -> str:
    """The screen as text."""
    strips = app.screen._compositor.render_strips(app.size)
    return "\n".join(strip.text.rstrip() for strip in strips)


@asynccontextmanager
async def running(
    fake: FakeGateway,
    *,
    start: str | None = None,
    agent: str | None = None,
    size: tuple[int, int] = (120, 40),
    board: NoticeBoard | None = None,
    connect: Callable[[], Awaitable[Gateway]] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[CapuchinApp, Pilot[int]]]:
    """The app on a fake world, connected and painted."""

    async def at_once() -> Gateway:
        return fake

    app = CapuchinApp(
        connect or at_once, start=start, agent=agent, board=board, poll_s=0.05, **options
    )
    async with app.run_test(size=size) as pilot:
        if connect is None:
            await until(pilot, lambda: app.desk.fleet.link.state != "starting")
            if start is not None:
                await until(pilot, lambda: app.chat.talk is not None)
            await pilot.pause()
        yield app, pilot


async def until(pilot: Pilot[int], is_true: Callable[[], object], limit_s: float = 10.0) -> None:
    """Let the app work until something is true."""
    end = time.monotonic() + limit_s
    while not is_true():
        if time.monotonic() > end:
            app = pilot.app
            assert isinstance(app, CapuchinApp)
            raise AssertionError(f"it did not become true; the screen is:\n{text_of(app)}")
        await pilot.pause(0.02)
