"""A place where YAML breaks off hides no mistake of another key."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from capuchin_yaml.compiler.document import read_document
from capuchin_yaml.compiler.load import compile_bytes
from tests.compiler.corpus import VALID, compiled
from tests.compiler.packages import PaperSource

HEAD = "apiVersion: capuchin/v1\nname: shop\n"


def found(text: str) -> list[tuple[str, int]]:
    result = compile_bytes((HEAD + text).encode(), Path("agent.yaml"), PaperSource())
    assert result.spec is None
    return [(d.id, d.span.line) for d in result.diagnostics]


BROKEN = [
    'prompt: "Hi',
    "prompt: You: be kind",
    "prompt: {{ nobody }} is",
    "prompt: @you",
    "limits: {max_steps: 3",
    "limits:\n  max_steps: 3\n max_tool_calls: 4",
    "limits:\n\tmax_steps: 3",
    "nonsense",
    "- a",
]


@pytest.mark.parametrize("broken", BROKEN)
def test_mistakes_before_and_behind_a_broken_key_are_told_with_it(broken: str) -> None:
    lines = broken.count("\n") + 1
    told = found(f"vresion: 1.0.0\n{broken}\nprice: {{type: fre}}\n")

    assert ("unknown-key", 3) in told
    assert ("unknown-value", 4 + lines) in told
    assert any(4 <= line < 4 + lines for _, line in told)


@pytest.mark.parametrize("first", BROKEN)
@pytest.mark.parametrize("second", ["model: anthropic: opus", "listing: [a"])
def test_a_second_broken_key_is_told_with_the_first(first: str, second: str) -> None:
    told = found(f"{first}\n{second}\nprice: {{type: free}}\n")

    place = 3 + first.count("\n") + 1
    assert [line for _, line in told if line >= place] == [place]
    assert [line for _, line in told if line < place]


def test_nothing_is_said_of_what_a_broken_key_may_hold() -> None:
    assert found("variables: {a: {type: string}\nprompt: Hi {{ a }}\n") == [("unclosed-bracket", 3)]
    assert found("tools: [billing.lookup_order\napproval: {policy: allowlist, tools: [x.y]}\n") == [
        ("unclosed-bracket", 3)
    ]
    assert found('extends: "a.yaml\nlimits: {max_steps: many}\n') == [("unclosed-quote", 3)]
    assert found("prompt: |\nHi there\nvariables: {a: {type: string}}\n") == [("syntax", 4)]


BREAKS: dict[str, Callable[[str], str]] = {
    "a quote that is not closed": lambda line: line.replace(": ", ': "', 1),
    "a bracket that is not closed": lambda line: line.replace(": ", ": [", 1),
    "a tab": lambda line: f"\t{line}",
    "no colon": lambda line: line.replace(":", "", 1),
    "too much indentation": lambda line: f" {line}",
    "too many colons": lambda line: f"{line} a: b: c",
}
OF_YAML = {
    *("syntax", "tab", "indentation", "unclosed-quote", "unclosed-bracket", "complex-key"),
    *("duplicate-key", "alias", "tag", "unquoted-text", "bare-braces", "control-character"),
}


@pytest.mark.parametrize("how", BREAKS)
def test_one_broken_line_of_a_sound_file_is_all_that_is_told(how: str) -> None:
    told = []
    for path in VALID:
        sound = {d.id for d in compiled(path).diagnostics}
        lines = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
        for i, line in enumerate(lines):
            text = "\n".join([*lines[:i], BREAKS[how](line), *lines[i + 1 :]])
            if read_document("a.yaml", text.encode()).broken_at is not None:
                found = compile_bytes(text.encode(), path, PaperSource()).diagnostics
                told += [d for d in found if d.id not in OF_YAML | sound]

    assert told == []


def test_a_text_that_lacks_its_indentation_is_told_once() -> None:
    told = found("prompt: |\nYou are kind.\nYou are short.\nYou are here.\nprice: {type: fre}\n")

    assert told == [("syntax", 4), ("unknown-value", 7)]


def test_a_large_file_with_very_many_broken_keys_is_read_quickly() -> None:
    start = time.process_time()

    told = found("prompt: Hi.\n" + "listing: [a\n" * 100_000)

    assert len(told) < 100
    assert time.process_time() - start < 20
