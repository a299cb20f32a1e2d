"""What the bench measures, by name; a new figure is one function and one row here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from tests.bench.compile_files import compile_files
from tests.bench.contenders import Run
from tests.bench.crowds import crowd, flood, idle, inbox
from tests.bench.endurance import endless, resume
from tests.bench.full_state import full_state
from tests.bench.help_start import start
from tests.bench.long_talk import long_talk
from tests.bench.paced_turns import requests, turn
from tests.bench.report import Figure


async def memory(run: Run) -> list[Figure]:
    """Peak memory of every process, after the figures before."""
    return run.memory()


FIGURES: Mapping[str, Callable[[Run], Awaitable[list[Figure]]]] = {
    "turn": turn,
    "requests": requests,
    "long": long_talk,
    "state": full_state,
    "start": start,
    "compile": compile_files,
    "memory": memory,
    "crowd": crowd,
    "flood": flood,
    "resume": resume,
    "idle": idle,
    "inbox": inbox,
    "endless": endless,
}
"""In the order in which a run measures them."""
