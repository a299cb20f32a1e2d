"""docs/reference/cli.md is the program's own help."""

from __future__ import annotations

from tests.cli.reference import REFERENCE, reference_text


def test_the_reference_is_not_stale() -> None:
    written = REFERENCE.read_text(encoding="utf-8")

    assert written == reference_text(), "run: python -m tests.cli.reference"
