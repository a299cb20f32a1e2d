"""A `*.policy.yaml` file: calls of one agent and the verdicts that they must get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from capuchin_yaml.compiler.check import check_whole
from capuchin_yaml.compiler.document import Document, read_document
from capuchin_yaml.compiler.load import Compiled, compile_file
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.compiler.wording import either, shown
from capuchin_yaml.diagnostics import Diagnostic, Severity, Span, in_file_order
from capuchin_yaml.policy.judge import CallContext, offline_verdict
from capuchin_yaml.policy.rules import Facts, is_about
from capuchin_yaml.schema_files import read_schema
from capuchin_yaml.spec import AgentSpec, JsonValue, ToolSpec
from capuchin_yaml.tally import Tally

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_A_TIME = "write now: 2030-01-31T12:00:00+00:00"
"""When a call is made that names no time."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call and what must come of it."""

    span: Span
    tool: str
    """As written."""
    arguments: Mapping[str, JsonValue]
    expect: str
    by: str | None
    tally: Tally
    untrusted: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one call was judged."""

    case: Case
    tool: ToolSpec
    verdict: Mapping[str, JsonValue]

    @property
    def passed(self) -> bool:
        """Whether the verdict, and who decided where that is asked, are as expected."""
        decided = self.case.by is None or self.case.by == self.verdict["decided_by"]
        return bool(self.verdict["verdict"] == self.case.expect and decided)


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """What one file of cases says and how it went."""

    path: Path
    source: str
    diagnostics: tuple[Diagnostic, ...]
    agent: Compiled | None
    results: tuple[CaseResult, ...] = ()
    untested_tools: tuple[str, ...] = ()
    untested_rules: tuple[int, ...] = field(default=())
    """Places of rules, from 1, that decided no call."""

    @property
    def passed(self) -> bool:
        """Whether the file could be read and every call got its verdict."""
        return bool(self.results) and all(result.passed for result in self.results)


def run_policy_test(
    path: Path, registry: ToolSource | None = None, *, profile: str | None = None
) -> PolicyTest:
    """Read one file of cases and judge every call; never raises for what is wrong in files.

    The operator's floor is left out, so that the outcome is the same on every machine.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        where = Span(str(path), 1, 1, 1, 1)
        message = f"the policy test cannot be read: {error.strerror}"
        problem = Diagnostic("unreadable", Severity.ERROR, message, where)
        return PolicyTest(path, "", (problem,), None)
    document = read_document(str(path), data)
    checked = check_whole(document, read_schema("policy.v1"), "a policy test")
    reading = Reading(document, checked)
    agent = _agent(reading, path, registry, profile)
    cases = _cases(reading, document, agent.spec if agent is not None else None)
    found = in_file_order([*document.diagnostics, *checked.diagnostics, *reading.problems])
    source = document.source.text
    if agent is None or agent.spec is None or any(d.severity is Severity.ERROR for d in found):
        return PolicyTest(path, source, found, agent)
    variables, injected = _given(reading, "variables"), _given(reading, "injected")
    filled = {n: v.default for n, v in agent.spec.variables.items() if v.default is not None}
    results = tuple(
        _judged(agent.spec, case, tool, {**filled, **variables}, injected) for case, tool in cases
    )
    return PolicyTest(
        path,
        source,
        found,
        agent,
        results,
        _untested_tools(agent.spec, results),
        _untested_rules(agent.spec, results),
    )


def _agent(
    reading: Reading, path: Path, registry: ToolSource | None, profile: str | None
) -> Compiled | None:
    named = reading.text(("agent",))
    if named is None:
        return None
    file = path.parent / named
    if not file.is_file():
        reading.error(
            "file-missing",
            f"agent names a file that is not there: {shown(named)}",
            ("agent",),
            "write agent: agent.yaml, seen from the folder of this file",
        )
        return None
    agent = compile_file(file, registry, profile=profile)
    if profile is not None and not agent.profiles and agent.spec is not None:
        reading.error(
            "unknown-profile",
            f"{shown(named)} has no profile {shown(profile)}",
            ("agent",),
            "leave out --profile",
        )
    if agent.spec is None:
        reading.error(
            "agent-has-mistakes",
            f"{shown(named)} has mistakes of its own",
            ("agent",),
            f"capuchin validate {file}",
        )
    return agent


def _cases(
    reading: Reading, document: Document, spec: AgentSpec | None
) -> list[tuple[Case, ToolSpec]]:
    block = document.node(("calls",))
    found = []
    for i in range(len(block.items) if block is not None and block.kind == "list" else 0):
        path = ("calls", i)
        name, expect = reading.text((*path, "tool")), reading.text((*path, "expect"))
        if name is None or expect is None or spec is None:
            continue
        tool = _tool(reading, (*path, "tool"), name, spec)
        by = reading.text((*path, "by"))
        place = int(by.removeprefix("rule ")) if by and by.startswith("rule ") else 0
        if place > len(spec.approval.rules):
            reading.error(
                "unknown-rule",
                f"the agent has no rule {place}; it has {len(spec.approval.rules)}",
                (*path, "by"),
                "write by: rule 1" if spec.approval.rules else "remove the line",
            )
        if tool is None:
            continue
        total = reading.node((*path, "total"))
        arguments = reading.node((*path, "args"))
        untrusted = reading.node((*path, "untrusted"))
        when = reading.text((*path, "now"))
        case = Case(
            span=document.value_span((*path, "tool")),
            tool=name,
            arguments=dict(arguments.value) if arguments is not None else {},
            expect=expect,
            by=by,
            tally=Tally(
                reading.whole((*path, "calls"), 0),
                dict(total.value) if total is not None else {},
            ),
            untrusted=bool(untrusted.value) if untrusted is not None else False,
            now=_time(reading, (*path, "now"), when),
        )
        found.append((case, tool))
    return found


def _tool(
    reading: Reading, path: tuple[str | int, ...], name: str, spec: AgentSpec
) -> ToolSpec | None:
    tool = find_tool(spec, name)
    if tool is None:
        known = {n for t in spec.tools for n in (t.alias, t.identity)}
        meant = nearest(name, known)
        reading.error(
            "names-no-tool",
            f"{shown(name)} is no tool of this agent",
            path,
            f"did you mean {meant!r}?"
            if meant is not None
            else f"write {either(sorted(known)[:8]) or 'a tool that the agent has'}",
        )
    return tool


def find_tool(spec: AgentSpec, name: str) -> ToolSpec | None:
    """The tool that an alias or an identity means, the first of several."""
    key = "identity" if "." in name else "alias"
    return next((tool for tool in spec.tools if getattr(tool, key) == name), None)


def _time(reading: Reading, path: tuple[str | int, ...], text: str | None) -> datetime:
    try:
        return datetime.fromisoformat(text) if text is not None else NOON
    except ValueError:
        reading.error("bad-value", f"{shown(text or '')} is no time", path, _A_TIME)
        return NOON


def _given(reading: Reading, key: str) -> dict[str, JsonValue]:
    node = reading.node((key,))
    return dict(node.value) if node is not None else {}


def _judged(
    spec: AgentSpec,
    case: Case,
    tool: ToolSpec,
    variables: Mapping[str, JsonValue],
    injected: Mapping[str, JsonValue],
) -> CaseResult:
    context = CallContext(
        injected,
        Facts(case.now, variables, injected, case.untrusted),
        {tool.identity: case.tally},
    )
    return CaseResult(case, tool, offline_verdict(spec, tool, case.arguments, context))


def _untested_tools(spec: AgentSpec, results: tuple[CaseResult, ...]) -> tuple[str, ...]:
    tested = {result.tool.alias for result in results}
    return tuple(tool.identity for tool in spec.tools if tool.alias not in tested)


def _untested_rules(spec: AgentSpec, results: tuple[CaseResult, ...]) -> tuple[int, ...]:
    decided = {str(result.verdict["decided_by"]) for result in results}
    return tuple(
        place
        for place, rule in enumerate(spec.approval.rules, 1)
        if f"rule {place}" not in decided and any(is_about(rule, tool) for tool in spec.tools)
    )
