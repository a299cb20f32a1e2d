"""Coverage-guided fuzzing of the loader: any bytes give diagnostics or a spec, and nothing else.

    pip install atheris
    nice python -m tests.fuzz.loader --state /tmp/fuzz

Not a part of the test suite: a whole run takes half an hour on a free machine, and atheris is a
large package with few wheels. Each input is compiled as the text of an agent file, as `capuchin
validate` does; with --after it is rendered in every format and repaired too, which is slower.
The run stops at the first input that raises, that gives a place outside its own text, that takes
longer than SLOWEST_S, or with which the process grows beyond MOST_MB; that input lies in the state
folder then. A run that comes to its end prints its figures.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capuchin_yaml.compiler.load import Compiled

SLOWEST_S = 10
MOST_MB = 1024
LONGEST_BYTES = 512
"""Of one input; the bounds on large files have tests of their own."""
AGENT = Path("/nonexistent/agent.yaml")
CORPUS = Path(__file__).parent.parent / "corpus"


class Broken(Exception):
    """The loader did what it must never do."""


def main() -> None:
    """Fuzz until the asked number of inputs is through, or one breaks the loader."""
    parser = argparse.ArgumentParser(description="Fuzz the loader of agent files.")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--after", action="store_true", help="render and repair each input too")
    parser.add_argument("--state", type=Path, required=True, help="folder for what is found")
    asked = parser.parse_args()
    # Not one of the project's dependencies.
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

    # What only looks for similar words is slow with counters, and has nothing to break.
    rooms = ["capuchin_yaml.compiler", "capuchin_yaml.policy"]
    with atheris.instrument_imports(include=rooms, exclude=["capuchin_yaml.compiler.nearest"]):
        import capuchin_yaml.compiler.fix  # noqa: F401  # what is imported now is instrumented

    state = asked.state.resolve()
    found = state / "corpus"
    found.mkdir(parents=True, exist_ok=True)
    words = state / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in vocabulary()))
    arguments = [
        f"-runs={asked.runs}",
        f"-seed={asked.seed}",
        f"-max_len={LONGEST_BYTES}",
        f"-timeout={SLOWEST_S}",
        f"-rss_limit_mb={MOST_MB}",
        f"-dict={words}",
        f"-artifact_prefix={state}/",
        "-print_final_stats=1",
        str(found),
        *(str(CORPUS / name) for name in ("valid", "invalid")),
    ]
    atheris.Setup([sys.argv[0], *arguments], try_after if asked.after else try_input)
    atheris.Fuzz()


def try_input(data: bytes) -> None:
    """Compile one input and look at what came out.

    Raises:
        Broken: there is neither a spec nor an error, or a place lies outside the text.
    """
    from capuchin_yaml.compiler.load import compile_bytes
    from tests.compiler.packages import PaperSource

    check_outcome(compile_bytes(data, AGENT, PaperSource()))


def try_after(data: bytes) -> None:
    """Compile one input, print what came out in every format, and repair it.

    Raises:
        Broken: as `try_input`, or repairing twice is not repairing once.
    """
    from capuchin_yaml.compiler.fix import certain_edits, repaired
    from capuchin_yaml.compiler.render import FORMATS, report
    from tests.compiler.packages import PaperSource

    once = repaired(data, AGENT, PaperSource())
    check_outcome(once.compiled)
    edits = certain_edits(data, AGENT, PaperSource())
    for format_ in FORMATS:
        report(once.compiled.diagnostics, once.compiled.sources, format_, edits=edits)
    if repaired(once.data, AGENT, PaperSource()).data != once.data:
        raise Broken("repairing a repaired file changes it")


def check_outcome(compiled: Compiled) -> None:
    """Check that there is a spec or an error, and that every place is one of the text.

    Raises:
        Broken: it is not so.
    """
    errors = [d for d in compiled.diagnostics if d.severity == "error"]
    if (compiled.spec is None) != bool(errors):
        raise Broken(f"a spec and {len(errors)} errors, or neither")
    if compiled.spec is not None and len(compiled.spec.definition_hash) != 64:
        raise Broken("a spec without a hash")
    lines = compiled.source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    edits = [d.fix.span for d in compiled.diagnostics if d.fix is not None]
    notes = [a.span for d in compiled.diagnostics for a in d.annotations]
    for span in (*(d.span for d in compiled.diagnostics), *notes, *edits):
        is_ordered = (span.line, span.column) <= (span.end_line, span.end_column)
        if not is_ordered or not 1 <= span.line <= span.end_line <= len(lines):
            raise Broken(f"{span} is no range of {len(lines)} lines")
        for line, column in ((span.line, span.column), (span.end_line, span.end_column)):
            if not 1 <= column <= len(lines[line - 1]) + 1:
                raise Broken(f"{span} lies outside line {line}")


def vocabulary() -> list[str]:
    """Words that a mutation alone would seldom find: the format's keys, values and signs."""
    from capuchin_yaml.schema_files import read_schema

    words = {"apiVersion: capuchin/v1\nname: a\nprompt: b\n", "<<: *a", "&a ", "!!binary ", "? "}
    words |= {"{{ x }}", "{% for x in y %}", "{% raw %}", "args.amount_cents > 1", "has(args.x)"}
    words |= {
        "\ufeff",
        "\u2028",
        "\x85",
        "---\n",
        "...\n",
        "\r\n",
        "\t",
        "|2-\n",
        ">+\n",
        "{env: X}",
    }
    pending: list[object] = [read_schema("agent.v1")]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            words.update(f"{key}: " for key in part.get("properties", {}))
            words.update(str(value) for value in part.get("enum", ()))
            words.update(str(value) for value in part.get("examples", ()))
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return sorted(word for word in words if len(word.encode()) < 60)


def _escaped(word: str) -> str:
    """As libFuzzer reads a word: every byte that is no plain character by its number."""
    plain = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 :./_-")
    return "".join(chr(b) if b in plain else f"\\x{b:02X}" for b in word.encode())


if __name__ == "__main__":
    main()
