"""What every state looks like at three sizes; `python -m tests.tui.test_states` draws them."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from tests.tui.scenes import SCENES, SIZES, dump
from tests.tui.screen_page import PAGE, page_text

SCREENS = Path(__file__).with_name("screens")


def file_of(name: str, size: tuple[int, int]) -> Path:
    return SCREENS / f"{name}.{size[0]}x{size[1]}.txt"


@pytest.mark.parametrize("size", SIZES, ids=["120x40", "80x24", "40x12"])
@pytest.mark.parametrize("name", SCENES)
async def test_a_state_looks_as_it_was_drawn(name: str, size: tuple[int, int]) -> None:
    text = await dump(name, size)

    assert text == file_of(name, size).read_text(encoding="utf-8")


def test_the_page_shows_the_screens_as_they_are_drawn() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written == page_text(written), "run: python -m tests.tui.screen_page"


async def _draw(names: list[str]) -> None:
    SCREENS.mkdir(exist_ok=True)
    for name in names or SCENES:
        for size in SIZES:
            file_of(name, size).write_text(await dump(name, size), encoding="utf-8")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    asyncio.run(_draw(sys.argv[1:]))
