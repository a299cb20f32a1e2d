"""Which names and words a template uses, in every branch, and those a prompt does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jinja2 import nodes

from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.sandbox import (
    FILTERS,
    GLOBALS,
    LOOP_ATTRIBUTES,
    MAP_METHODS,
    TESTS,
    TEXT_METHODS,
)

RAW_HINT = "write braces that are meant literally as {% raw %}{{ … }}{% endraw %}"
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


class Walk:
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
            else f"add variables: {{{name}: {{type: string}}}}, or {RAW_HINT}",
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
        if _is_closed(name):
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
                    f"did you mean {meant!r}?" if meant is not None else RAW_HINT,
                )
        elif isinstance(owner, nodes.Name) and owner.name == "loop" and name not in LOOP_ATTRIBUTES:
            meant = nearest(name, LOOP_ATTRIBUTES)
            self._add(
                "unknown-attribute",
                f"loop has no {name!r}",
                self._find(node, name),
                len(name),
                f"did you mean {meant!r}?"
                if meant is not None
                else f"it has {', '.join(sorted(LOOP_ATTRIBUTES))}",
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
                        RAW_HINT,
                    )
            case nodes.Getattr(attr=name) if name in TEXT_METHODS | MAP_METHODS | LOOP_ATTRIBUTES:
                return
            case nodes.Getattr(attr=name):
                if not _is_closed(name) and not isinstance(node.node.node, nodes.Name):
                    self._escape(node.node, name)
            case _:
                return

    def _tag(self, node: nodes.Node, name: str) -> None:
        start = node.lineno - 1
        self._add(
            "template-tag",
            f"a prompt has no tag {name!r}; it has {_TAGS}",
            start,
            token_end(self._source, start) - start,
            RAW_HINT,
        )

    def _escape(self, node: nodes.Node, name: str) -> None:
        self._add(
            "template-escape",
            f"the prompt tries to leave its sandbox: {name!r} is not open to a prompt",
            self._find(node, name),
            len(name),
            f"remove it, or {RAW_HINT}",
        )

    def _find(self, node: nodes.Node, name: str) -> int:
        start = max(node.lineno - 1, 0)
        found = self._source.find(name, start)
        return found if found >= 0 else start

    def _add(self, id_: str, message: str, start: int, length: int, help_: str | None) -> None:
        self.problems.append(TemplateProblem(id_, message, start, start + max(length, 1), help_))


def _is_closed(attribute: str) -> bool:
    return attribute.startswith("_") or attribute in ("format", "format_map", "mro")


def _targets(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.Name):
        yield node.name
    elif isinstance(node, nodes.Tuple | nodes.List):
        for item in node.items:
            yield from _targets(item)


def token_end(source: str, place: int) -> int:
    """The end of the word or tag that starts at `place`."""
    end = place
    if source[place : place + 2] in ("{{", "{%", "{#"):
        return place + 2
    while end < len(source) and (source[end].isalnum() or source[end] == "_"):
        end += 1
    return max(end, min(place + 1, len(source)))
