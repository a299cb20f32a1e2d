"""Writes the screens of docs/explanation/tui.md: `python -m tests.tui.screen_page`."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "tui.md"
SCREENS = Path(__file__).with_name("screens")
SHOWN = (
    ("Chat, with an approval that has just arrived", "approval-arrives.80x24"),
    ("Inbox, with an item open and read", "item.120x40"),
    ("Decided", "decided.80x24"),
    ("Events", "events.80x24"),
    ("Costs", "costs.80x24"),
    ("Agents, one with a fault in its file", "agents-with-a-fault.80x24"),
    ("Palette", "palette.80x24"),
    ("Help", "help.120x40"),
    ("A new conversation", "new-conversation.80x24"),
    ("The server is away", "server-away.80x24"),
    ("The smallest window", "item.40x12"),
)
_MARKED = re.compile(r"(<!-- screens -->\n).*?(<!-- end of screens -->\n)", re.DOTALL)


def page_text(written: str) -> str:
    """The page with the screens as they are drawn now."""
    parts = []
    for title, name in SHOWN:
        screen = (SCREENS / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
        parts.append(f"\n### {title}\n\n```text\n{screen}\n```\n")
    return _MARKED.sub(lambda m: f"{m[1]}{''.join(parts)}\n{m[2]}", written)


if __name__ == "__main__":
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
