"""What the program loads to print its help."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.contenders import Run
from tests.bench.report import Figure

HEAVY = ("anthropic", "jinja2", "jsonschema", "pydantic", "temporalio", "textual", "yaml")

_PROBE = f"""
import json, sys, time
from capuchin_yaml.cli.app import main
sys.argv = ["capuchin", "--help"]
try:
    main()
except SystemExit:
    pass
print(json.dumps([[m for m in {HEAVY!r} if m in sys.modules], time.process_time()]))
"""


async def start(run: Run) -> list[Figure]:
    """What `capuchin --help` loads, and its processor time."""
    heavy, own_s = help_start()
    return [
        Figure(
            "heavy packages that `capuchin --help` loads",
            len(heavy),
            "",
            at_most=0,
            note=", ".join(heavy),
        ),
        Figure("`capuchin --help`, processor time", own_s * 1000, "ms"),
    ]


def help_start() -> tuple[list[str], float]:
    """Return the heavy packages that `capuchin --help` loaded, and its processor time in s."""
    shown = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True
    ).stdout
    assert "Usage: capuchin" in shown
    heavy, own_s = json.loads(shown.splitlines()[-1])
    return heavy, own_s
