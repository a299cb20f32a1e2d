"""Notice that files changed: the system's events wake, the files' own marks decide."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 5.0
"""Events may be lost (network folders, containers), so the files are looked at this often too."""
_DEBOUNCE_MS = 200
_STEP_MS = 50

Marks: TypeAlias = Mapping[Path, tuple[int, int, int]]
"""Inode, size and time of change of each file that exists."""


def marks(files: Iterable[Path]) -> Marks:
    """How these files are now."""
    found: dict[Path, tuple[int, int, int]] = {}
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        found[file] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


def code_files(roots: Iterable[Path]) -> Iterable[Path]:
    """Every Python file of these packages."""
    for root in roots:
        if root.is_file():
            yield root
        else:
            yield from (p for p in root.rglob("*.py") if "__pycache__" not in p.parts)


async def wake_ups(folders: Sequence[Path], *, recursive: bool) -> AsyncGenerator[None]:
    """Yield when something in these folders may have changed, and now and then besides."""
    from watchfiles import awatch

    existing = [folder for folder in folders if folder.exists()]
    if existing:
        try:
            async for _ in awatch(
                *existing,
                recursive=recursive,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=int(LOOK_AGAIN_S * 1000),
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield
        except Exception as error:
            # Too many watches, an odd file system, a name that is no text (which has an error of
            # its own in the library): look by the clock.
            logger.info("no events of %s: %s", ", ".join(map(str, existing)), error)
    while True:
        await asyncio.sleep(LOOK_AGAIN_S if not existing else 1.0)
        yield
