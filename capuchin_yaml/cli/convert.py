"""`capuchin convert`: an agent of another format as agent.yaml, and what is lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli.output import ExitCode, Ink, Output
from capuchin_yaml.cli.verb import Verb, output
from capuchin_yaml.spec import JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.compiler.convert.conversion import Conversion

KINDS = ("docker-agent", "pydantic-ai", "claude-code", "llm")
"""Keep in step with compiler/convert/conversion.py (tests/cli/test_convert.py compares them)."""


@click.command(cls=Verb)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--from", "kind", type=click.Choice(KINDS), help="Which format FILE is; else it is found out."
)
@click.option("--agent", metavar="NAME", help="Which agent of a docker-agent file; else root.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write there instead of to stdout; never over a file that is there.",
)
@click.option("--json", "as_json", is_flag=True, help="The new file and the report as JSON.")
def command(
    path: Path, kind: str | None, agent: str | None, target: Path | None, as_json: bool
) -> ExitCode:
    """Convert an agent of another format to agent.yaml.

    FILE is docker-agent (cagent) YAML, a pydantic-ai agent spec, a Claude Code subagent in
    Markdown, or a template of llm. stderr says what is lost, key by key, and what is left to
    fill in. What asked before asks after: an agent that had tools asks before every call.
    """
    from capuchin_yaml.compiler.convert import conversion
    from capuchin_yaml.compiler.load import read_bytes
    from capuchin_yaml.compiler.render import report

    out = output()
    if target is not None and (target.exists() or target.is_symlink()):
        out.fail(f"{target} is there already; nothing was written")
        return ExitCode.REFUSED
    chosen = next((one for one in conversion.KINDS if one == kind), None)
    try:
        converted = conversion.convert(
            read_bytes(path), path, target or Path("agent.yaml"), kind=chosen, agent=agent
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        out.fail(f"cannot read {path}: {reason}")
        return ExitCode.REFUSED
    except conversion.CannotConvert as error:
        out.tell_rendered(report(error.diagnostics, {str(path): error.source}, "full"))
        out.fail(str(error))
        return ExitCode.REFUSED
    if as_json:
        out.answer_json(_json(converted))
    elif target is None:
        out.answer(converted.text, end="")
    if target is not None:
        try:
            with target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(converted.text)
        except OSError as error:
            out.fail(f"cannot write {target}: {error.strerror}")
            return ExitCode.REFUSED
    _tell(out, path, converted, target)
    return ExitCode.DONE if converted.compiled.spec is not None else ExitCode.REFUSED


def _tell(out: Output, path: Path, converted: Conversion, target: Path | None) -> None:
    """The report for people."""
    from capuchin_yaml.compiler.render import report

    where = f" to {target}" if target is not None else ""
    out.tell(f"converted {path} ({converted.kind}){where}")
    for title, rows in (
        ("lost", [(one.line, one.key, one.why) for one in converted.losses]),
        ("fill in", [(one.line, one.key, one.what) for one in converted.fill_ins]),
    ):
        if rows:
            out.tell(Ink(f"{title}:", "bold"))
        for line, key, text in rows:
            out.tell(f"  line {line}: {key}: {text}")
    compiled = converted.compiled
    out.tell_rendered(report(compiled.diagnostics, compiled.sources, "full"))
    if compiled.spec is None:
        out.warn("the new file has mistakes; they are for you to correct")


def _json(converted: Conversion) -> dict[str, JsonValue]:
    from capuchin_yaml.compiler.render import as_json

    found = as_json(converted.compiled.diagnostics, [], {})["diagnostics"]
    return {
        "v": 1,
        "kind": converted.kind,
        "name": converted.name,
        "agent": converted.text,
        "lost": [{"line": o.line, "key": o.key, "why": o.why} for o in converted.losses],
        "fill_in": [{"line": o.line, "key": o.key, "what": o.what} for o in converted.fill_ins],
        "diagnostics": found,
    }
