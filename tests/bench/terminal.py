"""The terminal UI in a pseudo-terminal: `python -m tests.bench.terminal [--runs 10] [--only NAME]`.

The world behind it is the scripted gateway of the tests, so the figures are the screen's alone.
On a machine that does other work too, `nice -n -15` before it gives what a free machine would.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import terminal_cost as cost
from tests.bench import terminal_keys as keys
from tests.bench.report import Figure, lines

FIGURES: dict[str, Callable[[Path, int], list[Figure]]] = {
    "first": keys.first_frame,
    "open": keys.open_long,
    "idle-keys": keys.idle_keys,
    "streaming-keys": keys.streaming_keys,
    "pages": keys.pages,
    "resize": keys.resizes,
    "log": keys.log_pages,
    "palette": keys.palette,
    "idle": cost.idle,
    "stream": cost.streaming,
    "ssh": cost.far,
    "ten": cost.ten_streams,
    "soak": cost.soak,
    "loss": cost.server_loss,
    "stray": cost.stray_bytes,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.terminal", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", action="append", choices=[*FIGURES])
    given = parser.parse_args(arguments)
    _say(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(prefix="capuchin-bench-") as folder:
        for name, measure in FIGURES.items():
            if given.only is None or name in given.only:
                found = measure(Path(folder), given.runs)
                _say(f"{name}: {measure.__doc__} (load {os.getloadavg()[0]:.1f})")
                for line in lines(found):
                    _say(line)
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
