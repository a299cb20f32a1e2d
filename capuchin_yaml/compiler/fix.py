"""Repair what is certain in an agent file, and leave every other byte as it is.

Each diagnostic carries its own repair, if it has one; those of broken YAML are worked out here
from the text. A repair stays only if its diagnostic is gone when the file is compiled again.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from capuchin_yaml.compiler.certain_values import in_quotes
from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.load import Compiled, compile_bytes
from capuchin_yaml.compiler.source_text import MAX_FILE_BYTES, SourceText
from capuchin_yaml.compiler.tool_source import ToolSource
from capuchin_yaml.diagnostics import Diagnostic, Edit, Severity, Span
from capuchin_yaml.spec import JsonValue

_MOST_ROUNDS = 100
"""One broken line of YAML hides what is behind it, so each takes a round."""
_TAB_WIDTHS = (2, 4, 8)
_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_TABBED = re.compile(r" *\t[ \t]*(?=\S)")
_KEY_AND_TEXT = re.compile(r"\A( *[A-Za-z_][A-Za-z0-9_-]*: +)(\S.*?)( *)\Z")
_BROKEN_TEXT = frozenset({"unquoted-text", "bare-braces"})
_BROKEN_YAML = _BROKEN_TEXT | {
    *("syntax", "tab", "indentation", "unclosed-quote", "unclosed-bracket", "complex-key"),
    *("duplicate-key", "several-documents", "alias", "tag"),
}

_Key: TypeAlias = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class _Repair:
    diagnostic: Diagnostic
    edits: tuple[Edit, ...]

    @property
    def first(self) -> Span:
        return self.edits[0].span


@dataclass(frozen=True, slots=True)
class Repaired:
    """A file after its repairs."""

    data: bytes
    done: tuple[Diagnostic, ...]
    """What was repaired, as it was found; nothing when `data` is what came in."""
    compiled: Compiled
    """What the file is now."""


def repaired(data: bytes, path: Path, registry: ToolSource | None = None) -> Repaired:
    """Repair everything that is certain in the content of the agent file at `path`.

    The outcome is a fixed point: repairing it again changes nothing.
    """
    done: list[Diagnostic] = []
    data = _as_plain_utf8(data, path, done)
    compiled = compile_bytes(data, path, registry)
    refused: set[_Key] = set()
    for _ in range(_MOST_ROUNDS):
        chosen = _chosen(compiled, refused)
        if not chosen:
            break
        for attempt in (chosen, *([one] for one in chosen if len(chosen) > 1)):
            changed = _edited(data, attempt)
            then = compile_bytes(changed, path, registry)
            if all(_worked(one, attempt, compiled, then) for one in attempt):
                data, compiled = changed, then
                done.extend(one.diagnostic for one in attempt)
                break
        else:
            refused.update(_key(one.diagnostic) for one in chosen)
    return Repaired(data, tuple(done), compiled)


def certain_edits(
    data: bytes, path: Path, registry: ToolSource | None = None
) -> dict[Diagnostic, tuple[Edit, ...]]:
    """The edits that `repaired` begins with, by what they repair; all fit the file as it is.

    What broken YAML hides has none until that is repaired, nor has another encoding than UTF-8.
    """
    data = _as_plain_utf8(data, path, [])
    compiled = compile_bytes(data, path, registry)
    refused: set[_Key] = set()

    def work(attempt: Sequence[_Repair]) -> bool:
        then = compile_bytes(_edited(data, attempt), path, registry)
        return all(_worked(one, attempt, compiled, then) for one in attempt)

    while chosen := _chosen(compiled, refused):
        working = (
            chosen if work(chosen) else [one for one in chosen if len(chosen) > 1 and work([one])]
        )
        if working:
            return {one.diagnostic: one.edits for one in working}
        refused.update(_key(one.diagnostic) for one in chosen)
    return {}


def _as_plain_utf8(data: bytes, path: Path, done: list[Diagnostic]) -> bytes:
    mark, encoding = next((e for e in _ENCODINGS if data.startswith(e[0])), (b"", ""))
    if not mark or len(data) > MAX_FILE_BYTES:
        return data
    name = encoding.upper().removesuffix("-SIG")
    message = f"the file is {name} with a byte-order mark"
    found = Diagnostic("encoding", Severity.NOTE, message, Span(str(path), 1, 1, 1, 1))
    if encoding == "utf-8-sig":
        done.append(found)
        return data.removeprefix(mark)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return data
    done.append(found)
    return text.encode()


def _chosen(compiled: Compiled, refused: set[_Key]) -> list[_Repair]:
    """The repairs to try next, none of which touches what another touches."""
    found = [d for d in compiled.diagnostics if _key(d) not in refused]
    tabs = _tab_repairs(compiled, [d for d in found if d.id == "tab"])
    if tabs:
        return tabs
    broken = [
        _Repair(d, (edit,))
        for d in found
        if d.id in _BROKEN_TEXT and (edit := _quoted_line(compiled, d)) is not None
    ]
    if broken:
        return broken
    chosen: list[_Repair] = []
    end = (0, 0)
    # The files that an agent is made of besides its own are somebody else's.
    own = [
        _Repair(d, (d.fix,))
        for d in found
        if d.fix is not None and d.fix.span.path == str(compiled.path)
    ]
    for one in sorted(own, key=lambda repair: repair.first):
        if (one.first.line, one.first.column) >= end:
            chosen.append(one)
            end = (one.first.end_line, one.first.end_column)
    return chosen


def _key(diagnostic: Diagnostic) -> _Key:
    # No repair moves a line; columns do move, and only tabs are told apart by theirs.
    column = diagnostic.span.column if diagnostic.id == "tab" else 0
    return diagnostic.id, diagnostic.message, diagnostic.span.line, column


def _edited(data: bytes, repairs: Sequence[_Repair]) -> bytes:
    # Why: bytes that are not UTF-8 are for a person, and stay what they are until then.
    source = SourceText("", data.decode("utf-8", "surrogateescape"))
    text = source.text
    edits = [edit for repair in repairs for edit in repair.edits]
    for edit in sorted(edits, key=lambda e: e.span, reverse=True):
        span = edit.span
        start = source.offset(span.line, span.column)
        end = source.offset(span.end_line, span.end_column)
        text = text[:start] + edit.text + text[end:]
    return text.encode("utf-8", "surrogateescape")


def _worked(one: _Repair, attempt: Sequence[_Repair], before: Compiled, after: Compiled) -> bool:
    """Whether the diagnostic is gone, and no other has only taken its place."""
    key = _key(one.diagnostic)
    together = [_key(repair.diagnostic) for repair in attempt].count(key)
    earlier = [_key(d) for d in before.diagnostics].count(key)
    if [_key(d) for d in after.diagnostics].count(key) > earlier - together:
        return False
    line = one.diagnostic.span.line
    match one.diagnostic.id:
        case "tab" | "unquoted-text" | "bare-braces":
            known = {_key(d) for d in before.diagnostics}
            return not any(
                d.id in _BROKEN_YAML and d.id != "tab" and d.span.line <= line
                for d in after.diagnostics
                if _key(d) not in known
            )
        case "package-not-installed":
            # Another package than the one that is written is meant only if it has the tool.
            same_line = [d.id for d in after.diagnostics if d.span.line == line]
            return not {"unknown-tool", "package-unavailable"} & set(same_line)
        case _:
            return True


def _quoted_line(compiled: Compiled, diagnostic: Diagnostic) -> Edit | None:
    """The text behind a key in quotes, where it is one line and ends with it."""
    source = SourceText(str(compiled.path), compiled.source)
    number = diagnostic.span.line
    match = _KEY_AND_TEXT.match(source.line(number))
    if match is None:
        return None
    text = match.group(2)
    column = match.end(1) + 1
    # A comment, or a quote, bracket or block that was begun on purpose, is for a person.
    is_plain = " #" not in text and (text.startswith("{{") or text[0] not in "\"'[{#|>&?")
    if not is_plain or diagnostic.span.column < column or _goes_on(source, number):
        return None
    span = Span(str(compiled.path), number, column, number, column + len(text))
    return Edit(span, in_quotes(text))


def _goes_on(source: SourceText, number: int) -> bool:
    """Whether the value of a line may go on below it."""
    line = source.line(number)
    indent = len(line) - len(line.lstrip())
    for below in range(number + 1, source.line_count + 1):
        other = source.line(below)
        if other.strip():
            return len(other) - len(other.lstrip()) > indent and not other.lstrip().startswith("#")
    return False


def _tab_repairs(compiled: Compiled, tabs: Sequence[Diagnostic]) -> list[_Repair]:
    """Spaces for tabs: one between a key and its value, and in an indentation as many as keep
    the meaning, where every width of a tab has the same one."""
    source = SourceText(str(compiled.path), compiled.source)
    between = [tab for tab in tabs if source.line(tab.span.line)[: tab.span.column].strip()]
    if between:
        return [_Repair(tab, (_one_space(source, tab.span),)) for tab in between]
    if not tabs:
        return []
    readings = [(_values(source, edits), edits) for edits in map(_indented(source), _TAB_WIDTHS)]
    readable = [(values, edits) for values, edits in readings if values is not None]
    if not readable or any(values != readable[0][0] for values, _ in readable):
        return []
    return [_Repair(tabs[0], readable[0][1])]


def _one_space(source: SourceText, tab: Span) -> Edit:
    line = source.line(tab.line)
    end = tab.column
    while line[end : end + 1] in ("\t", " "):
        end += 1
    return Edit(tab._replace(end_column=end + 1), " ")


def _indented(source: SourceText) -> Callable[[int], tuple[Edit, ...]]:
    """For a width of a tab, the edits that write every indentation with spaces."""
    found = [
        (number, match.group())
        for number in range(1, source.line_count + 1)
        if (match := _TABBED.match(source.line(number))) is not None
    ]
    return lambda width: tuple(
        Edit(Span(source.path, number, 1, number, len(blank) + 1), blank.expandtabs(width))
        for number, blank in found
    )


def _values(source: SourceText, edits: Sequence[Edit]) -> list[JsonValue] | None:
    """What the file says with these edits, in a list; None when it cannot be read."""
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    for edit in edits:
        line = lines[edit.span.line - 1]
        lines[edit.span.line - 1] = edit.text + line[edit.span.end_column - 1 :]
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    document = read_document(source.path, data)
    if document.root is None or any(d.id != "tab" for d in document.diagnostics):
        return None
    return [document.root.value]
