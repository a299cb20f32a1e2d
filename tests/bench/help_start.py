"""What the program loads to print its help."""

from __future__ import annotations

import asyncio
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
    heavy, own_s = await asyncio.to_thread(_probe)
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


def heavy_packages() -> list[str]:
    """Return the heavy packages that `capuchin --help` loaded."""
    return _probe()[0]


def _probe() -> tuple[list[str], float]:
    shown = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True
    ).stdout
    assert "Usage: capuchin" in shown
    heavy, own_s = json.loads(shown.splitlines()[-1])
    return heavy, own_s
