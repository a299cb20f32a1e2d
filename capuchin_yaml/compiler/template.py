"""Prompts: what is wrong with a template, and its text for one conversation.

White space is Jinja's own: a line with only a tag leaves its line break, `-` inside a tag eats
the white space on its side, the last line break of the prompt stays. Values are inserted as they
are, never escaped for HTML. Checking and rendering go through the same sandbox, so what
`validate` accepts renders the same way in a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, TracebackType

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError

from capuchin_yaml.compiler.budget import MAX_PROMPT_CHARS, Budget, TooMuchWork
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.sandbox import (
    FILTERS,
    GLOBALS,
    LOOP_ATTRIBUTES,
    MAP_METHODS,
    TESTS,
    TEXT_METHODS,
    PaidFor,
    PromptSandbox,
)
from capuchin_yaml.errors import InvalidAgent
from capuchin_yaml.spec import JsonValue

_RAW_HINT = "write braces that are meant literally as {% raw %}{{ … }}{% endraw %}"
_TAGS = "if, for, set, with and raw"
_FOREIGN_TAGS: Mapping[type[nodes.Node], str] = {
    nodes.Block: "block",
    nodes.CallBlock: "call",
    nodes.Extends: "extends",
    nodes.FilterBlock: "filter",
    nodes.FromImport: "from",
    nodes.Import: "import",
    nodes.Include: "include",
    nodes.Macro: "macro",
}


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """One mistake in a template, at a place in its source."""

    id: str
    message: str
    start: int
    end: int
    help: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedTemplate:
    """What is wrong with a template, and which names it uses."""

    problems: tuple[TemplateProblem, ...]
    used: frozenset[str]
    parsed: bool


def check_template(source: str, known: frozenset[str]) -> CheckedTemplate:
    """Find every mistake that shows without rendering, in all branches.

    `known` are the names that the prompt may use besides the language's own.
    """
    try:
        tree = PromptSandbox(Budget()).parse(source)
        _code(source)
    except TemplateSyntaxError as error:
        return CheckedTemplate((_syntax_problem(source, error),), frozenset(), False)
    except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
        message = (
            "the template is nested too deep"
            if not isinstance(error, ValueError)
            else "the template holds a number that is too large"
        )
        return CheckedTemplate(
            (TemplateProblem("template-syntax", message, 0, 0),), frozenset(), False
        )
    walk = _Walk(source, known)
    walk.visit(tree, set())
    return CheckedTemplate(tuple(walk.problems), frozenset(walk.used), True)


def render_problem(source: str, variables: Mapping[str, JsonValue]) -> TemplateProblem | None:
    """The mistake that shows when the template is rendered with these values, or None."""
    try:
        text = _render(source, variables)
    except Exception as error:
        place = _place_in_template(error, source)
        id_, message = _render_message(error)
        return TemplateProblem(id_, message, place, _token_end(source, place))
    if not text.strip():
        return TemplateProblem(
            "empty-prompt", "the prompt is empty when its defaults are filled in", 0, 0
        )
    return None


def render_prompt(source: str, variables: Mapping[str, JsonValue]) -> str:
    """The text of a prompt for one conversation; work and size are bounded.

    Raises:
        InvalidAgent: the template cannot be rendered with these values, or gives no text.
    """
    problem = render_problem(source, variables)
    if problem is not None:
        line = source.count("\n", 0, problem.start) + 1
        raise InvalidAgent(f"line {line} of the prompt: {problem.message}")
    return _render(source, variables)


def _render(source: str, variables: Mapping[str, JsonValue]) -> str:
    sandbox = PromptSandbox(Budget())
    template = Template.from_code(sandbox, _code(source), sandbox.globals)
    context = template.new_context(dict(variables))
    parts: list[str] = []
    length = 0
    for part in template.root_render_func(context):
        parts.append(part)
        length += len(part)
        if length > MAX_PROMPT_CHARS:
            raise TooMuchWork(f"the prompt is longer than {MAX_PROMPT_CHARS} characters")
    return "".join(parts)


@lru_cache(maxsize=64)
def _code(source: str) -> CodeType:
    sandbox = PromptSandbox(Budget())
    tree = PaidFor().visit(sandbox.parse(source))
    return sandbox.compile(tree, filename="<prompt>")


def _syntax_problem(source: str, error: TemplateSyntaxError) -> TemplateProblem:
    place = min(max(error.lineno - 1, 0), max(len(source) - 1, 0))
    message = error.message or "the template cannot be read"
    first = message.splitlines()[0].split(" Jinja was looking for", 1)[0].rstrip(".")
    if first.startswith("Missing end of") or "Unexpected end of template" in first:
        place = _last_opening(source, place)
        first = "this tag is never closed"
    return TemplateProblem(
        "template-syntax",
        f"the prompt is no valid template here: {first}",
        place,
        _token_end(source, place),
        _RAW_HINT,
    )


def _last_opening(source: str, place: int) -> int:
    if source[place : place + 2] in ("{{", "{%", "{#"):
        return place
    found = max(source.rfind(mark, 0, place + 1) for mark in ("{{", "{%", "{#"))
    return found if found >= 0 else place


def _token_end(source: str, place: int) -> int:
    end = place
    if source[place : place + 2] in ("{{", "{%", "{#"):
        return place + 2
    while end < len(source) and (source[end].isalnum() or source[end] == "_"):
        end += 1
    return max(end, min(place + 1, len(source)))


def _render_message(error: Exception) -> tuple[str, str]:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    match error:
        case TooMuchWork():
            return "template-too-large", text
        case SecurityError():
            return "template-escape", f"the prompt tries to leave its sandbox: {text}"
        case UndefinedError():
            return "undefined-variable", f"the prompt uses a value that is not there: {text}"
        case RecursionError() | MemoryError():
            return "template-too-large", "the prompt is nested too deep"
        case TemplateError():
            return "template-error", f"the prompt cannot be rendered: {text}"
        case _:
            return (
                "template-error",
                f"the prompt cannot be rendered: {type(error).__name__}: {text}",
            )


def _place_in_template(error: Exception, source: str) -> int:
    """The place of the node that was rendered when `error` was raised."""
    template = Template.from_code(PromptSandbox(Budget()), _code(source), {})
    trace: TracebackType | None = error.__traceback__
    place = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<prompt>":
            place = template.get_corresponding_lineno(trace.tb_lineno) - 1
        trace = trace.tb_next
    return min(max(place, 0), max(len(source) - 1, 0))


class _Walk:
    """Follows which names are known where, in every branch."""

    def __init__(self, source: str, known: frozenset[str]) -> None:
        self._source = source
        self._known = known
        self.problems: list[TemplateProblem] = []
        self.used: set[str] = set()

    def visit(self, node: nodes.Node, scope: set[str]) -> None:
        match node:
            case nodes.For():
                self._for(node, scope)
            case nodes.With():
                for value in node.values:
                    self.visit(value, scope)
                inner = scope | {name for target in node.targets for name in _targets(target)}
                self._all(node.body, inner)
            case nodes.Assign():
                self.visit(node.node, scope)
                if isinstance(node.target, nodes.NSRef):
                    self._name(node.target.name, node.target, scope)
                scope.update(_targets(node.target))
            case nodes.AssignBlock():
                self._all(node.body, set(scope))
                if node.filter is not None:
                    self.visit(node.filter, scope)
                scope.update(_targets(node.target))
            case nodes.Name():
                if node.ctx == "load":
                    self._name(node.name, node, scope)
            case _ if type(node) in _FOREIGN_TAGS:
                self._tag(node, _FOREIGN_TAGS[type(node)])
            case _:
                self._expression(node, scope)
                for child in node.iter_child_nodes():
                    self.visit(child, scope)

    def _all(self, body: list[nodes.Node], scope: set[str]) -> None:
        for node in body:
            self.visit(node, scope)

    def _for(self, node: nodes.For, scope: set[str]) -> None:
        if node.recursive:
            self._tag(node, "for … recursive")
        self.visit(node.iter, scope)
        inner = scope | set(_targets(node.target)) | {"loop"}
        if node.test is not None:
            self.visit(node.test, inner)
        self._all(node.body, set(inner))
        self._all(node.else_, set(scope))

    def _expression(self, node: nodes.Node, scope: set[str]) -> None:
        match node:
            case nodes.Filter():
                self._word(node, "filter", node.name, FILTERS)
            case nodes.Test():
                self._word(node, "test", node.name, TESTS)
            case nodes.Getattr():
                self._attribute(node, node.attr, scope)
            case nodes.Getitem(arg=nodes.Const(value=str() as name)):
                if name.startswith("_"):
                    self._escape(node, name)
            case nodes.Call():
                self._call(node, scope)

    def _name(self, name: str, node: nodes.Node, scope: set[str]) -> None:
        if name in scope:
            return
        self.used.add(name)
        if name in self._known or name in GLOBALS:
            return
        start = self._find(node, name)
        meant = nearest(name, self._known | scope)
        self._add(
            "undefined-variable",
            f"the prompt uses {name!r}, which is not under variables",
            start,
            len(name),
            f"did you mean {meant!r}?"
            if meant is not None
            else f"add variables: {{{name}: {{type: string}}}}, or {_RAW_HINT}",
        )

    def _word(self, node: nodes.Node, kind: str, name: str, allowed: frozenset[str]) -> None:
        if name in allowed:
            return
        if name in ("attr", "format", "map", "xmlattr", "select", "selectattr", "groupby"):
            self._escape(node, name)
            return
        meant = nearest(name, allowed)
        self._add(
            f"unknown-{kind}",
            f"a prompt has no {kind} {name!r}",
            self._find(node, name),
            len(name),
            f"did you mean {meant!r}?" if meant else f"it has {', '.join(sorted(allowed))}",
        )

    def _attribute(self, node: nodes.Getattr, name: str, scope: set[str]) -> None:
        if name.startswith("_") or name in ("format", "format_map", "mro"):
            self._escape(node, name)
            return
        owner = node.node
        if isinstance(owner, nodes.Name) and owner.name in self._known - scope:
            if name not in TEXT_METHODS:
                meant = nearest(name, TEXT_METHODS)
                self._add(
                    "unknown-attribute",
                    f"the variable {owner.name!r} has no {name!r}",
                    self._find(node, name),
                    len(name),
                    f"did you mean {meant!r}?" if meant is not None else _RAW_HINT,
                )
        elif isinstance(owner, nodes.Name) and owner.name == "loop" and name not in LOOP_ATTRIBUTES:
            meant = nearest(name, LOOP_ATTRIBUTES)
            self._add(
                "unknown-attribute",
                f"loop has no {name!r}",
                self._find(node, name),
                len(name),
                f"did you mean {meant!r}?" if meant is not None else None,
            )

    def _call(self, node: nodes.Call, scope: set[str]) -> None:
        match node.node:
            case nodes.Name(name=name) if name in GLOBALS and name not in scope:
                return
            case nodes.Name(name=name):
                if name in scope or name in self._known:
                    self._add(
                        "unknown-attribute",
                        f"{name!r} is a value and cannot be called",
                        self._find(node.node, name),
                        len(name),
                        _RAW_HINT,
                    )
            case nodes.Getattr(attr=name) if name in TEXT_METHODS | MAP_METHODS | LOOP_ATTRIBUTES:
                return
            case nodes.Getattr(attr=name) if not name.startswith("_"):
                if isinstance(node.node.node, nodes.Name):
                    return  # `_attribute` has said it
                self._escape(node, name)
            case _:
                return

    def _tag(self, node: nodes.Node, name: str) -> None:
        start = node.lineno - 1
        self._add(
            "template-tag",
            f"a prompt has no tag {name!r}; it has {_TAGS}",
            start,
            _token_end(self._source, start) - start,
            _RAW_HINT,
        )

    def _escape(self, node: nodes.Node, name: str) -> None:
        self._add(
            "template-escape",
            f"the prompt tries to leave its sandbox: {name!r} is not open to a prompt",
            self._find(node, name),
            len(name),
            f"remove it, or {_RAW_HINT}",
        )

    def _find(self, node: nodes.Node, name: str) -> int:
        start = max(node.lineno - 1, 0)
        found = self._source.find(name, start)
        return found if found >= 0 else start

    def _add(self, id_: str, message: str, start: int, length: int, help_: str | None) -> None:
        self.problems.append(TemplateProblem(id_, message, start, start + max(length, 1), help_))


def _targets(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Name):
        yield node.name
    elif isinstance(node, nodes.Tuple | nodes.List):
        for item in node.items:
            yield from _targets(item)
