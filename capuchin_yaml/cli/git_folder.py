"""An agent's folder as it was at a git revision."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from capuchin_yaml.compiler.own_files import AgentFolder

GIT_S = 30.0
_LINK = b"120000"


@dataclass(frozen=True, slots=True)
class GitFolder(AgentFolder):
    """Reads files from a revision; links are not followed."""

    revision: str

    def holds(self, file: Path) -> bool:
        return not self._name(file).startswith("..")

    def has(self, file: Path) -> bool:
        listed = _git(self.path, "ls-tree", self.revision, "--", f"./{self._name(file)}")
        return b" blob " in listed and not listed.startswith(_LINK)

    def read(self, file: Path) -> bytes:
        return _git(self.path, "show", f"{self.revision}:./{self._name(file)}")

    def _name(self, file: Path) -> str:
        return os.path.relpath(file, self.path)


def _git(folder: Path, *words: str) -> bytes:
    """What git answers.

    Raises:
        OSError: git is not there, takes too long, or refuses; its first line says why.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, timeout=GIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OSError(0, f"git gave no answer within {GIT_S:g} s") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OSError(done.returncode, lines[0] if lines else "git said nothing")
    return done.stdout
