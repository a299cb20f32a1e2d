"""The whole of an agent: its file laid over the one it extends, and once more for each profile."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath

from capuchin_yaml.compiler.check import Checked
from capuchin_yaml.compiler.document import Document, Node, read_document
from capuchin_yaml.compiler.merge import map_of, merged, without
from capuchin_yaml.compiler.nearest import nearest
from capuchin_yaml.compiler.own_files import AgentFolder, own_bytes, own_file
from capuchin_yaml.compiler.reading import Reading
from capuchin_yaml.compiler.wording import either, found, shown
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Severity, Span

_OWN = frozenset({"apiVersion", "name", "version", "extends"})
"""What every file says for itself."""
_NOT_IN_A_PROFILE = frozenset({"apiVersion", "name", "extends", "profiles"})
_FIRST_LINE = "start with: apiVersion: capuchin/v1"
_PROFILE_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Assembled:
    """What an agent's file says together with the file that it extends."""

    document: Document
    """Without any profile."""
    profiles: Mapping[str, Document] = field(default_factory=dict)
    """What holds with each profile."""
    patches: Mapping[str, Span] = field(default_factory=dict)
    """Where each profile stands."""
    parent: Document | None = None
    """The agent as it would be with the approval of the file that it extends."""
    is_whole: bool = True
    """Whether the file that it extends could be read."""
    diagnostics: Sequence[Diagnostic] = ()
    parts: Mapping[FilePath, str] = field(default_factory=dict)

    def chosen(self, profile: str | None) -> Document | None:
        """What holds with a profile, or without any; None when there is no such profile."""
        return self.document if profile is None else self.profiles.get(profile)


def assemble(document: Document, folder: AgentFolder | None) -> Assembled:
    """Resolve `extends` and `profiles` of a readable file; any other is handed back as it is."""
    root = document.root
    if root is None or root.kind != "map" or not {"extends", "profiles"} & root.entries.keys():
        return Assembled(document)
    return _Assembly(document, root, folder).run()


def unknown_profile(name: str, document: Document, known: Sequence[str]) -> Diagnostic:
    """What to say of a profile that was asked for and is not in the file."""
    meant = nearest(name, known)
    return Diagnostic(
        "unknown-profile",
        Severity.ERROR,
        f"the file has no profile {shown(name)}; it has {', '.join(known) or 'none'}",
        document.key_span(("profiles",)),
        f"did you mean {meant!r}?"
        if meant is not None
        else f"write {either(known[:8])}"
        if known
        else "leave the profile out",
    )


class _Assembly:
    def __init__(self, document: Document, root: Node, folder: AgentFolder | None) -> None:
        self._reading = Reading(document, Checked())
        self._document = document
        self._root = root
        self._folder = folder

    def run(self) -> Assembled:
        own = self._root
        parent: Document | None = None
        whole = own
        if "extends" in own.entries:
            parent = self._parent()
            if parent is not None and parent.root is not None:
                kept = without(parent.root, _OWN | _notes(parent.root))
                whole = merged(kept, own)
        others = {parent.path: parent.source} if parent is not None else {}
        plain = without(whole, frozenset({"extends", "profiles"}))
        document = replace(self._document, root=plain, others=others)
        patches = dict(self._patches(whole))
        return Assembled(
            document,
            {
                name: replace(document, root=merged(plain, without(patch, _NOT_IN_A_PROFILE)))
                for name, patch in patches.items()
            },
            {name: patch.span for name, patch in patches.items()},
            _with_approval_of(parent, document) if parent is not None else None,
            "extends" not in own.entries or parent is not None,
            self._reading.problems,
            self._reading.parts,
        )

    def _parent(self) -> Document | None:
        """The file that is extended; None when that is reported."""
        where = ("extends",)
        node = self._root.entries["extends"].node
        if node.broken:
            return None
        if not isinstance(node.value, str) or not node.text:
            id_ = "empty-value" if node.value in (None, "") else "wrong-type"
            message = f"extends must be text such as shared/base.yaml, found {found(node)}"
            help_ = "name one file: extends: shared/base.yaml"
            self._reading.error(id_, message, where, help_)
            return None
        file = own_file(self._reading, self._folder, node.text, where)
        if file is None or self._folder is None:
            return None
        if os.path.realpath(file) == os.path.realpath(self._document.path):
            self._reading.error(
                "extends-chain", "the file extends itself", where, "remove the line"
            )
            return None
        data = own_bytes(self._reading, self._folder, file, where)
        if data is None:
            return None
        # Why normal: `a/../b.yaml` and `b.yaml` are one file in what is reported.
        parent = read_document(os.path.normpath(file), data)
        self._reading.parts[FilePath(parent.path)] = parent.source.text
        self._reading.problems.extend(parent.diagnostics)
        return self._sound(parent, node)

    def _sound(self, parent: Document, named: Node) -> Document | None:
        root = parent.root
        if root is None or root.broken:
            return None
        here = Annotation(named.span, "it is named here")
        if root.kind != "map":
            message = f"a file that is extended is a map of keys, found {found(root)}"
            self._reading.error("wrong-type", message, root.span, _FIRST_LINE, here)
            return None
        version = root.entries.get("apiVersion")
        if version is not None and version.node.value != "capuchin/v1":
            message = f"apiVersion must be capuchin/v1, found {found(version.node)}"
            help_ = "write apiVersion: capuchin/v1"
            self._reading.error("unknown-value", message, version.node.span, help_, here)
            return None
        if "extends" in root.entries:
            self._reading.error(
                "extends-chain",
                "the file that is extended extends a file itself",
                named.span,
                "extend one file, and write in it what the other one says",
                Annotation(root.entries["extends"].key, "it extends another file here"),
            )
            return None
        return parent

    def _patches(self, whole: Node) -> Iterator[tuple[str, Node]]:
        block = whole.entries.get("profiles")
        if block is None or block.node.broken:
            return
        if block.node.kind != "map":
            id_ = "empty-value" if block.node.value is None else "wrong-type"
            message = f"profiles must be a map of names, found {found(block.node)}"
            help_ = "profiles: {production: {limits: {max_steps: 20}}}"
            self._reading.error(id_, message, block.node.span, help_)
            return
        for name, entry in block.node.entries.items():
            if not _PROFILE_NAME.fullmatch(name):
                message = f"{shown(name)} is no name of a profile such as production"
                slug = re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-_")[:63]
                help_ = f"write {slug or 'production'}: …"
                self._reading.error("bad-name", message, entry.key, help_)
            elif entry.node.kind != "map":
                message = f"the profile {name} must be a map of keys, found {found(entry.node)}"
                help_ = f"{name}: {{limits: {{max_steps: 20}}}}"
                self._reading.error("wrong-type", message, entry.node.span, help_)
            elif not entry.node.broken:
                self._refuse_own_keys(name, entry.node)
                yield name, without(entry.node, _notes(entry.node))

    def _refuse_own_keys(self, profile: str, patch: Node) -> None:
        for key in _NOT_IN_A_PROFILE & patch.entries.keys():
            self._reading.error(
                "needless-key",
                f"the profile {profile} cannot change {shown(key)}",
                patch.entries[key].key,
                "remove the line",
            )


def _notes(node: Node) -> frozenset[str]:
    return frozenset(name for name in node.entries if name.startswith("x-"))


def _with_approval_of(parent: Document, document: Document) -> Document:
    assert document.root is not None
    assert parent.root is not None
    entries = dict(without(document.root, frozenset({"approval"})).entries)
    if "approval" in parent.root.entries:
        entries["approval"] = parent.root.entries["approval"]
    return replace(document, root=map_of(entries, document.root))
