"""Writes docs/reference/keys.md from the bindings: `python -m tests.tui.keys_reference`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from capuchin_yaml.tui.keys import bound_keys
from capuchin_yaml.tui.model.answers import ANSWERS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "keys.md"

HEAD = """# Keys of the TUI

`F1` shows the keys that act where you are.
Every action has an id.
The file `keys.yaml` in the state folder gives actions other keys; it is read when the TUI starts:

```text
app.inbox: f6
chat.new: ctrl+n, ctrl+t
```

What cannot be followed is said at the bottom of the screen and left as it was.
That is an id that does not exist, or a key that another action of the same place has.
Terminals keep some keys for themselves, often `F1`, `F10` and `F11`.
Every action is also in the palette (`ctrl+p`).
"""

ANSWER_HEAD = """
## Answers

These keys answer an item that is open in the inbox.
They act only after the whole item was on the screen, and they cannot be moved.

| kind | key | answers |
|---|---|---|
"""


def reference_text() -> str:
    """The whole page."""
    parts = [HEAD]
    for section, bound in groupby(bound_keys(), lambda b: b.section):
        parts.append(f"\n## {section}\n\n| key | does | id |\n|---|---|---|\n")
        for key in bound:
            names = ", ".join(f"`{k}`" for k in key.keys)
            parts.append(f"| {names} | {key.does} | `{key.id}` |\n")
    parts.append(ANSWER_HEAD)
    for kind, answers in ANSWERS.items():
        parts += [f"| {kind} | `{a.key}` | {a.label} |\n" for a in answers]
    return "".join(parts)


if __name__ == "__main__":
    REFERENCE.write_text(reference_text(), encoding="utf-8")
