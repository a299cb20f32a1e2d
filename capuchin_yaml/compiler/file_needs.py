"""The needs of an agent file, read without importing any tool package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

from capuchin_yaml.compiler.assemble import assemble
from capuchin_yaml.compiler.document import Document, Node, read_document
from capuchin_yaml.compiler.own_files import AgentFolder, folder_of
from capuchin_yaml.diagnostics import Diagnostic, Severity, Span
from capuchin_yaml.policy.needs import MODEL, Grant, Need, is_granted, model_need, variable_of


@dataclass(frozen=True, slots=True)
class FileNeeds:
    """What one agent file wants."""

    path: FilePath
    agent: str
    places: tuple[tuple[Need, Span], ...]
    profile: str | None = None

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
        chosen = f" --profile {self.profile}" if self.profile is not None else ""
        return tuple(
            Diagnostic(
                "ungranted-need",
                Severity.NOTE,
                f"the operator of this machine has not granted {_words(need)}",
                span,
                f"capuchin trust {self.path}{chosen}",
            )
            for need, span in self.places
        )


def file_needs(path: FilePath, profile: str | None = None) -> FileNeeds:
    """What the file at `path` wants, with a profile if it has it; nothing if it is unreadable."""
    try:
        data = path.read_bytes()
    except OSError:
        return FileNeeds(path, "", ())
    whole = assemble(read_document(str(path), data), AgentFolder(folder_of(path)))
    chosen = whole.profiles.get(profile or "")
    return document_needs(path, chosen or whole.document, profile if chosen else None)


def document_needs(path: FilePath, document: Document, profile: str | None = None) -> FileNeeds:
    """What a file that was read and assembled already wants."""
    name = document.node(("name",))
    tools, model = document.node(("tools",)), document.node(("model",))
    places = tuple(_tool_places(tools)) if tools is not None else ()
    if model is not None and model.kind == "map":
        places += tuple(_model_places(model))
    return FileNeeds(path, name.text if name is not None else "", places, profile)


def _words(need: Need) -> str:
    if need.tool != MODEL:
        return f"{need.variable} to {need.tool}"
    return str(need).removeprefix("env ")


def _tool_places(tools: Node) -> Iterator[tuple[Need, Span]]:
    for entry in tools.items:
        use, config = entry.entries.get("use"), entry.entries.get("config")
        if use is None or config is None:
            continue
        names = [item.text for item in use.node.items] or [use.node.text]
        for variable, span in _variables(config.node):
            for name in names:
                yield Need(variable, name), span


def _model_places(model: Node) -> Iterator[tuple[Need, Span]]:
    fallback = model.entries.get("fallback")
    for one in (model, *(fallback.node.items if fallback is not None else ())):
        address, key = one.entries.get("base_url"), one.entries.get("api_key")
        variable = variable_of(key.node.value) if key is not None else None
        need = model_need(address.node.text.rstrip("/") if address is not None else None, variable)
        place = address or key
        if need is not None and place is not None:
            yield need, place.node.span


def _variables(node: Node) -> Iterator[tuple[str, Span]]:
    name = variable_of(node.value)
    if name is not None:
        yield name, node.span
        return
    for entry in node.entries.values():
        yield from _variables(entry.node)
    for item in node.items:
        yield from _variables(item)
