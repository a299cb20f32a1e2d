"""Whatever is killed whenever: one final state, a log only extended, every effect once."""

from __future__ import annotations

from tests.engine.kill_points import run_seeds

SEEDS = [1, 2, 3, 4, 5, 6]
"""A handful; `python -m tests.engine.kill_points --seeds 60` runs the rest."""


async def test_kills_at_chosen_events_change_nothing() -> None:
    assert await run_seeds(SEEDS, at_once=3) == []
