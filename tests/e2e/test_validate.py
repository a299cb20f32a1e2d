"""`capuchin validate`: six mistakes of six kinds, each at its line and column, in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Ran, run

FILE = """\
apiVersion: capuchin/v1
name: Billing Agent
verison: 1.2.0
prompt: |
  You help {{ compny }}.
  Be kind.
variables: {company: {default: Acme}}
tools:
  - billing.lookup_order
  - billing.isue_refund
approval:
  policy: denylst
  tools: [billing.lookup_order]
limits: {max_steps: "8"}
"""
MISTAKES = {
    (2, 7): ("Billing Agent", "billing-agent"),
    (3, 1): ("verison", "version"),
    (5, 15): ("compny", "company"),
    (10, 5): ("isue_refund", "billing.issue_refund"),
    (12, 11): ("denylst", "denylist"),
    (14, 21): ("'8'", "max_steps: 8"),
}
"""Line and column of each mistake: what is said to be wrong there, and what to type instead."""


def validated(folder: Path, *args: str) -> Ran:
    """What `validate` says of the file."""
    (folder / "agent.yaml").write_text(FILE)
    return run("validate", *args, "agent.yaml", cwd=folder)


def test_the_concise_form_is_one_line_for_each_in_file_order(tmp_path: Path) -> None:
    ran = validated(tmp_path, "--format", "concise")

    assert ran.code == 1
    places = [tuple(map(int, line.split(":")[1:3])) for line in ran.out.splitlines()]
    assert places == list(MISTAKES)
    for line, (wrong, _) in zip(ran.out.splitlines(), MISTAKES.values(), strict=True):
        assert ": error[" in line
        assert wrong in line


def test_the_full_form_points_at_each_with_a_caret_and_something_to_type(tmp_path: Path) -> None:
    ran = validated(tmp_path)

    assert ran.code == 1
    reports = ran.out.strip().split("\n\n")
    assert len(reports) == len(MISTAKES)
    for report, ((line, column), said) in zip(reports, MISTAKES.items(), strict=True):
        head, place, *_, excerpt, carets, help_ = report.splitlines()
        assert head.startswith("error[")
        assert said[0] in head
        assert place.endswith(f"agent.yaml:{line}:{column}")
        source = excerpt.partition("| ")[2]
        assert source == FILE.splitlines()[line - 1]
        assert carets.partition("| ")[2].index("^") == column - 1
        assert help_.lstrip().startswith("= help:")
        assert said[1] in help_


def test_the_json_form_holds_the_same_places(tmp_path: Path) -> None:
    found = validated(tmp_path, "--json").json["diagnostics"]

    assert [(d["line"], d["column"]) for d in found] == list(MISTAKES)
    assert all(d["severity"] == "error" and d["id"] and d["message"] for d in found)


@pytest.mark.parametrize("name", ["agent.yaml", "nothing.yaml"])
def test_no_form_of_a_refusal_starts_or_writes_anything(name: str, tmp_path: Path) -> None:
    validated(tmp_path)

    ran = run("validate", name, cwd=tmp_path)

    assert ran.code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["agent.yaml"]
