"""One running demo shop for every test that only talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project
from tests.e2e.demo import demo_project


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The shipped agents, up for the whole session; tests use conversations of their own."""
    project = demo_project(tmp_path_factory.mktemp("demo"))
    with project.up("--no-tui"):
        yield project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An untouched project of one test, with the agent `notes` and the package `probe`."""
    return Project.make(tmp_path)
