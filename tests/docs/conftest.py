"""Folders, shells and a running project for the pages that are played."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.program import clean_environ
from tests.docs.pages import ROOT
from tests.docs.shell import Shell, bare_venv, on_path


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Shell]:
    """A shell in a folder where the README's first line was run; its project is `../shop`."""
    folder = tmp_path / "checkout"
    programs = bare_venv(folder / ".venv")
    environ = clean_environ(tmp_path, PIP_DISABLE_PIP_VERSION_CHECK="1")
    if all(find_spec(name) for name in ("hatchling", "editables")):
        # Why 0: pip reads it as the value of build isolation; the package then needs no index.
        environ["PIP_NO_BUILD_ISOLATION"] = "0"
    shell = Shell(folder, environ)
    try:
        yield shell
    finally:
        shell.close()
        end_up(programs / "capuchin", tmp_path / "shop")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shell]:
    """A shell in an empty project folder named `shop`."""
    yield from shell_in(tmp_path / "shop")


@pytest.fixture(scope="session")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell in the project `shop`, which is up with the agent `billing` of the examples."""
    for shell in shell_in(tmp_path_factory.mktemp("docs") / "shop"):
        agent = (ROOT / "agents" / "billing.yaml").read_text(encoding="utf-8")
        (shell.folder / "agent.yaml").write_text(agent, encoding="utf-8")
        assert shell.type("capuchin up --no-tui --detach")[1] == []
        yield shell


def shell_in(folder: Path) -> Iterator[Shell]:
    """A shell in a new folder, with the installed programs; what it starts is ended."""
    folder.mkdir()
    programs = Path(sys.executable).parent
    shell = Shell(folder, on_path(programs, clean_environ(folder)))
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


@pytest.fixture(scope="session")
def state_folder(open_shop: Shell) -> Path:
    """The state folder of a project that is up."""
    return open_shop.folder / ".capuchin"
