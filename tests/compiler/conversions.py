"""Files of other formats, each with what converting it gives beside it.

All were written for this corpus, in the formats that the converters name.
Run `python -m tests.compiler.conversions` to write the outcomes anew, then read what changed.
"""

from __future__ import annotations

from pathlib import Path

from capuchin_yaml.compiler.convert.conversion import Conversion, convert
from tests.compiler.packages import PaperSource

FOLDER = Path(__file__).parent.parent / "corpus" / "convert"
SAMPLES = sorted(p for p in FOLDER.iterdir() if p.suffix in (".yaml", ".md"))


def converted(path: Path) -> Conversion:
    """The file converted; what it is is found out."""
    return convert(path.read_bytes(), path, FOLDER / "agent.yaml", registry=PaperSource())


def outcome(path: Path) -> str:
    """The new file and the report, as they are kept."""
    result = converted(path)
    lost = [f"{one.line}: {one.key}: {one.why}" for one in result.losses]
    fill_in = [f"{one.line}: {one.key}: {one.what}" for one in result.fill_ins]
    # Which models are known changes with every release, so warnings are left out.
    found = [f"error[{d.id}]" for d in result.compiled.diagnostics if d.severity == "error"]
    return "\n".join(
        [result.text, "--- lost", *lost, "--- fill in", *fill_in, "--- validate", *found, ""]
    )


def expected(path: Path) -> Path:
    """Where the outcome of a file is kept."""
    return path.with_suffix(".expected")


def rewrite() -> None:
    """Write the outcome of every file beside it."""
    for path in SAMPLES:
        expected(path).write_text(outcome(path), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
