"""Folders, shells and a running project for the pages that are played."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import clean_environ
from tests.docs.shell import Shell, bare_venv, on_path


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Shell]:
    """A shell in a folder where the README's first line was run; its project is `../shop`."""
    folder = tmp_path / "checkout"
    programs = bare_venv(folder / ".venv")
    shell = Shell(folder, clean_environ(tmp_path))
    try:
        yield shell
    finally:
        shell.close()
        end_up(programs / "capuchin", tmp_path / "shop")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shell]:
    """A shell in an empty project folder named `shop`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    programs = Path(sys.executable).parent
    shell = Shell(folder, on_path(programs, clean_environ(tmp_path)))
    try:
        yield shell
    finally:
        shell.close()
        end_up(programs / "capuchin", folder)


def end_up(program: Path, project: Path) -> None:
    """End whatever a page left running."""
    if (project / ".capuchin").exists():
        subprocess.run(
            [program, "down", "--now"],
            cwd=project,
            env=clean_environ(project),
            capture_output=True,
            timeout=60,
            check=False,
        )
