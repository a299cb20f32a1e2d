"""`capuchin plan`: what an agent may do, before it does anything."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import shown_problems
from capuchin_yaml.cli.output import Colour, ExitCode, Ink, Output
from capuchin_yaml.cli.verb import Verb, output
from capuchin_yaml.spec import AgentSpec, JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.compiler.load import Compiled
    from capuchin_yaml.compiler.operator_config import OperatorConfig
    from capuchin_yaml.policy.compare import Change
    from capuchin_yaml.policy.plan import Cap, Clause, ToolPlan

GIT_S = 30.0
_COURSES: tuple[tuple[str, str, Colour], ...] = (
    ("runs", "runs alone", "yellow"),
    ("depends", "depends on a rule", "cyan"),
    ("asks", "asks", "green"),
    ("never", "never", "dim"),
)
_KINDS: dict[str, tuple[str, Colour]] = {
    "loosened": ("LOOSENED", "red"),
    "added": ("added", "yellow"),
    "removed": ("removed", "dim"),
    "tightened": ("tightened", "green"),
    "changed": ("changed", "dim"),
}


@click.command(cls=Verb)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--against",
    metavar="OLD",
    help="Say what changed since this file, or since this git revision of the same file.",
)
@options.as_json
def command(path: Path, against: str | None, as_json: bool) -> ExitCode:
    """Say what an agent may do: what runs alone, what asks, what is never done.

    The operator's floor of this machine counts. With --against, what lets more happen than before
    is shown first.
    """
    from capuchin_yaml.compiler.load import compile_file
    from capuchin_yaml.compiler.operator_config import read_operator_config
    from capuchin_yaml.policy.compare import changes

    out = output()
    compiled = compile_file(path)
    if compiled.spec is None:
        out.tell_rendered(shown_problems(compiled))
        return ExitCode.REFUSED
    changed: tuple[Change, ...] | None = None
    if against is not None:
        old = _old(path, against)
        if old.spec is None:
            out.tell_rendered(shown_problems(old))
            out.fail(f"{against} does not compile, so there is nothing to compare with")
            return ExitCode.REFUSED
        changed = changes(old.spec, compiled.spec)
    operator = read_operator_config()
    if as_json:
        out.answer_json(_json(compiled.spec, operator, changed))
    else:
        if changed is not None:
            _print_changes(out, against or "", changed)
        _print(out, compiled, compiled.spec, operator)
    return ExitCode.DONE


def _old(path: Path, against: str) -> Compiled:
    """The definition to compare with: a file, else the same file at a git revision.

    Raises:
        click.BadParameter: it is neither.
    """
    from capuchin_yaml.compiler.load import compile_bytes, compile_file

    if Path(against).is_file():
        return compile_file(Path(against))
    hint = "'--against'"
    if against.startswith("-"):
        raise click.BadParameter(f"{against!r} is no file and no git revision", param_hint=hint)
    # Why the `./`: git then takes the name from the folder that -C names.
    asked = ["git", "-C", str(path.parent), "show", f"{against}:./{path.name}"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.BadParameter(
            f"{against!r} is no file, and git cannot be asked: {error}", param_hint=hint
        ) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = lines[0] if lines else "git said nothing"
        raise click.BadParameter(
            f"{against!r} is no file, and as a git revision: {said}", param_hint=hint
        )
    return compile_bytes(done.stdout, path)


def _print_changes(out: Output, against: str, changed: tuple[Change, ...]) -> None:
    if not changed:
        out.answer(f"nothing changed since {against}")
    else:
        out.answer(Ink(f"since {against}", "bold"))
    for change in changed:
        word, colour = _KINDS[change.kind]
        out.answer("  ", Ink(f"{word:<10}", colour), f"{change.what}: {change.text}")
    out.answer("")


def _print(out: Output, compiled: Compiled, spec: AgentSpec, operator: OperatorConfig) -> None:
    from capuchin_yaml.policy.needs import is_granted, needs_of
    from capuchin_yaml.policy.plan import tool_plans
    from capuchin_yaml.policy.sentence import policy_sentence

    out.answer(Ink(spec.name, "bold"), f" {spec.version}, definition {spec.definition_hash[:12]}")
    out.answer(f"  {policy_sentence(spec)}")
    out.answer(
        f"  model {spec.model or 'of the worker'}; for one message at most "
        f"{spec.limits.max_steps} model calls and {spec.limits.max_tool_calls} tool calls, "
        "then a person says whether it goes on"
    )
    out.answer(f"  an approval {_waiting(spec)}")
    needs = needs_of(spec)
    granted = is_granted(spec.name, needs, operator.grants)
    for need in needs:
        out.answer(f"  needs {need}", "" if granted else " (not granted on this machine)")
    plans = tool_plans(spec, operator.floor)
    for course, words, colour in _COURSES:
        found = [plan for plan in plans if plan.course == course]
        if found:
            out.answer("")
            out.answer(Ink(words, colour))
        for plan in found:
            _print_tool(out, compiled, plan)
    if operator.exists:
        out.answer("")
        out.answer(f"the operator's floor of this machine counts: {operator.path}")
    if operator.floor.problem:
        out.warn(f"it cannot be used, so every call asks: {operator.floor.problem}")


def _print_tool(out: Output, compiled: Compiled, plan: ToolPlan) -> None:
    tool = plan.tool
    name = tool.identity
    if tool.alias != name.partition(".")[2]:
        name += f" (as {tool.alias})"
    repeat = "" if tool.repeatable else ", at most once"
    out.answer(
        "  ",
        Ink(name, "bold"),
        f": {tool.effect}{repeat}, {tool.distribution} {tool.distribution_version}",
    )
    for clause in plan.clauses:
        out.answer(f"    {_clause(compiled, clause)}")
    for cap in plan.caps:
        out.answer(f"    at most {_cap(cap)}")


def _clause(compiled: Compiled, clause: Clause) -> str:
    words = {"allow": "runs", "ask": "asks", "deny": "refused"}[clause.answer]
    when = f" when {' '.join(clause.when.split())}" if clause.when else ""
    source = clause.source
    line = rule_line(compiled, source)
    if line is not None:
        source = f"{source}, line {line}"
    elif source.startswith("floor"):
        source = f"{source} of the operator"
    reason = f": {clause.reason}" if clause.reason else ""
    return f"{words}{when} ({source}){reason}"


def rule_line(compiled: Compiled, source: str) -> int | None:
    """The line of `rule 2` in the agent's file; None for anything else that decides."""
    from capuchin_yaml.compiler.document import read_document

    kind, _, place = source.partition(" ")
    if kind != "rule" or not place.isdigit():
        return None
    document = read_document(str(compiled.path), compiled.source.encode())
    return document.value_span(("approval", "rules", int(place) - 1)).line


def _cap(cap: Cap) -> str:
    per = "in one call" if cap.per == "call" else "in a conversation"
    return f"{cap.most} {cap.what} {per} ({cap.source})"


def _waiting(spec: AgentSpec) -> str:
    approval = spec.approval
    who = approval.approvers or "anyone"
    if approval.quorum > 1:
        who = (
            f"{approval.quorum} people of {who}"
            if approval.approvers
            else f"{approval.quorum} people"
        )
    if approval.timeout_s is None:
        return f"waits for {who}, for ever"
    then = {"deny": "is refused", "wait": "waits on", "close": "ends the conversation"}
    then["escalate"] = f"for {approval.escalate_to} as well, then is refused"
    return f"waits {_duration(approval.timeout_s)} for {who}, then {then[approval.on_timeout]}"


def _duration(seconds: float) -> str:
    """The time as an agent file writes it."""
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (left, "s")) if n]
    return "".join(parts) or "0s"


def _json(
    spec: AgentSpec, operator: OperatorConfig, changed: tuple[Change, ...] | None
) -> dict[str, JsonValue]:
    from capuchin_yaml.policy.needs import needs_of
    from capuchin_yaml.policy.plan import tool_plan_json, tool_plans
    from capuchin_yaml.policy.sentence import policy_sentence

    document: dict[str, JsonValue] = {
        "v": 1,
        "agent": spec.name,
        "version": spec.version,
        "definition_hash": spec.definition_hash,
        "sentence": policy_sentence(spec),
        "model": spec.model,
        "limits": spec.to_json()["limits"],
        "approval": {"timeout_s": spec.approval.timeout_s, "on_timeout": spec.approval.on_timeout},
        "tools": [{"v": 1, **tool_plan_json(p)} for p in tool_plans(spec, operator.floor)],
        "needs": [str(need) for need in needs_of(spec)],
        "floor": {
            "path": str(operator.path),
            "rules": len(operator.floor.rules),
            "problem": operator.floor.problem,
        },
    }
    if changed is not None:
        document["changes"] = [
            {"v": 1, "kind": c.kind, "what": c.what, "text": c.text} for c in changed
        ]
    return document
