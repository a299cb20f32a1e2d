"""Many storms of input at the whole app: `python -m tests.bench.storms [--storms 10000]`.

Each is thirty keys, pastes, clicks and focus changes in a row, with stalls of the program, around
two items that arrive. What counts is how many decisions come out of it: none may.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing

from tests.tui.test_storms import blow

INPUTS_EACH = 30
_ROUND = 50
"""So many storms at one app; then a new one, so that its log stays short."""


async def storms(first: int, count: int) -> int:
    """Blow `count` storms from seed `first` on; how many decisions were made by accident."""
    done = decided = 0
    began = time.monotonic()
    while done < count:
        seeds = range(first + done, first + min(done + _ROUND, count))
        async with aclosing(blow(seeds)) as blown:
            async for found in blown:
                done, last = done + 1, found
        decided += last
        spent = time.monotonic() - began
        sys.stdout.write(
            f"{done} storms, {done * INPUTS_EACH} inputs, {decided} decisions, {spent:.0f} s\n"
        )
        sys.stdout.flush()
    return decided


def main(arguments: Sequence[str] | None = None) -> int:
    """Blow them; 1 when anything was decided."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.storms", description=__doc__)
    parser.add_argument("--storms", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    given = parser.parse_args(arguments)
    return 1 if asyncio.run(storms(given.first, given.storms)) else 0


if __name__ == "__main__":
    sys.exit(main())
