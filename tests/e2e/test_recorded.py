"""The recorded run of the docs can be played again, and the page holds all its steps."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.recorded import PAGE, play


def test_the_recorded_run_plays_again_step_by_step(tmp_path: Path) -> None:
    recorder = play(tmp_path / "shop")

    page = PAGE.read_text(encoding="utf-8")
    assert [title for title, _, _ in recorder.shown]
    assert [f"## {n}. {title}" for n, (title, _, _) in enumerate(recorder.shown, 1)] == [
        line for line in page.splitlines() if line.startswith("## ")
    ]
