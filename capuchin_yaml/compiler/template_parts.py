"""Parts of a template that fail whatever the values are, also where no rendering comes by.

A rendering with made-up values sees one branch of each `if`. Here every expression is worked out
alone, in the same sandbox, with several values of each variable's type. What is reported fails
with all of them: the types do not go together, or no variable has a part in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, MappingProxyType
from typing import TypeVar

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError

from capuchin_yaml.compiler.budget import WORK, Budget, TooMuchWork
from capuchin_yaml.compiler.sandbox import GLOBALS, PaidFor, PromptSandbox
from capuchin_yaml.compiler.template_run import FILE_NAME, render_problem, rendered
from capuchin_yaml.compiler.template_tags import opening_before
from capuchin_yaml.compiler.template_walk import TemplateProblem
from capuchin_yaml.spec import JsonValue, VariableSpec, VariableType

_Node = TypeVar("_Node", bound=nodes.Node)

_SAMPLES: Mapping[VariableType, Sequence[JsonValue]] = MappingProxyType(
    {
        "string": ("x", "7", "-1.5", "two words"),
        "integer": (1, 0, -3, 70),
        "number": (1.5, 0, -3, 70.25),
        "boolean": (True, False),
    }
)
_ONLY_A_NAME = re.compile(r"\{\{[-+]?\s*[A-Za-z_]\w*\s*[-+]?\}\}")
_RUNS = 4
_MOST_PARTS = 200
_MOST_FOUND = 20
_LITTLE_WORK = 20_000
_BRANCHING = (nodes.CondExpr, nodes.And, nodes.Or)
_SIMPLE = (nodes.Name, nodes.Const, nodes.TemplateData)


def part_problems(
    source: str, variables: Mapping[str, VariableSpec], known: Collection[int] = ()
) -> tuple[TemplateProblem, ...]:
    """The mistakes that stand in the template for certain; `source` is a template that parses.

    Tags with a mistake at one of the places `known` are left out.
    """
    rest = _ONLY_A_NAME.sub("", source)
    if "{{" not in rest and "{%" not in rest:
        return ()  # as most prompts are
    values = {
        name: list(variable.enum[:_RUNS]) or list(_SAMPLES[variable.type])
        for name, variable in variables.items()
    }
    tags = {opening_before(source, place) for place in known}
    found = _problems(source, json.dumps(values))
    return tuple(p for p in found if opening_before(source, p.start) not in tags)


@lru_cache(maxsize=64)
def _problems(source: str, variables: str) -> tuple[TemplateProblem, ...]:
    values: dict[str, list[JsonValue]] = json.loads(variables)
    try:
        tree = PromptSandbox(Budget()).parse(source)
        bound = {n.name for n in tree.find_all(nodes.Name) if n.ctx != "load"} | {"loop"}
        names = values.keys() - bound
        parts = list(zip(range(_MOST_PARTS), _parts(tree, names), strict=False))
    except (TemplateError, RecursionError, MemoryError, ValueError):
        return ()  # it is reported already
    found: dict[int, TemplateProblem] = {}
    for _, (statement, used) in parts:
        if len(found) == _MOST_FOUND:
            break
        problem = _problem(source, statement, {name: values[name] for name in used})
        if problem is not None:
            found.setdefault(problem.start, problem)
    return tuple(found.values())


def _parts(tree: nodes.Node, names: Collection[str]) -> Iterator[tuple[nodes.Node, set[str]]]:
    """Each expression in the statement that uses it, with the variables in it."""
    for child in tree.iter_child_nodes():
        if not isinstance(child, nodes.Expr):
            yield from _parts(child, names)
            continue
        looped = isinstance(tree, nodes.For) and child is tree.iter
        alone = isinstance(child, nodes.Name) and looped and child.name in names
        for part in [child] if alone else _straight(child, names):
            used = {n.name for n in _with_inner(part, nodes.Name)} - GLOBALS
            line = part.lineno
            if part is child and isinstance(tree, nodes.Output):
                yield nodes.Output([part], lineno=line), used
            elif part is child and looped:
                target = nodes.Name("_", "store", lineno=line)
                yield nodes.For(target, part, [], [], None, False, lineno=line), used
            else:
                yield nodes.If(part, [], [], [], lineno=line), used


def _straight(node: nodes.Node, names: Collection[str]) -> Iterator[nodes.Expr]:
    """The largest expressions in `node` that are always worked out from end to end."""
    if isinstance(node, _SIMPLE):
        return
    if isinstance(node, nodes.Expr) and not isinstance(node, nodes.Slice | nodes.NSRef):
        known = all(n.name in names or n.name in GLOBALS for n in _with_inner(node, nodes.Name))
        is_chosen = any(
            not isinstance(n.arg, nodes.Const | nodes.Slice)
            for n in _with_inner(node, nodes.Getitem)
        )
        complete = not (isinstance(node, nodes.Filter) and node.node is None)
        if known and complete and not is_chosen and not list(_with_inner(node, _BRANCHING)):
            yield node
            return
    for child in node.iter_child_nodes():
        yield from _straight(child, names)


def _with_inner(node: nodes.Node, kind: type[_Node] | tuple[type[_Node], ...]) -> Iterator[_Node]:
    if isinstance(node, kind):
        yield node
    yield from node.find_all(kind)


def _problem(
    source: str, statement: nodes.Node, values: Mapping[str, Sequence[JsonValue]]
) -> TemplateProblem | None:
    try:
        tree = nodes.Template([statement], lineno=1)
        sandbox = PromptSandbox(Budget())
        code = sandbox.compile(PaidFor().visit(tree.set_environment(sandbox)), filename=FILE_NAME)
    except (TemplateSyntaxError, RecursionError, MemoryError, SyntaxError, ValueError):
        return None
    failed: Exception | None = None
    for run in range(_RUNS if values else 1):
        chosen = {name: some[run % len(some)] for name, some in values.items()}
        failed = _failure(code, chosen, _LITTLE_WORK)
        if isinstance(failed, TooMuchWork) and not values:
            failed = _failure(code, chosen, WORK)
        if failed is None or (values and not isinstance(failed, TypeError | SecurityError)):
            return None
    return render_problem(failed, code, source) if failed is not None else None


def _failure(code: CodeType, values: Mapping[str, JsonValue], work: int) -> Exception | None:
    try:
        rendered(code, values, work)
    except Exception as error:
        return error
    return None
