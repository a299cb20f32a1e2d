"""Every promise names the tests that prove it, and those tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "guarantees.md"
PROMISED = PAGE.read_text().partition("## Promised")[2].partition("\n## ")[0]
ROWS = [line for line in PROMISED.splitlines() if line.startswith("| ")][1:]
TEST = re.compile(r"`(?:([\w/]+)::)?(test_\w+)`")


@cache
def known_tests(file: str) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, functions))


def test_there_are_promises() -> None:
    assert len(ROWS) > 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_each_promise_is_proved_by_tests_that_exist(row: str) -> None:
    proofs, file = TEST.findall(row.split("|")[3]), ""
    missing = []
    for named, test in proofs:
        file = named or file
        if test not in known_tests(file):
            missing.append(f"{file}::{test}")

    assert proofs
    assert missing == []
