"""What stands around the places where the YAML of an agent file breaks off.

The key at the top that holds such a place becomes blank, and the file is read again, so one
broken line hides no mistake of another key. Nothing that is read here ever becomes a spec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from capuchin_yaml.compiler.assemble import assemble
from capuchin_yaml.compiler.bind import bind
from capuchin_yaml.compiler.check import check
from capuchin_yaml.compiler.document import Document, Entry, read_document
from capuchin_yaml.compiler.own_files import AgentFolder
from capuchin_yaml.compiler.schemas import agent_schema
from capuchin_yaml.compiler.tabs import indenting_tabs
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.compiler.words import LATER_KEYS, OPERATOR_KEYS, foreign_words
from capuchin_yaml.diagnostics import Diagnostic

_MOST_PLACES = 20
_MOST_CHARS = 2_000_000
"""Of all readings of one file together, so that a large one with many mistakes is not slow."""
_NOT_A_BREAK = re.compile(r"[^\r\n]")
_WORD = re.compile(r"[ \t]*[\"']?([A-Za-z_][\w-]*)")
_TABBED_WORD = re.compile(r"^\t[ \t]*[\"']?([A-Za-z_][\w-]*)", re.MULTILINE)
_NEEDED_BY_ALL = frozenset({"extends", "profiles"})
_NEEDS: Mapping[str, frozenset[str]] = {
    "approval": frozenset({"tools", "variables", "injected", "prompt"}),
    "budget": frozenset({"model"}),
    "injected": frozenset({"prompt", "variables"}),
    "prompt": frozenset({"variables", "injected"}),
    "requires": frozenset({"tools"}),
    "tools": frozenset({"requires", "approval"}),
    "variables": frozenset({"prompt", "approval", "injected"}),
}
"""Keys at the top whose values say nothing for certain while another one cannot be read."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A broken file without its broken keys."""

    document: Document
    lost: frozenset[str]
    """Keys at the top that cannot be read, or not all of them."""
    diagnostics: Sequence[Diagnostic]
    """What is wrong with the YAML behind the first place."""


def problems_around(
    document: Document, registry: ToolSource | None, folder: AgentFolder
) -> Sequence[Diagnostic]:
    """What else is wrong with a file whose YAML breaks off somewhere, as far as it is certain."""
    rest = _rest(document)
    found = list(rest.diagnostics)
    root = rest.document.root
    if root is None or root.kind != "map" or _NEEDED_BY_ALL & rest.lost:
        return found
    whole = assemble(rest.document, folder)
    checked = check(whole.document)
    # What the file lacks may stand where it cannot be read.
    shapes = [*whole.diagnostics, *(d for d in checked.diagnostics if d.id != "missing-key")]
    found.extend(d for d in shapes if not _keys_of(d, root.entries) & rest.lost)
    if not _NEEDED_BY_ALL & root.entries.keys():
        for diagnostic in bind(whole.document, checked, registry, folder).diagnostics:
            keys = _keys_of(diagnostic, root.entries)
            if not rest.lost & keys.union(*(_NEEDS.get(key, frozenset()) for key in keys)):
                found.append(diagnostic)
    return found


def _keys_of(diagnostic: Diagnostic, entries: Mapping[str, Entry]) -> frozenset[str]:
    """The key at the top that a diagnostic is about; none when it is about the file."""
    at, path = diagnostic.span[1:3], diagnostic.span.path
    if any(entry.key.path != path for entry in entries.values()):
        return frozenset({"prompt"})  # the only other file whose text is looked at
    return frozenset(
        name
        for name, entry in entries.items()
        if entry.key[1:3] <= at < max(entry.key[3:], entry.node.span[3:])
    )


def _rest(document: Document) -> Rest:
    found: list[Diagnostic] = []
    lost: set[str] = set()
    read = 0
    for _ in range(_MOST_PLACES):
        at, source = document.broken_at, document.source
        # Why not before the first: a large file is read around one place as any other is.
        if at is None or read > _MOST_CHARS:
            break
        read += len(source.text)
        start, end = _broken_part(source.text, at, lost)
        if any(d.id == "tab" and source.offset(*d.span[1:3]) >= at for d in document.diagnostics):
            found.extend(indenting_tabs(source, at + 1, end))
        blank = _NOT_A_BREAK.sub(" ", source.text[start:end])
        text = source.text[:start] + blank + source.text[end:]
        if text == source.text:
            break
        document = read_document(source.path, text.encode("utf-8", "surrogatepass"))
        found.extend(d for d in document.diagnostics if d.id != "empty-file")
    # Why its mistakes stay with it: as long as there is one, nothing is advised.
    return Rest(replace(document, diagnostics=tuple(found)), frozenset(lost), tuple(found))


def _broken_part(text: str, at: int, lost: set[str]) -> tuple[int, int]:
    """The range of the key at the top that holds a place; its name is added to `lost`."""
    keys = list(_top_keys().finditer(text))
    begun = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    start = begun
    while start > 0 and text[start : start + 1] in " \t\r\n#":
        start = max(text.rfind("\n", 0, start - 1), text.rfind("\r", 0, start - 1)) + 1
    end = next((key.start() for key in keys if key.start() > max(start, begun)), len(text))
    # The broken line may be a key at the top that is indented by mistake.
    lost.update(word.group(1) for place in (start, begun) if (word := _WORD.match(text, place)))
    lost.update(_TABBED_WORD.findall(text, start, end))
    before = [key for key in keys if key.start() <= start]
    if before:
        # A line that is no key may be a text that lacks its indentation.
        lost.add(before[-1].group(1))
    return start, end


@cache
def _top_keys() -> re.Pattern[str]:
    names = {
        *agent_schema()["properties"],
        *(*LATER_KEYS[""], *OPERATOR_KEYS, *foreign_words("")),
    }
    either = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"""^["']?({either}|x-[\w-]+)["']?[ \t]*:(?=\s|\Z)""", re.MULTILINE)
