"""`approval.rules` of a checked file: each rule type-checked against the tools it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from capuchin_yaml.compiler.bind_terms import check_terms, needless_terms, read_terms
from capuchin_yaml.compiler.bind_tools import ToolUse, ToolUses
from capuchin_yaml.compiler.document import Node, Path
from capuchin_yaml.compiler.nearest import certain, nearest
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.scalar_positions import ScalarPositions
from capuchin_yaml.compiler.wording import either, shown
from capuchin_yaml.diagnostics import Annotation
from capuchin_yaml.spec import RuleAnswer, RuleSpec, ToolSpec, VariableSpec

RULES: Path = ("approval", "rules")
_ANSWERS: Mapping[str, RuleAnswer] = {"allow": "allow", "ask": "ask", "deny": "deny"}


def bind_rules(
    reading: Reading,
    tools: Sequence[ToolSpec],
    uses: ToolUses,
    variables: Mapping[str, VariableSpec],
    injected: tuple[str, ...],
) -> tuple[RuleSpec, ...]:
    """The rules in the order of the file."""
    block = reading.node(RULES) or reading.document.node(RULES)
    if block is None or block.kind != "list":
        return ()
    binder = _RuleBinder(reading, tools, uses, variables, injected)
    for i in range(len(block.items)):
        if reading.document.node((*RULES, i, "then")) is not None:
            binder.bind((*RULES, i))
    binder.report_hidden()
    return tuple(binder.rules)


def _one_of(known: Sequence[str]) -> str | None:
    return f"write {either(known[:8])}" if known else None


class _RuleBinder:
    def __init__(
        self,
        reading: Reading,
        tools: Sequence[ToolSpec],
        uses: ToolUses,
        variables: Mapping[str, VariableSpec],
        injected: tuple[str, ...],
    ) -> None:
        self._reading = reading
        self._tools = tools
        self._uses = uses
        self._variables = variables
        self._injected = injected
        self._known_all = len(tools) == len(uses.uses) and uses.complete
        self.rules: list[RuleSpec] = []
        self._constants: list[bool | None] = []
        self._paths: list[Path] = []

    def bind(self, path: Path) -> None:
        """Read one rule and report what is wrong with it."""
        then = _ANSWERS.get(self._reading.text((*path, "then")) or "", "deny")
        name = self._reading.text((*path, "tool"))
        means = self._means(path, name, tightens=then != "allow")
        when, runs, constant = self._condition(path, name, means)
        terms = read_terms(self._reading, path)
        if then == "ask":
            check_terms(self._reading, path, terms)
        else:
            needless_terms(self._reading, path, then)
        self.rules.append(
            replace(
                terms,
                then=then,
                tool=name,
                when=when,
                reason=self._reading.text((*path, "reason")) or "",
                runs=runs if runs != when else None,
            )
        )
        self._constants.append(constant)
        self._paths.append(path)

    def report_hidden(self) -> None:
        """Warn of rules that can never decide, when all is known that they depend on."""
        if not self._known_all or not self._reading.checked.usable(RULES):
            return
        from capuchin_yaml.policy.rule_reach import hidden_by

        for i, j in hidden_by(self.rules, self._constants, self._tools).items():
            first = self._where(self._paths[j])
            self._reading.warning(
                "rule-hidden",
                f"rule {i + 1} never decides: rule {j + 1} answers every call that it is about",
                self._where(self._paths[i]).span,
                "remove it, or put it before the other"
                if self.rules[j].then != "deny"
                else "remove it, or narrow the other",
                Annotation(first.span, "this rule answers first"),
            )

    def _where(self, path: Path) -> Node:
        for key in ("when", "tool", "then"):
            node = self._reading.document.node((*path, key))
            if node is not None:
                return node
        node = self._reading.document.node(path)
        assert node is not None
        return node

    def _means(self, path: Path, name: str | None, *, tightens: bool) -> list[ToolUse]:
        """The uses that the rule is about; a rule about none is reported."""
        uses = list(self._uses.uses)
        if name is None:
            return uses
        if name.endswith(".*"):
            means = [use for use in uses if use.identity.startswith(name[:-1])]
        elif "." in name:
            means = [use for use in uses if use.identity == name]
        else:
            means = [use for use in uses if use.alias == name]
        if not means and self._uses.complete:
            known = {n for use in uses for n in (use.identity, use.alias)}
            known |= {f"{use.identity.partition('.')[0]}.*" for use in uses}
            meant = nearest(name, known)
            self._reading.error(
                "names-no-tool",
                f"the rule can never match: {shown(name)} is no tool of this agent",
                (*path, "tool"),
                f"did you mean {meant!r}?" if meant else "add it to tools, or remove the rule",
                fix=certain(name, known) if tightens else None,
            )
        return means

    def _condition(
        self, path: Path, name: str | None, means: Sequence[ToolUse]
    ) -> tuple[str | None, str | None, bool | None]:
        node = self._reading.node((*path, "when"))
        if node is None:
            return None, None, None
        if not isinstance(node.value, str):
            return None, None, None
        tools = [
            tool
            for use in means
            for tool in self._tools
            if (tool.identity, tool.alias) == (use.identity, use.alias)
        ]
        if (name is not None or self._uses.uses) and (not means or len(tools) < len(means)):
            # The types are not known; what is wrong with the tools is reported already.
            return node.value, node.value, None
        # Why: CEL is loaded only for a file that has rules.
        from capuchin_yaml.policy.cel_types import scope_of
        from capuchin_yaml.policy.rule_check import check_condition
        from capuchin_yaml.policy.rule_reach import never_matches

        scope = scope_of(tools, self._variables, self._injected)
        checked = check_condition(node.value, scope)
        positions = ScalarPositions(self._reading.document.source_of(node), node)
        about = self._about(path, name, means)
        for problem in checked.problems:
            help_ = problem.help
            if help_ is None and problem.word:
                meant = nearest(problem.word, problem.known)
                help_ = f"did you mean {meant!r}?" if meant is not None else _one_of(problem.known)
            report = self._reading.warning if problem.is_warning else self._reading.error
            report(
                problem.id,
                problem.message,
                positions.span(problem.start, problem.end),
                help_,
                *about,
            )
        if not any(not problem.is_warning for problem in checked.problems):
            aliases = [tool.alias for tool in tools]
            reason = never_matches(node.value, checked.constant, scope, aliases)
            if reason is not None:
                self._reading.error(
                    "rule-never-matches",
                    f"the rule can never match: {reason}",
                    node.span,
                    "remove the rule, or correct its condition",
                )
                return node.value, checked.runs, False
        return node.value, checked.runs, checked.constant

    def _about(
        self, path: Path, name: str | None, means: Sequence[ToolUse]
    ) -> tuple[Annotation, ...]:
        """The tool whose arguments the condition is checked against, where it is one."""
        if name is None or len(means) != 1:
            return ()
        return (Annotation(means[0].span, "the tool that the rule is about"),)
