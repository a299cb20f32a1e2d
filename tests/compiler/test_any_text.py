"""Whatever a file holds: diagnostics or a spec, places inside the text, the same every time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.load import compile_bytes
from tests.compiler.corpus import FOLDER, INVALID, VALID
from tests.compiler.packages import PaperSource
from tests.fuzz.loader import AGENT, Broken, check_outcome, try_after, try_input, vocabulary

ROOT = FOLDER.parent.parent
HEAD = "apiVersion: capuchin/v1\nname: a\nprompt: b\n"

fragments = st.one_of(
    st.sampled_from(vocabulary()),
    st.sampled_from(["\n", "\n  ", "\n- ", ": ", ", ", "[", "]", "{", "}", '"', "'", "|\n  ", "#"]),
    st.text(max_size=5),
)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_gives_diagnostics_or_a_spec(text: str) -> None:
    try_input(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_diagnostics_or_a_spec(data: bytes) -> None:
    try_input(data)


@settings(max_examples=300, deadline=None)
@given(st.booleans(), st.lists(fragments, max_size=25))
def test_any_arrangement_of_the_words_of_the_format_does_too(
    is_agent: bool, pieces: list[str]
) -> None:
    try_input(((HEAD if is_agent else "") + "".join(pieces)).encode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*VALID, *INVALID]), st.integers(0, 5000), st.integers(0, 40), fragments)
def test_any_change_of_a_file_of_the_corpus_does_too(
    path: Path, start: int, length: int, piece: str
) -> None:
    data = path.read_bytes()
    start = min(start, len(data))

    try_input(data[:start] + piece.encode("utf-8", "surrogatepass") + data[start + length :])


@settings(max_examples=60, deadline=None)
@given(st.lists(fragments, max_size=15))
def test_what_came_out_can_be_printed_in_every_form_and_repaired(pieces: list[str]) -> None:
    try_after((HEAD + "".join(pieces)).encode("utf-8", "surrogatepass"))


def test_a_place_outside_the_text_would_be_found() -> None:
    compiled = compile_bytes(b"a", AGENT, PaperSource())
    [diagnostic] = compiled.diagnostics
    outside = replace(diagnostic, span=diagnostic.span._replace(end_column=9))

    with pytest.raises(Broken, match="outside line 1"):
        check_outcome(replace(compiled, diagnostics=(outside,)))


PROGRAM = """
from tests.compiler.test_any_text import outcomes
print(outcomes())
"""


def outcomes() -> str:
    """A digest of everything that compiling the corpus and the examples gives, in order."""
    found = hashlib.sha256()
    for path in (*VALID, *INVALID, *sorted((ROOT / "agents").glob("*.yaml"))):
        compiled = compile_bytes(path.read_bytes(), Path(path.name), PaperSource())
        found.update(repr(compiled.diagnostics).encode())
        if compiled.spec is not None:
            # Not sorted: the order of keys is a part of what must not change.
            found.update(json.dumps(asdict(compiled.spec)).encode())
            found.update(compiled.spec.definition_hash.encode())
    return found.hexdigest()


def test_compiling_does_not_depend_on_the_hash_seed() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "4242")
    }

    assert printed == {outcomes()}
