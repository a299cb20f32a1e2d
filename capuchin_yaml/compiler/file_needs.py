"""The needs of an agent file, read without importing any tool package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

from capuchin_yaml.compiler.document import Document, Node, read_document
from capuchin_yaml.diagnostics import Diagnostic, Severity, Span
from capuchin_yaml.policy.needs import Grant, Need, is_granted, variable_of


@dataclass(frozen=True, slots=True)
class FileNeeds:
    """What one agent file wants."""

    path: FilePath
    agent: str
    places: tuple[tuple[Need, Span], ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        """The needs, each once, sorted."""
        return tuple(sorted({need for need, _ in self.places}))

    def is_granted(self, grants: tuple[Grant, ...]) -> bool:
        """Whether the operator said yes to exactly these."""
        return is_granted(self.agent, self.needs, grants)

    def notes(self, grants: tuple[Grant, ...]) -> tuple[Diagnostic, ...]:
        """A note at each need that nobody granted here."""
        if self.is_granted(grants):
            return ()
        return tuple(
            Diagnostic(
                "ungranted-need",
                Severity.NOTE,
                f"the operator of this machine has not granted {need.variable} to {need.tool}",
                span,
                f"capuchin trust {self.path}",
            )
            for need, span in self.places
        )


def file_needs(path: FilePath) -> FileNeeds:
    """What the file at `path` wants; nothing where it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return FileNeeds(path, "", ())
    return document_needs(path, read_document(str(path), data))


def document_needs(path: FilePath, document: Document) -> FileNeeds:
    """What a file that was read already wants."""
    name = document.node(("name",))
    tools = document.node(("tools",))
    places = tuple(_places(tools)) if tools is not None else ()
    return FileNeeds(path, name.text if name is not None else "", places)


def _places(tools: Node) -> Iterator[tuple[Need, Span]]:
    for entry in tools.items:
        use, config = entry.entries.get("use"), entry.entries.get("config")
        if use is None or config is None:
            continue
        names = [item.text for item in use.node.items] or [use.node.text]
        for variable, span in _variables(config.node):
            for name in names:
                yield Need(variable, name), span


def _variables(node: Node) -> Iterator[tuple[str, Span]]:
    name = variable_of(node.value)
    if name is not None:
        yield name, node.span
        return
    for entry in node.entries.values():
        yield from _variables(entry.node)
    for item in node.items:
        yield from _variables(item)
