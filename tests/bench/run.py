"""The bench: `python -m tests.bench.run [--turns 50] [--only NAME] [--json FILE] [--check]`.

Every figure is a ratio within one run, or a count; single times depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.contenders import Run
from tests.bench.figures import FIGURES
from tests.bench.report import Figure, as_json, lines

_BUSY_LOAD = 1.5
"""Load for each processor from which a turn waits for others more than for itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a goal is missed and `--check` is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.run", description=__doc__)
    parser.add_argument("--turns", type=int, default=50, help="paced turns of each contender")
    parser.add_argument("--talks", type=int, default=100, help="conversations of a crowd")
    parser.add_argument("--waiting", type=int, default=10_000, help="of them in the inbox")
    parser.add_argument(
        "--only", action="append", choices=[*FIGURES], help="measure only this; repeatable"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    given = parser.parse_args(arguments)
    names = [name for name in FIGURES if given.only is None or name in given.only]
    try:
        groups = asyncio.run(_measure(names, given))
    except asyncio.CancelledError:
        _say("stopped")
        return 130
    if given.json is not None:
        document = {"v": 1, "machine": _machine(), "figures": as_json(groups)}
        given.json.write_text(json.dumps(document, indent=2) + "\n")
    missed = [f.name for figures in groups.values() for f in figures if f.is_missed]
    for name in missed:
        _say(f"missed: {name}")
    return 1 if missed and given.check else 0


async def _measure(names: Sequence[str], given: argparse.Namespace) -> dict[str, list[Figure]]:
    groups: dict[str, list[Figure]] = {}
    task = asyncio.current_task()
    assert task is not None
    # Why: servers and workers are sessions of their own and would outlive us.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    _say(_machine())
    with tempfile.TemporaryDirectory(prefix="capuchin-bench-") as folder:
        async with Run(Path(folder), given.turns, given.talks, given.waiting) as run:
            for name in names:
                groups[name] = await FIGURES[name](run)
                _say(f"{name}: {(FIGURES[name].__doc__ or '').strip()}")
                for line in lines(groups[name]):
                    _say(line)
    if os.getloadavg()[0] > _BUSY_LOAD * (os.cpu_count() or 1):
        _say("the machine is busy with something else: times, and ratios of times, mean little")
    return groups


def _machine() -> str:
    return (
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
