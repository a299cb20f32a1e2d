"""How an item that waits no more is told, in one line. No I/O."""

from __future__ import annotations

from capuchin_yaml.events import ItemDecided
from capuchin_yaml.terminal_text import one_line
from capuchin_yaml.tui.gateway import Decided

_WORDS = {
    "approve": "approved",
    "deny": "denied",
    "edit": "approved with changes",
    "happened": "it happened",
    "rerun": "run again",
    "failed": "treated as failed",
    "go_on": "went on",
    "stop": "stopped",
    "expired": "the time ran out",
    "withdrawn": "withdrawn with its turn",
}
_GLYPHS = {
    "approve": ("✔", "ok"),
    "edit": ("✔", "ok"),
    "happened": ("✔", "ok"),
    "rerun": ("✔", "ok"),
    "go_on": ("✔", "ok"),
    "deny": ("✖", "bad"),
    "failed": ("✖", "bad"),
    "stop": ("✖", "bad"),
}


def told(decided: ItemDecided, user: str) -> tuple[str, str]:
    """What the log says of a decision, and whether it was this user's; with the role to draw."""
    word = _WORDS.get(decided.choice, decided.choice.replace("_", " "))
    glyph, role = _GLYPHS.get(decided.choice, ("○", "muted"))
    line = f"{glyph} {word}{_by(decided.by, user)}"
    return (f"{line}: {one_line(decided.reason, 200)}" if decided.reason else line), role


def answered(answer: Decided, user: str) -> str:
    """What the conversation answered to a decision that came second."""
    word = _WORDS.get(answer.choice, answer.choice.replace("_", " "))
    line = f"decided elsewhere: {word}{_by(answer.by, user)}"
    return f"{line}: {one_line(answer.reason, 200)}" if answer.reason else line


def _by(name: str, user: str) -> str:
    if not name:
        return ""
    return f" by {one_line(name, 60)}" + (" (your name)" if name == user else "")
