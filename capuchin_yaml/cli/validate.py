"""`capuchin validate`: every mistake of every file, all at once."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import usual_paths
from capuchin_yaml.cli.output import ExitCode, Ink, Output
from capuchin_yaml.cli.verb import Verb, is_verbose, output
from capuchin_yaml.diagnostics import Diagnostic, Edit, Severity
from capuchin_yaml.spec import JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.compiler.load import Compiled

FORMATS = ("full", "concise", "json", "sarif", "github")


@click.command(cls=Verb)
@options.paths
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="full",
    show_default=True,
    help="For people (full, concise) or programs (json, sarif, github).",
)
@options.profile
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--fix", is_flag=True, help="Repair what is certain, then report what is left.")
@click.option("--diff", is_flag=True, help="Only show what --fix would change.")
def command(
    paths: tuple[Path, ...],
    format_: str,
    profile: str | None,
    as_json: bool,
    fix: bool,
    diff: bool,
) -> ExitCode:
    """Check agent files and report every mistake.

    PATHS are agent files and folders of them; without any ./agent.yaml is meant, else every agent
    in ./agents/. Nothing is started, and only --fix writes. With -v the policy of each agent is
    said.
    """
    from capuchin_yaml.cli.agents_on_disk import compile_agents
    from capuchin_yaml.compiler.load import find_agents

    out = output()
    find = paths or usual_paths()
    if not find:
        raise click.UsageError("no agent.yaml and no agents/ here; name a file or a folder")
    files = find_agents(find)
    if not files:
        out.fail(f"no agent files in {', '.join(str(path) for path in find)}")
        return ExitCode.REFUSED
    for path in find:
        if path.is_dir() and not any(path in (file, *file.parents) for file in files):
            out.warn(f"no agent files in {path}")
    if diff:
        return _show_repairs(out, files)
    if fix:
        _repair(out, files)
    with _no_collections():
        compiled = compile_agents(files, profile=profile)
    taken = _taken_names(compiled)
    found = [d for c in compiled for d in (*c.diagnostics, *taken.get(c.path, ()), *_ungranted(c))]
    # Why: what is wrong in a file that others extend is said once.
    diagnostics = list(dict.fromkeys(found))
    _print(out, compiled, diagnostics, "json" if as_json else format_)
    wrong = any(d.severity is Severity.ERROR for d in diagnostics)
    return ExitCode.REFUSED if wrong else ExitCode.DONE


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Let Python's collector of cycles rest.

    Why: compiling makes hardly any, and looking for them takes a third of the time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _show_repairs(out: Output, files: Sequence[Path]) -> ExitCode:
    from capuchin_yaml.cli.repairing import read_repairs
    from capuchin_yaml.terminal_text import visible

    repairs = read_repairs(files)
    for one in repairs:
        out.answer_rendered(visible(one.diff()))
    changed = sum(bool(one.repaired.done) for one in repairs)
    out.tell(f"{_files(changed)} would be changed" if changed else "nothing to repair")
    return ExitCode.REFUSED if changed else ExitCode.DONE


def _repair(out: Output, files: Sequence[Path]) -> None:
    from capuchin_yaml.cli.repairing import read_repairs

    for one in read_repairs(files):
        one.write()
        for done in one.repaired.done:
            out.tell(f"repaired {one.path}:{done.span.line}: {done.message}")


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


def _taken_names(compiled: Sequence[Compiled]) -> dict[Path, list[Diagnostic]]:
    """For each file whose agent has the name of one before it in this run, that it has."""
    from capuchin_yaml.diagnostics import Span

    first: dict[str, Path] = {}
    found: dict[Path, list[Diagnostic]] = {}
    for one in compiled:
        if one.spec is None or first.setdefault(one.spec.name, one.path) == one.path:
            continue
        message = f"the name {one.spec.name!r} is taken by {first[one.spec.name]}"
        start = Span(str(one.path), 1, 1, 1, 1)
        help_ = "names are unique in a project; write another `name`"
        found[one.path] = [Diagnostic("name-taken", Severity.ERROR, message, start, help_)]
    return found


def _ungranted(one: Compiled) -> Sequence[Diagnostic]:
    """Notes at what the agent needs and nobody granted on this machine."""
    from capuchin_yaml.policy.needs import needs_of

    if one.spec is None or one.document is None or not needs_of(one.spec):
        return ()
    from capuchin_yaml.compiler.file_needs import document_needs
    from capuchin_yaml.compiler.operator_config import read_operator_config

    needs = document_needs(one.path, one.document, one.profile)
    return needs.notes(read_operator_config().grants)


def _print(
    out: Output, compiled: Sequence[Compiled], diagnostics: Sequence[Diagnostic], format_: str
) -> None:
    from capuchin_yaml.compiler.render import FORMATS, report

    chosen = FORMATS[FORMATS.index(format_)]
    text = report(
        diagnostics,
        {path: text for c in compiled for path, text in c.sources.items()},
        chosen,
        files=[str(c.path) for c in compiled],
        edits=_edits(compiled) if chosen in ("json", "sarif") else {},
        colour=out.paints_answer,
    )
    if chosen == "json":
        out.answer_json(
            {**json.loads(text), "agents": [_agent_json(c) for c in compiled if c.spec]}
        )
        return
    if text:
        out.answer_rendered(text)
    if chosen in ("full", "concise"):
        if is_verbose():
            _print_policies(out, compiled)
        _tell_sum(out, compiled, diagnostics)


def _edits(compiled: Sequence[Compiled]) -> dict[Diagnostic, tuple[Edit, ...]]:
    """What --fix would write, by what it repairs."""
    from capuchin_yaml.compiler.fix import certain_edits
    from capuchin_yaml.compiler.load import read_bytes

    found: dict[Diagnostic, tuple[Edit, ...]] = {}
    for path in [c.path for c in compiled if c.diagnostics]:
        # What cannot be read has been reported.
        with contextlib.suppress(OSError, ValueError):
            found.update(certain_edits(read_bytes(path), path))
    return found


def _print_policies(out: Output, compiled: Sequence[Compiled]) -> None:
    from capuchin_yaml.policy.sentence import policy_sentence

    for one in compiled:
        if one.spec is not None:
            out.answer(Ink(one.spec.name, "bold"), f": {policy_sentence(one.spec)}")


def _agent_json(one: Compiled) -> dict[str, JsonValue]:
    from capuchin_yaml.policy.sentence import policy_sentence

    assert one.spec is not None
    return {
        "path": str(one.path),
        "name": one.spec.name,
        "version": one.spec.version,
        "definition_hash": one.spec.definition_hash,
        "sentence": policy_sentence(one.spec),
    }


def _tell_sum(out: Output, compiled: Sequence[Compiled], diagnostics: Sequence[Diagnostic]) -> None:
    counts = {s: sum(1 for d in diagnostics if d.severity is s) for s in Severity}
    found = ", ".join(f"{n} {s}{'s' if n > 1 else ''}" for s, n in counts.items() if n)
    out.tell(f"{_files(len(compiled))}: {found or 'no mistakes'}")
    if any(d.fix is not None for d in diagnostics):
        out.tell("--fix repairs what is certain; --diff shows it first")
