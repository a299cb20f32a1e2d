"""Diagnostics as text, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capuchin_yaml.compiler.excerpt import cells
from capuchin_yaml.compiler.fix import certain_edits
from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.compiler.render import FORMATS, Format, as_json, concise, full, github, report
from capuchin_yaml.diagnostics import Annotation, Diagnostic, Edit, Severity, Span
from tests.compiler.packages import PaperSource

TEXT = "apiVersion: capuchin/v1\nname: a\nprompt: Hi\naproval: all\nlimits: {max_steps: 0}\n"


def diagnostic(
    line: int, column: int, end: int, message: str = "it is wrong", path: str = "a.yaml"
) -> Diagnostic:
    span = Span(path, line, column, line, end)
    return Diagnostic("some-id", Severity.ERROR, message, span, "type this")


def found(text: str = TEXT, path: str = "a.yaml") -> tuple[Diagnostic, ...]:
    return compile_bytes(text.encode(), Path(path), PaperSource()).diagnostics


def test_the_full_form_has_excerpt_caret_and_help() -> None:
    assert report(found(), {"a.yaml": TEXT}, "full") == (
        "error[unknown-key]: the agent has no key 'aproval'\n"
        "  --> a.yaml:4:1\n"
        "   |\n"
        " 4 | aproval: all\n"
        "   | ^^^^^^^\n"
        "   = help: did you mean 'approval'?\n"
        "\n"
        "error[out-of-range]: limits.max_steps must be at least 1, found the number 0\n"
        "  --> a.yaml:5:21\n"
        "   |\n"
        " 5 | limits: {max_steps: 0}\n"
        "   |                     ^\n"
        "   = help: write 1 or more\n"
    )


def test_the_concise_form_is_one_line_each() -> None:
    assert report(found(), {}, "concise") == (
        "a.yaml:4:1: error[unknown-key]: the agent has no key 'aproval'\n"
        "a.yaml:5:21: error[out-of-range]: limits.max_steps must be at least 1, "
        "found the number 0\n"
    )


def test_both_places_of_a_problem_are_shown() -> None:
    text = "a: 1\nb: 2\nc: 3\nd: 4\na: 5\n"
    problem = Diagnostic(
        "duplicate-key",
        Severity.ERROR,
        "the key 'a' is here twice",
        Span("a.yaml", 5, 1, 5, 2),
        None,
        (Annotation(Span("a.yaml", 1, 1, 1, 2), "first here"),),
    )

    assert full(problem, text) == (
        "error[duplicate-key]: the key 'a' is here twice\n"
        "  --> a.yaml:5:1\n"
        "   |\n"
        " 1 | a: 1\n"
        "   | - first here\n"
        "...\n"
        " 5 | a: 5\n"
        "   | ^\n"
    )


def test_a_place_in_another_file_is_a_note() -> None:
    problem = Diagnostic(
        "x",
        Severity.WARNING,
        "it clashes",
        Span("a.yaml", 1, 1, 1, 2),
        None,
        (Annotation(Span("b.yaml", 7, 1, 7, 2), "with this"),),
    )

    assert " = note: with this: b.yaml:7\n" in full(problem, "a: 1\n")


@pytest.mark.parametrize(
    ("line", "column", "end"),
    [
        ("漢字: xx", 5, 7),
        ("👋👋: xx", 5, 7),
        ("e\u0301e\u0301: xx", 7, 9),
        ("\t\ta: xx", 6, 8),
        ("\u202eab: xx", 6, 8),
        ("ｆｕｌｌ: xx", 7, 9),
    ],
)
def test_the_caret_stands_under_its_text_whatever_is_before_it(
    line: str, column: int, end: int
) -> None:
    _, _, _, shown, under, *_ = full(diagnostic(1, column, end), line).splitlines()

    assert cells(under[: under.index("^")]) == cells(shown[: shown.rindex("xx")])
    assert under.count("^") == 2


def test_a_long_line_is_cut_around_the_mark() -> None:
    line = "a" * 500 + "HERE" + "b" * 500
    _, _, _, shown, under, *_ = full(diagnostic(1, 501, 505), line).splitlines()

    assert len(shown) < 140
    assert shown.index("HERE") == under.index("^")
    assert shown.count("…") == 2


def test_a_mark_longer_than_a_line_is_cut_too() -> None:
    lines = full(diagnostic(1, 1, 1001), "a" * 1000).splitlines()

    assert all(len(line) < 140 for line in lines)


def test_a_mark_behind_the_end_of_a_line_is_one_caret() -> None:
    assert " 1 | ab\n   |   ^\n" in full(diagnostic(1, 3, 3), "ab\n")


def test_a_problem_of_an_unread_file_has_no_excerpt() -> None:
    assert full(diagnostic(1, 1, 1), "") == (
        "error[some-id]: it is wrong\n  --> a.yaml:1:1\n  = help: type this\n"
    )


HOSTILE = "\x1b[31m\u202e\u200b\x9b\r\n\x07"


@pytest.mark.parametrize("format_", FORMATS)
def test_no_form_lets_hidden_characters_through(format_: Format) -> None:
    problem = Diagnostic(
        "x",
        Severity.ERROR,
        f"bad {HOSTILE}",
        Span(f"{HOSTILE}.yaml", 1, 1, 1, 9),
        f"type {HOSTILE}",
        (Annotation(Span(f"{HOSTILE}.yaml", 1, 2, 1, 3), f"note {HOSTILE}"),),
    )
    text = report([problem], {f"{HOSTILE}.yaml": f"a{HOSTILE}b\n"}, format_, files=[HOSTILE])

    assert not set(text) & set("\x1b\u202e\u200b\x9b\r\x07")


def test_colour_comes_only_when_it_is_asked_for() -> None:
    plain = report(found(), {"a.yaml": TEXT}, "full")
    coloured = report(found(), {"a.yaml": TEXT}, "full", colour=True)

    assert "\x1b" not in plain
    assert "\x1b[1;31merror[unknown-key]\x1b[0m" in coloured


def test_the_json_form_has_the_public_keys() -> None:
    told = json.loads(report(found(), {}, "json", files=["a.yaml", "b.yaml"]))

    assert told["v"] == 1
    assert told["files"] == ["a.yaml", "b.yaml"]
    assert told["diagnostics"][0] == {
        "id": "unknown-key",
        "severity": "error",
        "path": "a.yaml",
        "line": 4,
        "column": 1,
        "end_line": 4,
        "end_column": 8,
        "message": "the agent has no key 'aproval'",
        "help": "did you mean 'approval'?",
        "annotations": [],
        "edits": [],
    }


def test_no_diagnostics_are_an_empty_answer() -> None:
    assert report([], {}, "full") == ""
    assert report([], {}, "concise") == ""
    assert report([], {}, "github") == ""
    assert as_json([], ["a.yaml"], {})["diagnostics"] == []
    assert json.loads(report([], {}, "sarif"))["runs"][0]["results"] == []


def test_the_github_form_is_a_command_of_one_line() -> None:
    line = github(diagnostic(2, 3, 4, "100% wrong: a,b\nreally", "a,b:c.yaml"))

    assert line == (
        "::error file=a%2Cb%3Ac.yaml,line=2,col=3,endLine=2,endColumn=4,title=some-id"
        "::100%25 wrong: a,b%0Areally%0Ahelp: type this"
    )


def test_the_sarif_form_has_regions_in_code_points_and_relative_paths() -> None:
    told = json.loads(report(found(path="my agents/é.yaml"), {}, "sarif"))
    (run,) = told["runs"]

    assert told["version"] == "2.1.0"
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "out-of-range",
        "unknown-key",
    ]
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] == "error"
    assert result["message"]["text"].endswith("\nhelp: did you mean 'approval'?")
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "my%20agents/%C3%A9.yaml"},
        "region": {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 8},
    }


def test_programs_get_the_edits_that_repair_a_mistake() -> None:
    first, second = found()
    edits = {first: (Edit(first.span, "approval"),)}

    told = json.loads(report([first, second], {}, "json", edits=edits))["diagnostics"]
    log = json.loads(report([first, second], {}, "sarif", edits=edits))["runs"][0]["results"]

    place = {"path": "a.yaml", "line": 4, "column": 1, "end_line": 4, "end_column": 8}
    assert told[0]["edits"] == [{**place, "text": "approval"}]
    assert told[1]["edits"] == []
    region = {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 8}
    assert log[0]["fixes"] == [
        {
            "description": {"text": "did you mean 'approval'?"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "a.yaml"},
                    "replacements": [
                        {"deletedRegion": region, "insertedContent": {"text": "approval"}}
                    ],
                }
            ],
        }
    ]
    assert "fixes" not in log[1]


def test_the_headline_stands_alone_on_one_line() -> None:
    assert "\n" not in concise(diagnostic(1, 1, 2, "a\nb"))


@pytest.mark.parametrize("format_", FORMATS)
def test_no_form_says_what_looks_like_a_secret(format_: Format) -> None:
    secret = "sk-ant-0123456789abcdefghij"
    text = (
        f"apiVersion: capuchin/v1\nname: {secret}: x\n{secret}: 1\nprompt: {{{{ {secret} }}}} it\n"
        f'listing: {{author: "{secret}", lisence: "\\x73{secret[1:]}", a: 1}}\n'
        f"description: postgres://ann:{secret}@db/x\nprice: {{type: {secret}}}\n"
    )
    path = Path("agent.yaml")
    result = compile_bytes(text.encode(), path)
    edits = certain_edits(text.encode(), path)

    said = report(result.diagnostics, result.sources, format_, edits=edits)

    assert len(result.diagnostics) > 3
    assert secret[3:] not in said
    assert "lisence" in said


@pytest.mark.parametrize("before", ["", "sk-ant-0123456789abcdefghij ", "x://a:bcdef@c 你 "])
def test_a_caret_is_under_its_text_beside_a_secret(before: str) -> None:
    text = f"apiVersion: capuchin/v1\nname: a\nprompt: '{before}{{{{ nobody }}}}'\n"
    result = compile_bytes(text.encode(), Path("agent.yaml"))

    shown = report(result.diagnostics, result.sources, "full").splitlines()

    at = next(i for i, line in enumerate(shown) if "nobody" in line and "|" in line)
    marks = [line for line in shown if "^^^^^^" in line and "^^^^^^^" not in line]
    assert cells(shown[at].partition("nobody")[0]) == marks[0].index("^")
