"""The corpus of agent files, each with the exact report it gets beside it.

Run `python -m tests.compiler.corpus` to write the reports anew, then read what changed.
"""

from __future__ import annotations

from pathlib import Path

from capuchin_yaml.compiler.load import Compiled, compile_bytes
from capuchin_yaml.compiler.render import report
from tests.compiler.packages import PaperSource

FOLDER = Path(__file__).parent.parent / "corpus"
VALID = sorted((FOLDER / "valid").glob("*.yaml"))
INVALID = sorted((FOLDER / "invalid").glob("*.yaml"))


def compiled(path: Path) -> Compiled:
    """The file compiled against the tool packages of `PaperSource`."""
    return compile_bytes(path.read_bytes(), path, PaperSource())


def reported(path: Path) -> str:
    """Its full report, with paths as they are from the corpus folder."""
    result = compiled(path)
    text = report(result.diagnostics, result.sources, "full")
    return text.replace(f"{path.parent}/", "")


def expected(path: Path) -> Path:
    """Where the report of a file is kept; a valid file without warnings has none."""
    return path.with_suffix(".expected")


def rewrite() -> None:
    """Write the report of every file of the corpus beside it."""
    for path in (*VALID, *INVALID):
        text = reported(path)
        if text:
            expected(path).write_text(text, encoding="utf-8")
        else:
            expected(path).unlink(missing_ok=True)


if __name__ == "__main__":
    rewrite()
