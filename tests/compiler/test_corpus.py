"""Every file of the corpus gets exactly the report that lies beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.diagnostics import Severity
from tests.compiler.corpus import INVALID, VALID, compiled, expected, reported
from tests.compiler.packages import PaperSource


def _name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", INVALID, ids=_name)
def test_an_invalid_file_gets_its_report_and_no_spec(path: Path) -> None:
    result = compiled(path)

    assert result.spec is None
    assert any(d.severity is Severity.ERROR for d in result.diagnostics)
    assert reported(path) == expected(path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", VALID, ids=_name)
def test_a_valid_file_becomes_a_spec_with_at_most_its_warnings(path: Path) -> None:
    result = compiled(path)

    assert result.spec is not None
    warned = expected(path).read_text(encoding="utf-8") if expected(path).exists() else ""
    assert reported(path) == warned


@pytest.mark.parametrize("path", [*VALID, *INVALID], ids=_name)
def test_diagnostics_are_in_file_order_and_none_is_said_twice(path: Path) -> None:
    found = compiled(path).diagnostics

    assert list(found) == sorted(found, key=lambda d: d.span)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("path", [*VALID, *INVALID], ids=_name)
def test_every_diagnostic_says_what_to_type(path: Path) -> None:
    assert [d for d in compiled(path).diagnostics if not d.help] == []


@pytest.mark.parametrize("path", [*VALID, *INVALID], ids=_name)
def test_every_span_lies_inside_the_file(path: Path) -> None:
    result = compiled(path)

    for diagnostic in result.diagnostics:
        for span in (diagnostic.span, *(a.span for a in diagnostic.annotations)):
            lines = result.sources[span.path].replace("\r\n", "\n").split("\n")
            assert 1 <= span.line <= span.end_line <= len(lines)
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1
            assert 1 <= span.end_column <= len(lines[span.end_line - 1]) + 1
            assert (span.line, span.column) <= (span.end_line, span.end_column)


def test_the_corpus_reports_do_not_depend_on_the_place_of_the_file() -> None:
    path = next(p for p in INVALID if p.stem == "six-mistakes")
    elsewhere = compile_bytes(path.read_bytes(), Path("/no/such/folder/a.yaml"), PaperSource())

    here = [(d.id, d.message, d.span.line, d.span.column) for d in compiled(path).diagnostics]
    assert here == [(d.id, d.message, d.span.line, d.span.column) for d in elsewhere.diagnostics]
