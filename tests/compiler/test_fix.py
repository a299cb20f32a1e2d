"""Repairs: what is certain is written, everything else stays byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.compiler.fix import certain_edits, repaired
from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.compiler.nearest import certain
from capuchin_yaml.compiler.source_text import SourceText
from tests.compiler.corpus import INVALID, VALID
from tests.compiler.packages import PaperSource

AGENT = Path("agent.yaml")
HEAD = "apiVersion: capuchin/v1\nname: a\nprompt: Hello.\n"


def fixed(text: str, head: str = HEAD) -> str:
    """What becomes of the text behind the head of an agent file."""
    result = repaired((head + text).encode(), AGENT, PaperSource()).data.decode()
    assert result.startswith(head)
    return result.removeprefix(head)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        # keys
        ("tols: [clock.now]\n", "tools: [clock.now]\n"),
        ("Limits: {max-steps: 3}\n", "limits: {max_steps: 3}\n"),
        ('"lmits": {}\n', "limits: {}\n"),
        ("listing: {licence: MIT}\n", "listing: {license: MIT}\n"),
        (
            "tools: [{use: billing.issue_refund, config: {curency: EUR}}]\n",
            "tools: [{use: billing.issue_refund, config: {currency: EUR}}]\n",
        ),
        # values of a fixed set
        ("approval: {policy: Denylist, tools: []}\n", "approval: {policy: denylist, tools: []}\n"),
        ("approval: {rules: [{then: dney}]}\n", "approval: {rules: [{then: deny}]}\n"),
        (
            "price: {type: percall, amount: '1', currency: USD}\n",
            "price: {type: per_call, amount: '1', currency: USD}\n",
        ),
        # tools
        ("tools: [clok.now]\n", "tools: [clock.now]\n"),
        ("tools: [billing.lookup-order]\n", "tools: [billing.lookup_order]\n"),
        # what YAML reads as something else
        ("version: 1.0\n", 'version: "1.0"\n'),
        ("description: 2024\n", 'description: "2024"\n'),
        ("listing: {tags: [yes, true, 0o17]}\n", 'listing: {tags: [yes, "true", "0o17"]}\n'),
        ("limits: {max_steps: '3'}\n", "limits: {max_steps: 3}\n"),
        (
            "price: {type: per_call, amount: 3E-6, currency: eur}\n",
            'price: {type: per_call, amount: "0.000003", currency: EUR}\n',
        ),
        (
            "price: {type: per_call, amount: 0.25, currency: USD}\n",
            'price: {type: per_call, amount: "0.25", currency: USD}\n',
        ),
        ("approval: {timeout: 2 Days}\n", "approval: {timeout: 48h}\n"),
        ("injected: tenant\n", "injected: [tenant]\n"),
        # broken YAML
        ("description: a: b\n", 'description: "a: b"\n'),
        ("description: @all 'of' you\n", "description: \"@all 'of' you\"\n"),
        ('description: %a "b" \\c\n', "description: '%a \"b\" \\c'\n"),
        ("limits:\t{}\n", "limits: {}\n"),
        ("limits:\n\tmax_steps: 3\n", "limits:\n  max_steps: 3\n"),
        ("limits:\n\tmax_steps:\t3\t# as\tis\n", "limits:\n  max_steps: 3 # as\tis\n"),
    ],
)
def test_a_certain_mistake_is_repaired(written: str, meant: str) -> None:
    assert fixed(written) == meant


@pytest.mark.parametrize(
    "text",
    [
        "tool: []\ntools: []\n",  # it is there already
        "tols: []\ntoolz: []\n",  # two that mean one
        "approval: {policy: aut}\n",  # less would ask
        "approval: {rules: [{then: alow}]}\n",
        "tools: [clock.now]\napproval: {policy: allowlist, tools: [clock.nwo]}\n",
        "tools: [billing.lookup_order]\napproval: {rules: "
        "[{tool: billing.lookup_ordr, then: allow}]}\n",
        "price: {type: fre}\n",
        "permissions: {policy: auto}\n",
        "approval: {mode: auto}\n",
        "tools: [clock.wipee]\n",  # it destroys
        "tools: [sql.shemas]\n",
        "tools: [billin.lookup]\n",  # that package has no such tool
        "apiVersion: capuchin/v1\n",  # twice
        "description: a: b # c\n",  # a comment, or text
        "description: a: b\n  and more\n",
        "description: 'a' b\n",
        "price: {type: per_call, amount: '3,50', currency: USD}\n",
        "price: {type: per_call, amount: $3, currency: USD}\n",
        "approval: {timeout: 30}\n",
        "limits: {max_steps: many}\n",
        "description: null\n",
        "description: |\n  x\nlimits:\n\tmax_steps: |\n\t  a\n\t\tb\n",  # widths differ
    ],
)
def test_what_needs_a_person_is_left(text: str) -> None:
    assert fixed(text) == text


def test_a_denylist_and_a_rule_that_denies_get_the_tool_that_was_meant() -> None:
    text = (
        "tools: [billing.lookup_order]\n"
        "approval:\n"
        "  policy: denylist\n"
        "  tools: [billing.lookup_ordr]\n"
        "  rules: [{tool: lookup_oder, then: deny}]\n"
    )

    assert fixed(text) == text.replace("ordr", "order").replace("oder", "order")


def test_comments_blank_lines_line_ends_and_quotes_elsewhere_stay() -> None:
    before = (
        "# one\r\n\r\napiVersion:   'capuchin/v1'   # two\r\nname: a\r\n\r\n"
        "promt:   |  # three\r\n   Hello.   \r\n\r\nversion:  1.0   # four\r\n"
    )

    after = repaired(before.encode(), AGENT).data.decode()

    assert after == before.replace("promt", "prompt").replace("1.0", '"1.0"')


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_file_with_a_byte_order_mark_becomes_plain_utf_8(encoding: str) -> None:
    text = HEAD.replace("Hello", "Grüezi 🙂").replace("\n", "\r\n")

    result = repaired(text.encode(encoding), AGENT)

    assert result.data == text.encode()
    assert [d.id for d in result.done] == ["encoding"]
    assert result.compiled.spec is not None


def test_a_stray_byte_is_left_for_a_person_and_the_rest_is_repaired() -> None:
    before = HEAD.encode() + b"description: caf\xe9\ntols: []\n"

    after = repaired(before, AGENT).data

    assert after == before.replace(b"tols", b"tools")


def test_the_first_form_of_an_alias_is_repaired_once() -> None:
    text = "variables:\n  a: &v {type: str, default: 1.5}\n  b: *v\n"

    assert fixed(text) == text.replace("str,", "string,").replace("1.5", '"1.5"')


@pytest.mark.parametrize("path", [*VALID, *INVALID], ids=lambda path: path.stem)
def test_a_repair_is_a_fixed_point_and_what_it_repaired_is_gone(path: Path) -> None:
    result = repaired(path.read_bytes(), path, PaperSource())
    again = repaired(result.data, path, PaperSource())

    assert again.data == result.data
    assert again.done == ()
    left = {(d.id, d.message, d.span.line) for d in result.compiled.diagnostics}
    gone = {(d.id, d.message, d.span.line) for d in result.done if d.id not in ("tab", "encoding")}
    assert not gone & left
    assert result.compiled == compile_bytes(result.data, path, PaperSource())


@pytest.mark.parametrize("path", [*VALID, *INVALID], ids=lambda path: path.stem)
def test_a_repair_touches_only_lines_with_a_diagnostic(path: Path) -> None:
    data = path.read_bytes()
    result = repaired(data, path, PaperSource())
    if any(d.id in ("encoding", "tab") for d in result.done):
        return

    before, after = data.split(b"\n"), result.data.split(b"\n")
    changed = {i for i, (a, b) in enumerate(zip(before, after, strict=True), start=1) if a != b}
    assert changed <= {d.span.line for d in result.done}


@pytest.mark.parametrize("path", [*VALID, *INVALID], ids=lambda path: path.stem)
def test_what_the_edits_make_of_a_file_is_repaired_to_the_same_as_the_file(path: Path) -> None:
    data = path.read_bytes()
    found = compile_bytes(data, path, PaperSource())
    whole = repaired(data, path, PaperSource())
    if any(d.id == "encoding" for d in found.diagnostics):
        return  # no place of such a file can be named

    edits = certain_edits(data, path, PaperSource())

    plain = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    text = SourceText(str(path), plain)
    for edit in sorted((e for some in edits.values() for e in some), key=lambda e: e.span)[::-1]:
        start = text.offset(edit.span.line, edit.span.column)
        end = text.offset(edit.span.end_line, edit.span.end_column)
        plain = plain[:start] + edit.text + plain[end:]
    after = repaired(plain.encode("utf-8", "surrogateescape"), path, PaperSource())
    assert after.data == whole.data
    assert set(edits) <= set(found.diagnostics)
    assert bool(edits) == any(d.id != "encoding" for d in whole.done)


def test_a_repair_that_would_only_move_a_mistake_is_no_edit_and_the_others_are() -> None:
    text = HEAD + "tools: [billin.lookup]\ntols: []\nlimit: {}\n"  # that package has no such tool

    edits = certain_edits(text.encode(), AGENT, PaperSource())

    assert [edit.text for some in edits.values() for edit in some] == ["limits"]


_PIECES = st.sampled_from(
    [
        *("tols", "tools", "aproval", "approval", ":", ": ", " ", "\n", "\t", "  ", "- ", "[", "]"),
        *("{", "}", "'", '"', "#", "auto", "al", "yes", "1.0", "1e-3", "&a", "*a", "{{ x }}", "@"),
        *("|\n", "clok.now", "billing.lookup_ordr", "deny", "\r\n", "\ufeff", "é", "limits"),
        "max_stepz",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=25))
def test_any_text_can_be_repaired_and_is_then_left_alone(pieces: list[str]) -> None:
    once = repaired((HEAD + "".join(pieces)).encode(), AGENT, PaperSource())
    again = repaired(once.data, AGENT, PaperSource())

    assert (again.data, again.done) == (once.data, ())


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("max_stepz", ["max_steps", "max_tool_calls"], "max_steps"),
        ("Max-Steps", ["max_steps", "max_stepz"], "max_steps"),
        ("get_order", ["set_order"], None),
        ("unlock_door", ["lock_door"], None),
        ("include", ["exclude"], None),
        ("capuchin/v2", ["capuchin/v1"], None),
        ("toools", ["tools"], "tools"),
        ("tolos", ["tools"], "tools"),
        ("toolx", ["tools", "toola"], None),
        ("descripshun", ["description"], None),
    ],
)
def test_only_a_slip_of_the_keyboard_is_certain(
    word: str, known: list[str], meant: str | None
) -> None:
    assert certain(word, known) == meant
