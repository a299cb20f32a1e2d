"""Draws the pictures of docs/explanation/tui.md: `python -m tests.tui.screen_page`."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path

from capuchin_yaml.tui.app import CapuchinApp
from tests.tui.scenes import drawn

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "tui.md"
PICTURES = PAGE.with_name("screens")
SIZE = (100, 30)
SHOWN = {
    "approval-arrives": "Chat, with an approval that has just arrived",
    "streaming": "Chat, while a reply streams in",
    "slash-menu": "Chat, with the menu after a slash",
    "find": "Chat, with a text that is looked for",
    "item": "Inbox, with an item open",
    "deny-reason": "Inbox, with the reason of a denial",
    "change-form": "Inbox, with other arguments in a form",
    "change-json": "Inbox, with other arguments as JSON",
    "changed-item": "Inbox, with a changed item to approve",
    "remember": "Inbox, with an approval to be remembered",
    "many-wait": "Inbox, with many items, some marked",
    "unknown-outcome": "Inbox, with an unknown outcome",
    "empty-inbox": "Inbox, with nothing in it",
    "grants": "Grants",
    "decided": "Decided",
    "events": "Events, by steps",
    "events-raw": "Events, the raw log",
    "costs": "Costs",
    "agents-with-a-fault": "Agents, one with a fault in its file",
    "palette": "Palette",
    "help": "Help",
    "new-conversation": "A new conversation",
    "start-form": "A new conversation, with what it asks first",
    "starting": "Starting",
    "server-away": "The server is away",
    "no-worker": "No worker listens",
    "leaving-while-a-turn-runs": "Leaving while a turn runs",
}
"""Scenes of `tests.tui.scenes`, with what stands above each picture."""
_MARKED = re.compile(r"(<!-- screens -->\n).*?(<!-- end of screens -->\n)", re.DOTALL)
_FETCHED = re.compile(r',\s*url\("https?://[^"]*"\) format\("\w+"\)')


def page_text(written: str) -> str:
    """The page with a picture of every screen."""
    parts = [f"\n### {title}\n\n![{title}](screens/{name}.svg)\n" for name, title in SHOWN.items()]
    return _MARKED.sub(lambda m: f"{m[1]}{''.join(parts)}\n{m[2]}", written)


async def picture(name: str, kept: str = "") -> str:
    """A scene as SVG, the same at every run; nothing in it is fetched from elsewhere."""
    return await drawn(name, SIZE, _svg, kept)


def _svg(app: CapuchinApp) -> str:
    return _FETCHED.sub("", app.export_screenshot(title="capuchin", simplify=True)) + "\n"


async def _write() -> None:
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    for name in SHOWN:
        (PICTURES / f"{name}.svg").write_text(await picture(name), encoding="utf-8")
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    for variable in ("NO_COLOR", "TEXTUAL_THEME", "SSH_CONNECTION", "TMUX"):
        os.environ.pop(variable, None)
    time.tzset()
    asyncio.run(_write())
