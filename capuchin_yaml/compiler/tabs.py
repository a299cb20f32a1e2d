"""Tabs where YAML takes only spaces, all of a file and not only the first one it stumbles over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import yaml

from capuchin_yaml.compiler.source_text import SourceText
from capuchin_yaml.compiler.syntax import tab_at
from capuchin_yaml.diagnostics import Diagnostic

Ranges: TypeAlias = Sequence[tuple[int, int]]

_INDENTED_BY_TAB = re.compile(r"^\t[ \t]*(?=[^\s#])", re.MULTILINE)


def scanned_texts(text: str, loader: Any) -> Ranges:
    """Where the texts stand that end before the place where YAML stumbles."""
    found: list[tuple[int, int]] = []
    try:
        for token in yaml.scan(text, loader):
            if isinstance(token, yaml.ScalarToken):
                found.append((token.start_mark.index, token.end_mark.index))
    except yaml.YAMLError:
        pass  # it is reported already
    return found


def indenting_tabs(source: SourceText, start: int, end: int) -> Iterator[Diagnostic]:
    """Tabs between two places that begin a line: there is no text that they could be a part of."""
    for match in _INDENTED_BY_TAB.finditer(source.text, start, end):
        yield tab_at(source, match.start())


def tab_diagnostics(source: SourceText, scalar_ranges: Ranges, until: int) -> Iterator[Diagnostic]:
    """Tabs before the offset `until` that stand between keys and values.

    Those inside texts and comments are fine.
    """
    covered = iter(sorted(scalar_ranges))
    start, end = next(covered, (len(source.text), len(source.text)))
    reported_line = 0
    for match in re.finditer("\t", source.text):
        at = match.start()
        if at >= until:
            return
        while end <= at:
            start, end = next(covered, (len(source.text), len(source.text)))
            if start == end == len(source.text):
                break
        if start <= at < end:
            continue
        line, column = source.position(at)
        text = source.line(line)
        if line == reported_line or not text[column - 1 :].strip() or _in_comment(text, column):
            continue
        reported_line = line
        yield tab_at(source, at)


def _in_comment(line: str, column: int) -> bool:
    before = line[: column - 1]
    return bool(re.search(r"(^|\s)#", before)) and not re.search(r"[\"'].*#.*[\"']", line)
