"""Large pastes held beside a draft: the draft shows a short mark, the message gets the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from capuchin_yaml.terminal_text import visible

LARGE_CHARS = 4_000
LARGE_LINES = 40
_MARK = re.compile(r"⟦paste (\d+)·[^⟧]*⟧")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> tuple[str, int]:
    """Pasted text with plain newlines and control characters written out, and their count.

    A terminal would act on a raw control character as soon as the draft is drawn.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.subn(lambda m: f"\\x{ord(m[0]):02x}", text)


def hidden_marks(text: str) -> int:
    """Characters that are drawn as nothing or change the order of others, such as bidi marks."""
    return sum(not c.isprintable() and c not in "\n\t" and visible(c) != c for c in text)


def is_large(text: str) -> bool:
    """Whether a paste would make the editor slow, so that it is held beside it."""
    return len(text) > LARGE_CHARS or text.count("\n") > LARGE_LINES


@dataclass(slots=True)
class Pasted:
    """The held pastes of one program run; they stay, so undoing a deletion brings one back."""

    texts: dict[int, str] = field(default_factory=dict)

    def hold(self, text: str, name: str = "") -> str:
        """Keep a text and return the mark that stands for it, with its name if it has one."""
        number = len(self.texts) + 1
        self.texts[number] = text
        lines = text.count("\n") + 1
        size = len(text.encode("utf-8", "surrogatepass"))
        label = f"{name.replace('⟧', '')}, " if name else ""
        return f"⟦paste {number}· {label}{lines:,} lines, {max(size // 1024, 1):,} KB⟧"

    def expand(self, draft: str) -> str:
        """The draft with every mark replaced by the text it stands for."""
        return _MARK.sub(lambda m: self.texts.get(int(m[1]), m[0]), draft)
