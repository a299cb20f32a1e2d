"""One running `up` for every test that only talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project that is up for the whole session; tests use conversations of their own."""
    project = Project.make(tmp_path_factory.mktemp("shop"))
    with project.up("--no-tui"):
        yield project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An untouched project of one test."""
    return Project.make(tmp_path)
