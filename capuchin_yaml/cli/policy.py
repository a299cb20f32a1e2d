"""`capuchin policy`: the policy of an agent, proved offline."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capuchin_yaml.cli import options
from capuchin_yaml.cli.agents_on_disk import compile_agent, shown_problems
from capuchin_yaml.cli.output import Colour, ExitCode, Ink, Output
from capuchin_yaml.cli.verb import VerbGroup, output
from capuchin_yaml.spec import AgentSpec, JsonValue

if TYPE_CHECKING:
    from capuchin_yaml.compiler.load import Compiled
    from capuchin_yaml.compiler.policy_cases import CaseResult, PolicyTest

_COLOURS: dict[str, Colour] = {
    "allow": "green",
    "ask": "yellow",
    "deny": "red",
    "invalid": "dim",
}


@click.group(cls=VerbGroup)
def command() -> None:
    """Prove what an agent's policy says of calls, without running any."""


@command.command("test")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.profile
@options.as_json
def test_command(files: tuple[Path, ...], profile: str | None, as_json: bool) -> ExitCode:
    """Judge the calls of policy test files and compare the verdicts.

    FILES are `*.policy.yaml` files. The operator's floor is left out, so the outcome is the same
    on every machine. Tools and rules that no call reaches are named.
    """
    from capuchin_yaml.compiler.policy_cases import run_policy_test

    out = output()
    tests = [run_policy_test(path, profile=profile) for path in files]
    if as_json:
        out.answer_json({"v": 1, "passed": all(t.passed for t in tests), "files": _files(tests)})
    else:
        for test in tests:
            _print_test(out, test)
        _tell_sum(out, tests)
    return ExitCode.DONE if all(test.passed for test in tests) else ExitCode.REFUSED


@command.command("explain")
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("tool")
@click.argument("arguments", metavar="ARGS", default="{}")
@options.start_values
@click.option("--calls", type=click.IntRange(0), default=0, help="Calls of this tool so far.")
@click.option("--untrusted", is_flag=True, help="The model has read what a tool returned.")
@options.profile
@options.as_json
def explain_command(
    path: Path,
    tool: str,
    arguments: str,
    variables: dict[str, JsonValue],
    injected: dict[str, JsonValue],
    calls: int,
    untrusted: bool,
    profile: str | None,
    as_json: bool,
) -> ExitCode:
    """Say what would become of one call, and why.

    TOOL is an alias or an identity, ARGS the arguments as JSON. The operator's floor of this
    machine counts.
    """
    out = output()
    compiled = compile_agent(path, profile)
    if compiled.spec is None:
        out.tell_rendered(shown_problems(compiled))
        return ExitCode.REFUSED
    given = _arguments(arguments)
    facts = _Given(dict(variables), dict(injected), calls, untrusted)
    verdict = _verdict(compiled.spec, tool, given, facts)
    if as_json:
        out.answer_json({"v": 1, **_verdict_json(compiled, verdict)})
    else:
        _print_verdict(out, compiled, verdict)
    return ExitCode.DONE


class _Given:
    """What the conversation is like."""

    def __init__(
        self,
        variables: dict[str, JsonValue],
        injected: dict[str, JsonValue],
        calls: int,
        untrusted: bool,
    ) -> None:
        self.variables = variables
        self.injected = injected
        self.calls = calls
        self.untrusted = untrusted


def _arguments(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no JSON: {error}", param_hint="'ARGS'") from None


def _verdict(
    spec: AgentSpec, name: str, arguments: JsonValue, given: _Given
) -> dict[str, JsonValue]:
    from capuchin_yaml.compiler.operator_config import read_operator_config
    from capuchin_yaml.compiler.policy_cases import find_tool
    from capuchin_yaml.policy.judge import CallContext, offline_verdict
    from capuchin_yaml.policy.rules import Facts
    from capuchin_yaml.tally import Tally

    tool = find_tool(spec, name)
    if tool is None:
        names = ", ".join(t.alias for t in spec.tools) or "none"
        raise click.BadParameter(
            f"{name!r} is no tool of {spec.name}; its tools are: {names}", param_hint="'TOOL'"
        )
    filled = {n: v.default for n, v in spec.variables.items() if v.default is not None}
    facts = Facts(datetime.now(UTC), {**filled, **given.variables}, given.injected, given.untrusted)
    floor = read_operator_config().floor
    context = CallContext(given.injected, facts, {tool.identity: Tally(given.calls)}, floor)
    return offline_verdict(spec, tool, arguments, context)


def _verdict_json(compiled: Compiled, verdict: dict[str, JsonValue]) -> dict[str, JsonValue]:
    from capuchin_yaml.cli.plan import rule_place

    place = rule_place(compiled, str(verdict["decided_by"]))
    keys = ("tool", "verdict", "decided_by", "reason", "arguments", "sources")
    return {
        **{key: verdict[key] for key in keys},
        "path": place.path if place is not None else str(compiled.path),
        "line": place.line if place is not None else None,
    }


def _print_verdict(out: Output, compiled: Compiled, verdict: dict[str, JsonValue]) -> None:
    from capuchin_yaml.cli.plan import rule_place

    word = str(verdict["verdict"])
    out.answer(Ink(word, _COLOURS[word]), f": {verdict['tool']} {verdict['arguments']}".rstrip())
    source = str(verdict["decided_by"])
    place = rule_place(compiled, source)
    where = f"{source} ({place.path}:{place.line})" if place is not None else source
    out.answer(f"  decided by {where}: {verdict['reason']}")
    for said in verdict["sources"]:
        if said["source"] != source:
            out.answer(f"  {said['source']} says {said['answer']}: {said['reason']}")


def _print_test(out: Output, test: PolicyTest) -> None:
    from capuchin_yaml.compiler.render import report

    text = report(test.diagnostics, {str(test.path): test.source}, "full")
    if text:
        out.tell_rendered(text)
    for result in test.results:
        _print_result(out, test, result)
    if test.untested_tools:
        out.answer(Ink("untested", "yellow"), f" tools: {', '.join(test.untested_tools)}")
    if test.untested_rules:
        places = ", ".join(str(place) for place in test.untested_rules)
        out.answer(Ink("untested", "yellow"), f" rules: {places} of {_agent_path(test)}")


def _print_result(out: Output, test: PolicyTest, result: CaseResult) -> None:
    case, verdict = result.case, str(result.verdict["verdict"])
    where = f"{test.path}:{case.span.line}"
    arguments = json.dumps(dict(case.arguments), ensure_ascii=False, default=str)
    call = f"{case.tool} {arguments}"
    if result.passed:
        out.answer(Ink("ok  ", "green"), f" {where}: {call}: {verdict}")
        return
    wanted = case.expect + (f" by {case.by}" if case.by else "")
    out.answer(
        Ink("FAIL", "red"),
        f" {where}: {call}: expected {wanted}, got {verdict} by {result.verdict['decided_by']}: "
        f"{result.verdict['reason']}",
    )


def _tell_sum(out: Output, tests: list[PolicyTest]) -> None:
    results = [result for test in tests for result in test.results]
    failed = sum(1 for result in results if not result.passed)
    unread = sum(1 for test in tests if not test.results)
    parts = [f"{len(results) - failed} of {len(results)} calls as expected"]
    if unread:
        parts.append(f"{unread} file{'s' if unread > 1 else ''} not run")
    out.tell("; ".join(parts))


def _agent_path(test: PolicyTest) -> str:
    return str(test.agent.path) if test.agent is not None else ""


def _files(tests: list[PolicyTest]) -> list[JsonValue]:
    return [
        {
            "v": 1,
            "path": str(test.path),
            "agent": _agent_path(test),
            "passed": test.passed,
            "problems": [d.message for d in test.diagnostics],
            "calls": [
                {
                    "v": 1,
                    "line": r.case.span.line,
                    "tool": r.tool.identity,
                    "args": dict(r.case.arguments),
                    "expect": r.case.expect,
                    "verdict": r.verdict["verdict"],
                    "decided_by": r.verdict["decided_by"],
                    "reason": r.verdict["reason"],
                    "passed": r.passed,
                }
                for r in test.results
            ],
            "untested_tools": list(test.untested_tools),
            "untested_rules": list(test.untested_rules),
        }
        for test in tests
    ]
