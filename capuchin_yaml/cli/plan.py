"""`capuchin plan`: what an agent may do, before it does anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import compile_agent, shown_problems
from capuchin_yaml.cli.output import Colour, ExitCode, Ink, Output
from capuchin_yaml.cli.verb import Verb, output
from capuchin_yaml.spec import AgentSpec, BudgetSpec, JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.compiler.load import Compiled
    from capuchin_yaml.compiler.operator_config import OperatorConfig
    from capuchin_yaml.diagnostics import Span
    from capuchin_yaml.policy.compare import Change
    from capuchin_yaml.policy.plan import Cap, Clause, ToolPlan

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
@options.profile
@options.as_json
def command(path: Path, against: str | None, profile: str | None, as_json: bool) -> ExitCode:
    """Say what an agent may do: what runs alone, what asks, what is never done.

    The operator's floor of this machine counts. With --against, what lets more happen than before
    is shown first.
    """
    from capuchin_yaml.compiler.operator_config import read_operator_config
    from capuchin_yaml.policy.compare import changes

    out = output()
    compiled = compile_agent(path, profile)
    if compiled.spec is None:
        out.tell_rendered(shown_problems(compiled))
        return ExitCode.REFUSED
    changed: tuple[Change, ...] | None = None
    if against is not None:
        old = _old(path, against, profile)
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


def _old(path: Path, against: str, profile: str | None) -> Compiled:
    """The definition to compare with: a file, else the same file at a git revision.

    A profile that it did not have yet is left out.

    Raises:
        click.BadParameter: it is neither.
    """
    from capuchin_yaml.compiler.load import compile_file

    old = Path(against)
    if not old.is_file():
        return _at_revision(path, against, profile)
    compiled = compile_file(old, profile=profile)
    has_it = profile is None or profile in compiled.profiles
    return compiled if has_it else compile_file(old)


def _at_revision(path: Path, revision: str, profile: str | None) -> Compiled:
    from capuchin_yaml.cli.git_folder import GitFolder
    from capuchin_yaml.compiler.load import compile_bytes

    hint = "'--against'"
    if revision.startswith("-"):
        raise click.BadParameter(f"{revision!r} is no file and no git revision", param_hint=hint)
    folder = GitFolder(path.parent, revision)
    try:
        data = folder.read(path)
    except OSError as error:
        raise click.BadParameter(
            f"{revision!r} is no file, and as a git revision: {error.strerror}", param_hint=hint
        ) from None
    compiled = compile_bytes(data, path, profile=profile, folder=folder)
    if profile is not None and profile not in compiled.profiles:
        return compile_bytes(data, path, folder=folder)
    return compiled


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
    for choice in spec.model_settings.fallback:
        out.answer(f"  while it cannot answer, {choice.name} is asked")
    if spec.budget is not None:
        out.answer(f"  a budget of {_budget(spec.budget)} is recorded, and not kept yet")
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
    place = rule_place(compiled, source)
    if place is not None:
        where = "" if place.path == str(compiled.path) else f" of {place.path}"
        source = f"{source}, line {place.line}{where}"
    elif source.startswith("floor"):
        source = f"{source} of the operator"
    reason = f": {clause.reason}" if clause.reason else ""
    return f"{words}{when} ({source}){reason}"


def rule_place(compiled: Compiled, source: str) -> Span | None:
    """Where `rule 2` stands; None for anything else that decides."""
    kind, _, place = source.partition(" ")
    if kind != "rule" or not place.isdigit() or compiled.document is None:
        return None
    return compiled.document.value_span(("approval", "rules", int(place) - 1))


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


def _budget(budget: BudgetSpec) -> str:
    parts = [f"${budget.max_usd}"] if budget.max_usd is not None else []
    parts += [f"{budget.max_tokens} tokens"] if budget.max_tokens is not None else []
    then = {"ask": "then a person says", "stop": "then it stops", "warn": "then it warns"}
    return f"{' and '.join(parts)} per {budget.per}, {then[budget.on_exceed]}"


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
        "fallback": [choice.name for choice in spec.model_settings.fallback],
        "budget": spec.to_json().get("budget"),
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
