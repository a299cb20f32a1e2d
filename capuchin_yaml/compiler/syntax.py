"""What the YAML parser stumbled over, in the words of someone who writes the file."""

from __future__ import annotations

import re
from typing import Protocol

import yaml

from capuchin_yaml.compiler.source_text import SourceText
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Severity, Span

_VALUE = re.compile(r"^\s*(?:- +)*(?:[^\s#:\"'{\[][^:]*:[ \t]+)?")
_ENDING = ("*", '"', "'", "[", "{")
"""What may begin a value that has an end of its own, so that no text can follow."""
_QUOTING = "put the whole value in quotes, or in a | block on the next line"


class _Mark(Protocol):
    index: int
    line: int
    column: int


def broken_at(error: yaml.MarkedYAMLError) -> int | None:
    """Where the value begins that cannot be read; None when nothing behind it can be read."""
    problem, context = error.problem or "", error.context or ""
    if error.problem_mark is None or "<document start>" in problem:
        return None
    mark: _Mark = error.problem_mark
    if error.context_mark is not None and ("scanning" in context or "flow" in context):
        mark = error.context_mark
    return mark.index


def explain_syntax_error(source: SourceText, error: yaml.MarkedYAMLError) -> Diagnostic:
    """One diagnostic for the place where the parser gave up."""
    mark: _Mark | None = error.problem_mark
    context: _Mark | None = error.context_mark
    at = mark.index if mark is not None else 0
    problem = error.problem or "cannot be read"
    special = _special(source, problem, error.context or "", at, context)
    if special is not None:
        return special
    if "expected ':'" in problem and context is not None:
        return _error(
            "syntax",
            "this line is neither a key nor a part of the value before it",
            source.line_span(context.line + 1),
            "a key needs ': ' after it; more of a text needs deeper indentation",
        )
    annotations: tuple[Annotation, ...] = ()
    # The whole file started at its first key, which tells nobody anything.
    if context is not None and context.index != at and context.index > 0:
        annotations = (Annotation(_place(source, context.index), "this started here"),)
    return Diagnostic(
        "syntax",
        Severity.ERROR,
        f"the YAML cannot be read here: {_plain_words(problem)}",
        _place(source, at),
        _help(problem),
        annotations,
    )


def _special(
    source: SourceText, problem: str, context: str, at: int, context_mark: _Mark | None
) -> Diagnostic | None:
    line_number, column = source.position(min(at, len(source.text)))
    line = source.line(line_number)
    char = source.text[at : at + 1]
    if "tab character" in problem or ("cannot start any token" in problem and char == "\t"):
        return tab_at(source, at)
    if "cannot start any token" in problem:
        return _error(
            "unquoted-text",
            f"a value cannot start with {char!r} unless it is quoted",
            _place(source, at),
            _QUOTING,
        )
    if "scanning an alias" in context or "scanning an anchor" in context:
        sign = "*" if "alias" in context else "&"
        start = context_mark.index if context_mark is not None else at
        return _error(
            "unquoted-text",
            f"a value cannot start with {sign!r} unless it is quoted",
            _place(source, start),
            _QUOTING,
        )
    if "quoted scalar" in context and "end of stream" in problem and context_mark is not None:
        return _error(
            "unclosed-quote",
            "this quote is never closed",
            source.span(context_mark.index, context_mark.index + 1),
            f"close it with {source.text[context_mark.index]}",
        )
    return _special_line(source, problem, line, line_number, column, at) or _unclosed(
        source, context, at, context_mark
    )


def _special_line(
    source: SourceText, problem: str, line: str, line_number: int, column: int, at: int
) -> Diagnostic | None:
    value = _VALUE.match(line)
    value_start = value.end() if value else 0
    if line[value_start:].startswith("{{") and column > value_start:
        start = source.offset(line_number, value_start + 1)
        return _error(
            "bare-braces",
            "YAML reads '{{' as a map here, not as a template",
            source.span(start, start + 2),
            'put the whole value in quotes ("{{ … }}") or in a | block',
        )
    if "mapping values are not allowed" in problem:
        if line[:column].count(":") == 1:
            return _error(
                "indentation",
                "this key is indented deeper than the value before it allows",
                source.line_span(line_number),
                "line it up with the keys around it",
            )
        return _error(
            "unquoted-text",
            "a text with ': ' in it must be quoted",
            source.span(at, at + 1),
            _QUOTING,
        )
    if "did not find expected key" in problem and line[value_start : value_start + 1] in _ENDING:
        start = source.offset(line_number, value_start + 1)
        if at > start:
            return _error(
                "unquoted-text",
                f"a value that starts with {line[value_start]!r} cannot go on after it ends",
                _place(source, at),
                _QUOTING,
            )
    return None


def _unclosed(
    source: SourceText, context: str, at: int, context_mark: _Mark | None
) -> Diagnostic | None:
    start = context_mark.index if context_mark is not None else 0
    if not source.text[at:].strip() and source.text[:at].rstrip().endswith(("[", "{")):
        # The text ends right behind the bracket, which the parser does not say.
        start = max(len(source.text[:at].rstrip()) - 1, 0)
    elif context_mark is None or "flow" not in context:
        return None
    opened = source.text[start : start + 1]
    closing = {"[": "]", "{": "}"}.get(opened)
    if closing is None:
        return None
    goes_on = _place(source, at)
    opening = source.span(start, start + 1)
    return Diagnostic(
        "unclosed-bracket",
        Severity.ERROR,
        f"this {opened!r} is never closed",
        opening,
        f"close it with {closing}, or write a comma between the values",
        (Annotation(goes_on, "it cannot go on like this"),) if goes_on != opening else (),
    )


def _help(problem: str) -> str:
    for technical, help_ in (
        ("did not find expected key", "line it up with the keys around it"),
        ("did not find expected '-' indicator", "line it up with the '- ' above it"),
        ("block sequence entries are not allowed", "begin a new line before the '- '"),
        ("<document start>", "begin every key at the top in the first column"),
        ("unknown escape character", r"write \\ for a backslash, or use single quotes"),
        ("comment or line break", "begin a new line, and indent the text deeper than the key"),
        ("mapping keys are not allowed", _QUOTING),
    ):
        if technical in problem:
            return help_
    return _QUOTING


def _plain_words(problem: str) -> str:
    for technical, plain in (
        ("did not find expected key", "expected a key; is the indentation right?"),
        (
            "did not find expected '-' indicator",
            "expected another '- ' item; is the indentation right?",
        ),
        ("block sequence entries are not allowed", "a '- ' list starts on the next line"),
        (
            "did not find expected <document start>",
            "expected the end of the file; is the indentation right?",
        ),
        (
            "found unknown escape character",
            "unknown escape after '\\'; in single quotes it is plain text",
        ),
        ("did not find expected node content", "expected a value"),
        (
            "did not find expected comment or line break",
            "the text of a | or > block starts on the next line",
        ),
        ("mapping keys are not allowed", "a text that starts with '? ' must be quoted"),
    ):
        if technical in problem:
            return plain
    return problem


def tab_at(source: SourceText, at: int) -> Diagnostic:
    """What to say of one tab."""
    return _error(
        "tab",
        "a tab stands where YAML takes only spaces",
        source.span(at, at + 1),
        "replace the tab by spaces",
    )


def _place(source: SourceText, at: int) -> Span:
    """One character, or the last one of the text when the parser stopped behind it."""
    text = source.text
    if at >= len(text) or text[at] in "\r\n":
        before = len(text[:at].rstrip())
        if at >= len(text):
            return source.span(max(before - 1, 0), before)
    return source.span(at, at + 1)


def _error(id_: str, message: str, span: Span, help_: str | None) -> Diagnostic:
    return Diagnostic(id_, Severity.ERROR, message, span, help_)
