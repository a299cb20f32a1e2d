"""A worker of another release: its workflow takes another course than the recorded one.

As `worker_process.py`, but each model call is preceded by one more step, as a careless change of
the workflow would have it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from temporalio import workflow

from capuchin_yaml.engine.turn import TurnRunner
from tests.engine import worker_process

_call_model = TurnRunner._call_model


async def _with_a_pause(self: TurnRunner) -> dict[str, Any]:
    await workflow.sleep(0.001)
    return await _call_model(self)


if __name__ == "__main__":
    TurnRunner._call_model = _with_a_pause  # type: ignore[method-assign]  # the change
    sys.path.insert(0, str(Path(__file__).parent / "lab"))
    asyncio.run(worker_process.main(Path(sys.argv[1]), sys.argv[2]))
