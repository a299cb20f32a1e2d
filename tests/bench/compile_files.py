"""What checking files costs: beside its own imports, beside check-jsonschema, and at the edges."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from capuchin_yaml.schema_files import schema_text
from tests.bench.contenders import Run
from tests.bench.report import Figure, ratio

OTHER = "CHECK_JSONSCHEMA"
"""Environment variable with the program `check-jsonschema` (PyPI), where it is not on PATH."""
FILES, LINES, ROUNDS, TURNS = 1000, 60, 7, 3
HUGE_BYTES = 5 * 1024 * 1024

AGENT = """\
apiVersion: capuchin/v1
name: agent-{n}
prompt: Answer in a few words.
limits: {{max_steps: 3}}
"""
ORDINARY = """\
apiVersion: capuchin/v1
name: agent-{n}
version: 1.2.{n}
description: Looks up orders and answers what people ask about them.
model: {{name: "anthropic:claude-opus-4-8", max_tokens: 8000, timeout: 2m}}
variables:
  company: {{type: string, default: Acme, description: The shop.}}
  tone: {{type: string, enum: [plain, warm], default: plain}}
injected: [tenant]
approval:
  policy: all
  timeout: 24h
  on_timeout: deny
limits:
  max_steps: 8
  max_tool_calls: 40
price:
  type: per_call
  amount: "0.25"
  currency: USD
listing:
  license: MIT
  author: Acme
  categories: [support]
  tags: [orders, refunds]
prompt: |
  You answer for {{{{ company }}}}, in a {{{{ tone }}}} tone.
"""
_MEASURED = """
import json, resource, sys, time
from pathlib import Path
from capuchin_yaml.compiler.load import compile_file
begin = time.perf_counter()
found = [d.id for d in compile_file(Path(sys.argv[1])).diagnostics]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([found, time.perf_counter() - begin, peak / 1024]))
"""


async def compile_files(run: Run) -> list[Figure]:
    """What `capuchin validate` costs."""
    return await asyncio.to_thread(_figures, run.folder / "compile")


def _figures(folder: Path) -> list[Figure]:
    folder.mkdir()
    one = folder / "one.yaml"
    one.write_text(AGENT.format(n=0))
    many = _many(folder / "many")
    ids, bomb_s, _ = _measured(_bomb(folder))
    assert ids == ["alias-bomb"]
    _, _, huge_mb = _measured(_huge(folder))
    validate = [sys.executable, "-m", "capuchin_yaml.cli.app", "validate"]
    imports = [sys.executable, "-c", "import yaml, jsonschema"]
    pairs = [(_seconds([*validate, str(one)]), _seconds(imports)) for _ in range(ROUNDS)]
    figures = [
        ratio(
            "`validate` of one file, beside importing yaml and jsonschema",
            min(ours for ours, _ in pairs),
            min(others for _, others in pairs),
            2.0,
        ),
        Figure("an alias bomb is refused within", bomb_s * 1000, "ms", 100),
        Figure("peak memory with a file of 5 MB", huge_mb, "MB", 300),
    ]
    other = os.environ.get(OTHER) or shutil.which("check-jsonschema")
    if other is None:
        name = f"{FILES} files, beside check-jsonschema"
        return [*figures, Figure(name, 0, "x", note=f"not measured: name it in {OTHER}")]
    schema = folder / "agent.schema.json"
    schema.write_text(schema_text("agent.v1"))
    files = [str(file) for file in sorted(many.iterdir())]
    ours_s = min(_seconds([*validate, str(many)]) for _ in range(TURNS))
    others = [other, "--schemafile", str(schema), *files]
    others_s = min(_seconds(others) for _ in range(TURNS))
    return [*figures, ratio(f"{FILES} files, beside check-jsonschema", ours_s, others_s, 0.2)]


def _many(folder: Path) -> Path:
    folder.mkdir()
    for n in range(FILES):
        text = ORDINARY.format(n=n)
        rest = LINES - text.count("\n")
        prompt = "".join(
            f"  {i}. Keep to the point, and say what you do not know.\n" for i in range(rest)
        )
        (folder / f"agent-{n:04}.yaml").write_text(text + prompt)
    return folder


def _bomb(folder: Path) -> Path:
    levels = "".join(f"x-{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 10))
    file = folder / "bomb.yaml"
    file.write_text(f"{AGENT.format(n=0)}x-0: &l0 [a, a, a, a, a, a, a, a, a]\n{levels}")
    return file


def _huge(folder: Path) -> Path:
    head = AGENT.format(n=0)
    line = "x-note-{}: " + "a" * 80 + "\n"
    count = (HUGE_BYTES - len(head)) // (len(line) + 6)
    file = folder / "huge.yaml"
    file.write_text(head + "".join(line.format(i) for i in range(count)))
    return file


def _measured(file: Path) -> tuple[list[str], float, float]:
    """Ids, seconds and peak megabytes of compiling one file in a process of its own."""
    shown = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(file)], capture_output=True, text=True, check=True
    ).stdout
    ids, seconds, megabytes = json.loads(shown)
    return ids, seconds, megabytes


def _seconds(command: Sequence[str]) -> float:
    """Processor time of a program, which other programs on the machine change little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
