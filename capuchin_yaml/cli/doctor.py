"""`capuchin doctor`: what is missing on this machine for these agents, and what to type."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import usual_paths
from capuchin_yaml.cli.answering_model import answering_model, forced_model
from capuchin_yaml.cli.output import Colour, ExitCode, Ink, Output
from capuchin_yaml.cli.reached import found_home, reach
from capuchin_yaml.cli.up_lock import read_up
from capuchin_yaml.cli.verb import Verb, output, run_async
from capuchin_yaml.errors import CapuchinError
from capuchin_yaml.models.registry import REHEARSAL

if TYPE_CHECKING:
    from capuchin_yaml.client.home import Home
    from capuchin_yaml.spec import AgentSpec

Verdict: TypeAlias = Literal["ok", "note", "missing"]
_COLOURS: dict[Verdict, Colour] = {"ok": "green", "note": "yellow", "missing": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    """`missing` keeps these agents from running here, `note` does not."""
    text: str


@click.command(cls=Verb)
@options.paths
@options.profile
@options.as_json
def command(paths: tuple[Path, ...], profile: str | None, as_json: bool) -> ExitCode:
    """Say what is missing on this machine, and what to type.

    Looks at Python, Temporal, the agents and their packages, keys of models, the state folder,
    server, workers, the project's key and retention. Changes nothing. Ends with 1 when something is
    missing.
    """
    return run_async(_doctor(output(), paths, profile, as_json))


async def _doctor(
    out: Output, paths: tuple[Path, ...], profile: str | None, as_json: bool
) -> ExitCode:
    findings = [*_machine(), _operator(), *_agents(paths or usual_paths(), profile)]
    findings += [finding async for finding in _project()]
    if as_json:
        out.answer_json(
            {
                "v": 1,
                "findings": [
                    {"v": 1, "what": f.what, "verdict": f.verdict, "text": f.text} for f in findings
                ],
            }
        )
    else:
        for f in findings:
            out.answer(Ink(f"{f.verdict:<8}", _COLOURS[f.verdict]), f"{f.what:<10}", f.text)
    return ExitCode.REFUSED if any(f.verdict == "missing" for f in findings) else ExitCode.DONE


def _machine() -> Iterator[Finding]:
    from capuchin_yaml import __version__

    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("capuchin", "ok", f"{__version__} on Python {version}, {sys.platform}")
    from capuchin_yaml.client.dev_server import temporal_program
    from capuchin_yaml.client.target import environment_target

    try:
        target = environment_target()
        if target is not None:
            text = f"Temporal's own settings name {target.address}, namespace {target.namespace}"
            yield Finding("temporal", "ok", text)
        else:
            yield Finding("temporal", "ok", str(temporal_program()))
    except CapuchinError as error:
        yield Finding("temporal", "missing", str(error))


def _agents(paths: tuple[Path, ...], profile: str | None) -> Iterator[Finding]:
    from capuchin_yaml.compiler.load import compile_file, find_agents
    from capuchin_yaml.compiler.render import concise
    from capuchin_yaml.policy.sentence import policy_sentence
    from capuchin_yaml.tools.registry import Registry

    registry = Registry.installed()
    for problem in registry.problems():
        yield Finding("packages", "note", problem)
    files = find_agents(paths)
    if not files:
        yield Finding("agents", "note", "no agent files here; type: capuchin init")
    for path in files:
        compiled = compile_file(path, registry, profile=profile)
        for diagnostic in compiled.diagnostics:
            is_error = diagnostic.severity == "error"
            yield Finding("agents", "missing" if is_error else "note", concise(diagnostic))
        spec = compiled.spec
        if spec is None:
            continue
        yield Finding("agents", "ok", f"{spec.name} {spec.version}: {policy_sentence(spec)}")
        for package in sorted({f"{t.distribution} {t.distribution_version}" for t in spec.tools}):
            yield Finding("packages", "ok", f"{package}, used by {spec.name}")
        yield _model(spec)
        yield from _needs(spec, path, compiled.profile)
        yield from _groups(spec)


def _groups(spec: AgentSpec) -> Iterator[Finding]:
    from capuchin_yaml.compiler.operator_config import read_operator_config

    config = read_operator_config()
    for group in config.people.unknown(spec.approval.groups()):
        text = (
            f"{spec.name} asks the group {group}, which is not in {config.path}: nobody can decide"
        )
        yield Finding("groups", "missing", text)


def _needs(spec: AgentSpec, path: Path, profile: str | None) -> Iterator[Finding]:
    from capuchin_yaml.cli.agents_on_disk import ungranted
    from capuchin_yaml.policy.needs import needs_of

    needs = needs_of(spec)
    wanted = ungranted(spec, path, profile)
    if wanted:
        yield Finding("needs", "missing", wanted)
    for name in sorted({need.variable for need in needs if need.variable}):
        tools = ", ".join(need.tool for need in needs if need.variable == name)
        if os.environ.get(name) is None:
            text = f"{name} is not set; {spec.name} gives it to {tools}; type: export {name}=…"
            yield Finding("needs", "missing", text)
        else:
            yield Finding("needs", "ok", f"{name} is set; {spec.name} gives it to {tools}")


def _model(spec: AgentSpec) -> Finding:
    name, model = spec.name, spec.model
    try:
        answering = answering_model(model, settings=spec.model_settings)
    except CapuchinError as error:
        return Finding("model", "missing", f"{name}: {error}")
    if answering.notice:
        return Finding(
            "model",
            "note",
            f"{name}: {answering.notice}, so `up` rehearses and `worker` does not start; "
            f"type: export {answering.key}=…",
        )
    if answering.name == REHEARSAL and model is None and forced_model() is None:
        return Finding(
            "model",
            "note",
            f"{name} names no model, so `up` rehearses and `worker` does not start; write "
            "`model:` in its file, or set CAPUCHIN_MODEL",
        )
    return Finding("model", "ok", f"{name}: {answering.name}")


def _operator() -> Finding:
    from capuchin_yaml.compiler.operator_config import read_operator_config

    config = read_operator_config()
    if config.floor.problem:
        return Finding(
            "operator",
            "missing",
            f"{config.path} cannot be used, so every call asks: {config.floor.problem}",
        )
    if not config.exists:
        return Finding("operator", "ok", f"no floor; {config.path} is not there")
    rules = len(config.floor.rules)
    if not rules:
        return Finding("operator", "ok", f"{config.path} has no floor")
    words = "1 rule" if rules == 1 else f"{rules} rules"
    return Finding("operator", "note", f"a floor of {words} over every agent: {config.path}")


async def _project() -> AsyncIterator[Finding]:
    try:
        home = found_home()
    except CapuchinError as error:
        yield Finding("state", "missing", str(error))
        return
    if home.exists:
        yield Finding("state", "ok", f"{home.path}, logs in {home.log_dir}")
        yield _may_write(home)
    else:
        yield Finding("state", "note", f"{home.path} is not there yet; `capuchin up` makes it")
    up = read_up(home)
    if up is not None and up.is_running:
        yield Finding("up", "ok", f"runs as process {up.pid}")
    async for finding in _server(home):
        yield finding


def _may_write(home: Home) -> Finding:
    if os.access(home.path, os.W_OK):
        return Finding("state", "ok", "it can be written")
    return Finding(
        "state",
        "missing",
        f"{home.path} cannot be written; name another folder in CAPUCHIN_HOME",
    )


async def _server(home: Home) -> AsyncIterator[Finding]:
    from capuchin_yaml.client.cluster import retention_note
    from capuchin_yaml.client.same_key import refuse_another_key

    try:
        fleet = await reach(home, program="doctor")
    except CapuchinError as error:
        yield Finding("server", "note", str(error))
        return
    async with fleet:
        health = await fleet.check()
        if not health.server_up:
            yield Finding("server", "missing", health.detail)
            return
        yield Finding("server", "ok", f"answers at {health.address}")
        workers = f"{health.workers} for project {fleet.project}"
        yield Finding("workers", "ok" if health.workers else "note", health.detail or workers)
        try:
            await refuse_another_key(fleet.temporal, fleet.project)
            yield Finding("key", "ok", "no open conversation is sealed with another")
        except CapuchinError as error:
            yield Finding("key", "missing", str(error))
        try:
            note = await retention_note(fleet.temporal)
            yield Finding("retention", "note" if note else "ok", note or "everything is kept")
            for row in await fleet.blocked():
                yield Finding("blocked", "note", f"{row.conversation}: {row.failure}")
        except CapuchinError as error:
            yield Finding("retention", "note", str(error))
