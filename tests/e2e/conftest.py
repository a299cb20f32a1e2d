"""One running demo shop for every test that only talks to it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project
from tests.e2e.demo import demo_project


@pytest.fixture(scope="session")
def demo() -> Iterator[Project]:
    """The shipped agents, up for the whole session; tests use conversations of their own.

    The folder can be entered by every user of this machine, as a project's often can.
    """
    with tempfile.TemporaryDirectory(prefix="capuchin-demo-") as folder:
        Path(folder).chmod(0o755)
        project = demo_project(Path(folder))
        with project.up("--no-tui"):
            yield project
