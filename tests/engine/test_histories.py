"""Recorded conversations of every shape go on with the code as it is, wherever it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.commands import replayed
from tests.engine.record import HISTORIES, SHAPES

FILES = sorted(HISTORIES.glob("*.json"))
PLACES = [
    ("UTC0", "0"),
    ("IST-5:30", "1"),
    ("LINT-14", "0"),
    ("BRT3:30", "1"),
    ("UTC0", "1"),
]
"""Time zones as POSIX writes them (UTC, +05:30, +14:00, -03:30), each with a hash seed."""


def test_every_shape_is_recorded() -> None:
    recorded = {file.name.split(".")[0] for file in FILES}

    assert recorded == set(SHAPES)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
async def test_it_replays(file: Path) -> None:
    problem, _, commands = await replayed(file)

    assert problem == ""
    assert commands > 0


def test_the_commands_are_the_same_in_every_time_zone_and_with_every_hash_seed() -> None:
    found = []
    for zone, seed in PLACES:
        ran = subprocess.run(
            [sys.executable, "-m", "tests.engine.commands"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "TZ": zone, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        found.append(json.loads(ran.stdout))

    assert len(found[0]) == len(FILES)
    assert all(problem == "" for problem, _, _ in found[0].values())
    assert all(other == found[0] for other in found[1:])
