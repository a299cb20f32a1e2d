"""`inbox approve` with other arguments or with a rule beside it, and the grants that come of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Project, wait_until
from tests.cli.terminal import Terminal
from tests.cli.test_inbox import asked, notes


def editor(tmp_path: Path, text: str) -> str:
    """A program that writes `text` into the file it is given."""
    file = tmp_path / "editor"
    file.write_text(f"#!/bin/sh\ncat > \"$1\" <<'END'\n{text}\nEND\n")
    file.chmod(0o755)
    return str(file)


def test_a_call_runs_with_the_arguments_that_were_given_instead(shop: Project) -> None:
    item = asked(shop, "wrongword")

    ran = shop.run(
        "inbox",
        "approve",
        item["id"],
        "--digest",
        item["digest"],
        "--args",
        '{"word": "rightword"}',
    )

    assert (ran.code, ran.out.startswith("edit: probe.note")) == (0, True)
    wait_until(lambda: "rightword" in notes(shop))
    assert "wrongword" not in notes(shop)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{", "no JSON"),
        ('{"word": 7}', "cannot run"),
        ('{"word": "a", "word": "b"}', "is there twice"),
        ('{"word": "still"}', "nothing is changed"),
    ],
)
def test_arguments_that_cannot_run_decide_nothing(shop: Project, given: str, told: str) -> None:
    item = asked(shop, "still")

    ran = shop.run("inbox", "approve", item["id"], "--digest", item["digest"], "--args", given)

    assert ran.code == 1
    assert told in ran.err
    assert shop.run("inbox", "show", item["id"], "--json").json["decided"] is None


def test_on_a_terminal_the_difference_is_shown_before_the_word_is_asked_for(
    shop: Project, tmp_path: Path
) -> None:
    item = asked(shop, "before")
    environ = {**shop.environ, "EDITOR": editor(tmp_path, '{"word": "after"}'), "VISUAL": ""}
    with Terminal(
        "inbox", "approve", item["id"], "--edit", cwd=shop.folder, environ=environ
    ) as terminal:
        terminal.wait_for("- word  ")
        terminal.wait_for('"before"')
        terminal.wait_for("+ word  ")
        terminal.wait_for('"after"')
        terminal.wait_for("type approve to approve this: ")
        terminal.type("approve")
        terminal.wait_for("edit: probe.note")
    wait_until(lambda: "after" in notes(shop))

    assert "before" not in notes(shop)


def test_an_approve_may_allow_the_tool_beforehand_and_that_is_taken_back(shop: Project) -> None:
    item = asked(shop, "first")
    talk = item["id"].partition(":")[0]

    shop.run(
        *("inbox", "approve", item["id"], "--digest", item["digest"]),
        *("--remember", "tool", "--times", "5"),
    )
    wait_until(lambda: "first" in notes(shop))
    [grant] = shop.run("inbox", "grants", talk, "--json").json
    listed = shop.run("inbox", "grants").out
    second = shop.run("send", talk, "note second")
    taken = shop.run("inbox", "revoke", grant["id"])
    again = shop.run("inbox", "revoke", grant["id"])
    third = shop.run("send", talk, "note third")

    assert (grant["scope"], grant["tool"], grant["left"]) == ("tool", "probe.note", 5)
    assert "every call of probe.note runs without asking up to 5 more times" in listed
    assert (second.code, taken.code, again.code, third.code) == (0, 0, 1, 4)
    assert "such calls ask again" in taken.out


def test_what_is_remembered_is_shown_as_a_rule_before_the_word(shop: Project) -> None:
    item = asked(shop, "ruled")
    with Terminal(
        *("inbox", "approve", item["id"], "--remember", "call", "--times", "2"),
        cwd=shop.folder,
        environ=shop.environ,
    ) as terminal:
        terminal.wait_for("this very call of probe.note runs without asking up to 2 more times")
        terminal.wait_for("still asks")
        terminal.wait_for("type approve to approve this: ")
        terminal.type("")
        terminal.wait_for("nothing was decided")


@pytest.mark.parametrize(
    "options",
    [
        ("--remember", "tool"),
        ("--times", "3"),
        ("--remember", "tool", "--times", "3", "--args", "{}"),
        ("--edit", "--args", "{}"),
        ("--edit",),
    ],
)
def test_options_that_do_not_say_what_they_mean_are_wrong_usage(
    shop: Project, options: tuple[str, ...]
) -> None:
    ran = shop.run("inbox", "approve", "x:a1", "--digest", "0" * 8, *options)

    assert ran.code == 2


def test_a_file_holds_the_arguments(shop: Project, tmp_path: Path) -> None:
    item = asked(shop, "spoken")
    (tmp_path / "args.json").write_text('{"word": "written"}')

    given = f"@{tmp_path / 'args.json'}"
    shop.run("inbox", "approve", item["id"], "--digest", item["digest"], "--args", given)
    missing = shop.run("inbox", "approve", item["id"], "--digest", item["digest"], "--args", "@no")

    wait_until(lambda: "written" in notes(shop))
    assert missing.code == 2
    assert "cannot be read" in missing.err


def test_edit_runs_a_call_with_other_arguments_and_shows_the_difference(shop: Project) -> None:
    item = asked(shop, "drafted")
    given = ("--digest", item["digest"], "--args", '{"word": "finished"}')

    unsure = shop.run("inbox", "edit", item["id"], *given)
    unseen = shop.run("inbox", "edit", item["id"], "--args", '{"word": "finished"}', "--yes")
    wrong = shop.run("inbox", "edit", item["id"], *given[:3], '{"word": 7}', "--yes")
    ran = shop.run("inbox", "edit", item["id"], *given, "--yes")
    again = shop.run("inbox", "edit", item["id"], *given, "--yes")

    assert (unsure.code, "--yes" in unsure.err) == (2, True)
    assert (unseen.code, "--digest D" in unseen.err) == (2, True)
    assert (wrong.code, "cannot run" in wrong.err) == (1, True)
    assert (ran.code, ran.out.startswith("edit: probe.note")) == (0, True)
    assert '- word  "drafted"' in ran.err
    assert '+ word  "finished"' in ran.err
    assert again.code == 1
    wait_until(lambda: "finished" in notes(shop))
    assert "drafted" not in notes(shop)


def test_edit_opens_the_editor_on_a_terminal_and_asks_for_the_word(
    shop: Project, tmp_path: Path
) -> None:
    item = asked(shop, "sketch")
    environ = {**shop.environ, "EDITOR": editor(tmp_path, '{"word": "picture"}'), "VISUAL": ""}
    with Terminal("inbox", "edit", item["id"], cwd=shop.folder, environ=environ) as terminal:
        terminal.wait_for('"picture"')
        terminal.wait_for("type approve to run this: ")
        terminal.type("yes")
        terminal.wait_for("nothing was decided")

    assert shop.run("inbox", "show", item["id"], "--json").json["decided"] is None
    assert "picture" not in notes(shop)
