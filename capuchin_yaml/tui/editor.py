"""The person's own editor, while the TUI steps aside."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from capuchin_yaml.terminal_text import one_line

if TYPE_CHECKING:
    from capuchin_yaml.tui.app import CapuchinApp


def edited(app: CapuchinApp, text: str, name: str) -> str | None:
    """What the editor saved of `text` in a file called `name`; None, and a notice, without."""
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not words:
        app.say("set VISUAL or EDITOR to write in an editor", "warn")
        return None
    with tempfile.TemporaryDirectory(prefix="capuchin-") as folder:
        file = Path(folder) / name
        file.write_text(text, "utf-8", "surrogatepass")
        try:
            with app.suspend():
                # Why these streams: descriptors 1 and 2 lead to the log while the TUI runs.
                code = subprocess.call(
                    [*words, str(file)], stdout=sys.__stdout__, stderr=sys.__stdout__
                )
        except (OSError, SuspendNotSupported) as error:
            app.say(f"the editor did not start: {one_line(str(error), 200)}", "bad")
            return None
        if code:
            app.say(f"the editor ended with {code}; the text stays as it was", "warn")
            return None
        return file.read_text("utf-8", "replace")
