"""What every state looks like at three sizes; `python -m tests.tui.test_states` draws them."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path

import pytest

from capuchin_yaml.tui import screens
from tests.tui.scenes import SCENES, SIZES, dump
from tests.tui.screen_page import PAGE, PICTURES, SHOWN, page_text, picture

SCREENS = Path(__file__).with_name("screens")
PICTURED = {
    "agents": ("agents-with-a-fault",),
    "boxes": ("deny-reason", "help", "leaving-while-a-turn-runs"),
    "chat": ("approval-arrives", "streaming"),
    "chooser": ("palette",),
    "costs": ("costs",),
    "decided": ("decided",),
    "editing": ("change-form", "change-json"),
    "events": ("events", "events-raw"),
    "finding": ("find",),
    "grants": ("grants",),
    "inbox": ("item", "many-wait", "unknown-outcome", "empty-inbox"),
    "new_talk": ("new-conversation", "start-form"),
    "remembering": ("remember",),
    "showing": ("changed-item",),
    "writing": ("slash-menu",),
}
"""Which pictures show each module of screens."""
WITHOUT_A_SCREEN = {"__init__", "frame", "answering", "bulk"}


def file_of(name: str, size: tuple[int, int]) -> Path:
    return SCREENS / f"{name}.{size[0]}x{size[1]}.txt"


@pytest.mark.parametrize("size", SIZES, ids=["120x40", "80x24", "40x12"])
@pytest.mark.parametrize("name", SCENES)
async def test_a_state_looks_as_it_was_drawn(name: str, size: tuple[int, int]) -> None:
    kept = file_of(name, size).read_text(encoding="utf-8")

    assert await dump(name, size, kept) == kept


def test_the_page_shows_a_picture_of_every_screen() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written == page_text(written), "run: python -m tests.tui.screen_page"
    assert {path.stem for path in PICTURES.iterdir()} == set(SHOWN)


def test_every_screen_of_the_app_has_a_picture() -> None:
    files = {path.stem for path in Path(screens.__path__[0]).glob("*.py")}
    drawn = {name for _, names in PICTURED.items() for name in names}

    assert set(PICTURED) == files - WITHOUT_A_SCREEN
    assert drawn <= set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
async def test_a_picture_is_what_the_screen_looks_like(name: str) -> None:
    kept = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")

    assert kept == await picture(name, kept), "run: python -m tests.tui.screen_page"
    assert not re.search(r"""(?:href|src|url\()\s*=?\s*["']?https?:""", kept)


async def _draw(names: list[str]) -> None:
    SCREENS.mkdir(exist_ok=True)
    for name in names or SCENES:
        for size in SIZES:
            file_of(name, size).write_text(await dump(name, size), encoding="utf-8")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    asyncio.run(_draw(sys.argv[1:]))
