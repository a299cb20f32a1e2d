"""`capuchin explain`: the page of a diagnostic."""

from __future__ import annotations

from tests.cli.program import Project


def test_explain_prints_the_page_of_an_id(project: Project) -> None:
    ran = project.run("explain", "duplicate-key")

    assert ran.code == 0
    assert ran.out.startswith("duplicate-key\n\n")
    assert "```yaml" in ran.out


def test_explain_alone_lists_every_id(project: Project) -> None:
    ran = project.run("explain")

    ids = [line.split()[0] for line in ran.out.splitlines()]
    assert {"unknown-key", "rule-type", "alias-bomb"} <= set(ids)


def test_explain_of_nothing_known_is_wrong_usage(project: Project) -> None:
    ran = project.run("explain", "dupliate-key")

    assert ran.code == 2
    assert "did you mean 'duplicate-key'?" in ran.err


def test_explain_as_json(project: Project) -> None:
    assert project.run("explain", "tab", "--json").json["id"] == "tab"
