"""Text -> Document: YAML 1.2 core values with the position of every key and value.

Values are built from the parser's events, never by a YAML constructor, so a file is data:
no tag does anything, duplicate keys are seen, and aliases are counted before they are used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import yaml

from capuchin_yaml.compiler.source_text import SourceText, decode
from capuchin_yaml.compiler.syntax import broken_at, explain_syntax_error
from capuchin_yaml.compiler.tabs import scanned_texts, tab_diagnostics
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Severity, Span
from capuchin_yaml.spec import JsonValue

MAX_DEPTH = 64
"""Lists and maps inside each other."""
MAX_NODES = 200_000
"""Keys and values of one file."""
MAX_ALIASED_NODES = 20_000
"""Keys and values that aliases and merge keys add."""

# Why: without the C library PyYAML still parses, ten times slower, with the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_BLOCKS = frozenset("|>")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAY_BEGIN_A_VALUE = frozenset("-+.0123456789~nNtTfF")
"""First characters of what is no text without quotes; most texts begin with another one."""
_TAG = re.compile(r"![^\s,\[\]{}]*")
# Why: Python refuses to convert very long digit strings; nothing in a file needs one.
_MOST_DIGITS = 100

Path: TypeAlias = tuple[str | int, ...]
Kind: TypeAlias = Literal["scalar", "list", "map"]
Style: TypeAlias = Literal["plain", "'", '"', "|", ">"]


class Node(NamedTuple):
    """One value of the file."""

    kind: Kind
    value: JsonValue
    span: Span
    text: str = ""
    """A scalar's text after quotes and escapes, before it became a value."""
    style: Style = "plain"
    items: tuple[Node, ...] = ()
    entries: Mapping[str, Entry] = MappingProxyType({})
    size: int = 1
    """Nodes in it, itself included, aliases counted each time they are used."""
    broken: bool = False
    """It is reported already (a tag, an alias of nothing, a key that is no text)."""


class Entry(NamedTuple):
    """A key of a map with its value."""

    key: Span
    node: Node


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, as far as it can be read, and everything that is wrong with its YAML."""

    source: SourceText
    root: Node | None
    diagnostics: tuple[Diagnostic, ...]
    others: Mapping[str, SourceText] = field(default_factory=dict)
    """Other files that values came from, by path."""
    broken_at: int | None = None
    """Where its YAML breaks off, if what stands around that place can be read."""

    def source_of(self, node: Node) -> SourceText:
        """The text of the file in which a value stands."""
        return self.others.get(node.span.path, self.source)

    @property
    def written(self) -> str:
        """The text of every file that values came from; escapes in it are as they are written."""
        if not self.others:
            return self.source.text
        return "\n".join([self.source.text, *(other.text for other in self.others.values())])

    @property
    def path(self) -> str:
        """The file as it was named by the caller."""
        return self.source.path

    @property
    def start(self) -> Span:
        """The first position of the file."""
        return Span(self.path, 1, 1, 1, 1)

    def node(self, path: Sequence[str | int]) -> Node | None:
        """The value at `path`, or None when the file has none there."""
        node = self.root
        for step in path:
            if node is None:
                return None
            if type(step) is str:
                entry = node.entries.get(step)
                node = entry.node if entry is not None else None
            else:
                node = child(node, step)
        return node

    def value_span(self, path: Sequence[str | int]) -> Span:
        """The place of the value at `path`, else of the nearest value around it."""
        node = self.root
        for step in path:
            inner = child(node, step) if node is not None else None
            if inner is None:
                break
            node = inner
        return node.span if node is not None else self.start

    def key_span(self, path: Sequence[str | int]) -> Span:
        """The place of the key at `path`; of the value for an item of a list."""
        parent = self.node(path[:-1]) if path else None
        if parent is not None and parent.kind == "map" and path[-1] in parent.entries:
            return parent.entries[str(path[-1])].key
        return self.value_span(path)


def child(node: Node, step: str | int) -> Node | None:
    """The value under one key or index of `node`, or None."""
    if isinstance(step, int):
        return node.items[step] if 0 <= step < len(node.items) else None
    entry = node.entries.get(step)
    return entry.node if entry is not None else None


def read_document(path: str, data: bytes) -> Document:
    """Read one YAML 1.2 file; never raises, whatever the bytes are."""
    source, problems, readable = decode(path, data)
    if not readable:
        return Document(source, None, tuple(problems))
    builder = _Builder(source, problems)
    root = builder.build()
    if builder.has_tabs:
        texts: Sequence[tuple[int, int]] = builder.scalar_ranges
        end = len(source.text)
        if root is None:
            # Behind the place where it breaks off, a tab may belong to a text that never ends.
            texts = scanned_texts(source.text, _LOADER)
            end = builder.broken_at or 0
        known = {problem.span for problem in problems}
        tabs = tab_diagnostics(source, texts, end)
        problems.extend([tab for tab in tabs if tab.span not in known])
    return Document(source, root, tuple(problems), broken_at=builder.broken_at)


def plain_value(text: str) -> JsonValue:
    """The YAML 1.2 core value of an unquoted scalar; what JSON cannot hold stays text."""
    if text and text[0] not in _MAY_BEGIN_A_VALUE:
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if len(text) > _MOST_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if _HEX.fullmatch(text):
        return int(text[2:], 16)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


class _Unreadable(Exception):
    """The rest of the file cannot be read; the reason is already reported."""


class _Builder:
    def __init__(self, source: SourceText, problems: list[Diagnostic]) -> None:
        self._source = source
        self._problems = problems
        self._anchors: dict[str, Node | None] = {}
        self._next: Callable[[], Any] = lambda: None
        self._nodes = 0
        self._aliased = 0
        self._end = (1, 1)
        self._path = source.path
        self._line_count = source.line_count
        self.has_tabs = "\t" in source.text
        self.scalar_ranges: list[tuple[int, int]] = []
        """Where texts stand; kept only for a file with tabs."""
        self.broken_at: int | None = None

    def build(self) -> Node | None:
        root: Node | None = None
        loader: Any = None
        try:
            loader = _LOADER(self._source.text)
            # Why not `yaml.parse`: asking for each event twice takes a third of the time.
            self._next = loader.get_event
            while not isinstance(event := self._next(), yaml.StreamEndEvent):
                if isinstance(event, yaml.DocumentStartEvent):
                    if root is not None:
                        self._report_second_document(event)
                        break
                    root = self._node(self._next(), 0)
        except yaml.MarkedYAMLError as error:
            self._problems.append(explain_syntax_error(self._source, error))
            self.broken_at = broken_at(error)
            return None
        except yaml.YAMLError as error:
            # Only the reader raises without a mark, and `decode` reports what it refuses.
            self._report("syntax", str(error).splitlines()[0], self._source.span(0, 0))
            return None
        except _Unreadable:
            return None
        finally:
            if loader is not None:
                loader.dispose()
        if root is None or (root.kind == "scalar" and root.value is None and not root.broken):
            self._report(
                "empty-file",
                "the file holds no agent",
                self._source.span(0, 0),
                "start with: apiVersion: capuchin/v1",
            )
            return None
        return root

    def _node(self, event: Any, depth: int) -> Node:
        self._count(event)
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event)
        if event.tag is not None:
            self._report_tag(event)
        anchor = event.anchor
        if anchor is not None:
            # An alias inside its own value finds None here.
            self._anchors[anchor] = None
        if kind is yaml.ScalarEvent:
            node = self._scalar(event)
        else:
            if depth >= MAX_DEPTH:
                self._report(
                    "too-deep",
                    f"lists and maps are nested more than {MAX_DEPTH} deep",
                    self._span(event),
                    "write the values of this one further up",
                )
                raise _Unreadable
            if kind is yaml.SequenceStartEvent:
                node = self._list(event, depth)
            else:
                node = self._map(event, depth)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._report(
                "too-large",
                f"the file has more than {MAX_NODES} keys and values",
                self._span(event),
                "remove what begins here, or write another agent for it",
            )
            raise _Unreadable

    def _scalar(self, event: Any) -> Node:
        if self.has_tabs:
            self.scalar_ranges.append((event.start_mark.index, event.end_mark.index))
        style: Style = event.style or "plain"
        text, tagged = event.value, event.tag is not None
        value = plain_value(text) if style == "plain" and not tagged else text
        span = self._span(event)
        if tagged:
            return Node("scalar", value, span, text, style, broken=True)
        return Node("scalar", value, span, text, style)

    def _list(self, start: Any, depth: int) -> Node:
        items: list[Node] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            items.append(self._node(event, depth + 1))
        return Node(
            "list",
            [item.value for item in items],
            self._container_span(start, event),
            items=tuple(items),
            size=1 + sum(item.size for item in items),
            broken=start.tag is not None,
        )

    def _map(self, start: Any, depth: int) -> Node:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        merge_key: Span | None = None
        broken = start.tag is not None
        while type(event := self._next()) is not yaml.MappingEndEvent:
            if type(event) is yaml.ScalarEvent and event.tag is None and event.anchor is None:
                # Why: keys are half of all values, and nearly all of them are as plain as this.
                text = event.value
                if text != "<<" and text not in entries and not self.has_tabs:
                    self._count(event)
                    span = self._span(event)
                    entries[text] = Entry(span, self._node(self._next(), depth + 1))
                    continue
            key = self._node(event, depth + 1)
            node = self._node(self._next(), depth + 1)
            if key.kind != "scalar":
                self._report_complex_key(key)
                broken = True
            elif key.text == "<<" and key.style == "plain":
                if merge_key is not None:
                    self._report_duplicate("<<", key.span, merge_key)
                merge_key = key.span
                merged.extend(self._merge_sources(node))
            elif key.text in entries:
                self._report_duplicate(key.text, key.span, entries[key.text].key)
            else:
                entries[key.text] = Entry(key.span, node)
        for source in merged:
            for name, entry in source.entries.items():
                if name not in entries:
                    self._count_aliased(entry.node.size, merge_key or source.span)
                    entries[name] = entry
        return Node(
            "map",
            {name: entry.node.value for name, entry in entries.items()},
            self._container_span(start, event),
            entries=MappingProxyType(entries),
            size=1 + sum(entry.node.size for entry in entries.values()),
            broken=broken,
        )

    def _alias(self, event: Any) -> Node:
        name = event.anchor
        span = self._span(event)
        target = self._anchors.get(name)
        if target is None:
            if name in self._anchors:
                self._report(
                    "alias",
                    f"the alias *{name} stands inside its own value",
                    span,
                    "write the values out",
                )
            else:
                self._report(
                    "alias",
                    f"no anchor &{name} stands before the alias *{name}",
                    span,
                    f'if it is text, put it in quotes: "*{name}"',
                )
            return Node("scalar", None, span, broken=True)
        self._count_aliased(target.size, span)
        return target

    def _count_aliased(self, size: int, span: Span) -> None:
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            self._report(
                "alias-bomb",
                f"aliases make the file grow beyond {MAX_ALIASED_NODES} more keys and values",
                span,
                "write the values out, or use fewer aliases",
            )
            raise _Unreadable

    def _merge_sources(self, node: Node) -> list[Node]:
        sources = list(node.items) if node.kind == "list" else [node]
        for source in sources:
            if source.kind != "map" and not source.broken:
                self._report(
                    "merge-key",
                    "'<<' takes a map, or a list of maps",
                    source.span,
                    "write <<: *name, where &name marks a map",
                )
        return [source for source in sources if source.kind == "map"]

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        line, column = start.line, start.column
        if line >= self._line_count:
            # The parser puts what is left out at the very end on a line that does not exist.
            last = len(self._source.text)
            return self._source.span(last, last)
        stop = (end.line + 1, end.column + 1)
        if type(event) is yaml.ScalarEvent and event.style in _BLOCKS:
            # The parser ends a block scalar where the next token starts.
            written = self._source.text[start.index : end.index].rstrip()
            lines = written.count("\n")
            if "\r" in written:
                stop = self._source.position(start.index + len(written))
            elif lines:
                stop = (line + lines + 1, len(written) - written.rindex("\n"))
            else:
                stop = (line + 1, column + len(written) + 1)
        if end.index > start.index:
            self._end = stop
        return Span(self._path, line + 1, column + 1, *stop)

    def _container_span(self, start: Any, end: Any) -> Span:
        first = start.start_mark
        if start.flow_style:
            self._end = (end.end_mark.line + 1, end.end_mark.column + 1)
        # The parser ends a block where the next token starts; its last value ends it for people.
        stop = max(self._end, (first.line + 1, first.column + 1))
        return Span(self._source.path, first.line + 1, first.column + 1, *stop)

    def _report(self, id_: str, message: str, span: Span, help_: str | None = None) -> None:
        self._problems.append(Diagnostic(id_, Severity.ERROR, message, span, help_))

    def _report_duplicate(self, key: str, second: Span, first: Span) -> None:
        self._problems.append(
            Diagnostic(
                "duplicate-key",
                Severity.ERROR,
                f"the key {key!r} is here twice, first on line {first.line}",
                second,
                "keep one of them",
                (Annotation(first, "first here"),),
            )
        )

    def _report_complex_key(self, key: Node) -> None:
        start = self._source.offset(key.span.line, key.span.column)
        if key.kind == "map" and self._source.text.startswith("{{", start - 1):
            self._report(
                "bare-braces",
                "YAML reads '{{' as a map here, not as a template",
                self._source.span(start - 1, start + 1),
                'put the whole value in quotes ("{{ … }}") or in a | block',
            )
            return
        self._report(
            "complex-key",
            f"a key must be text, found a {key.kind}",
            key.span,
            "write the key as text, in quotes where it holds brackets or braces",
        )

    def _report_tag(self, event: Any) -> None:
        # The event holds the tag resolved and starts at an anchor when that comes first.
        written = _TAG.search(self._source.text, event.start_mark.index)
        start, end = written.span() if written else (event.start_mark.index,) * 2
        shown = self._source.text[start:end]
        self._report(
            "tag",
            f"the file holds the tag {shown!r}; tags are not carried out",
            self._source.span(start, end),
            "remove the tag; if it is text, put the whole value in quotes",
        )

    def _report_second_document(self, event: Any) -> None:
        self._report(
            "several-documents",
            "a second document starts here; a file holds one agent",
            self._span(event),
            "move it to a file of its own, or remove this line",
        )
