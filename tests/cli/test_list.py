"""`capuchin list`: the conversations of a project."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.program import PROGRAM, Project, wait_until

KEYS = {"v", "conversation", "agent", "status", "waiting", "title", "updated_at"}


def listed(shop: Project, conversation: str) -> dict[str, object]:
    """The row of a conversation, once the server's lists have it."""
    rows: list[dict[str, object]] = []

    def has_come() -> bool:
        found = shop.run("list", "--json", "--limit", "1000").json
        rows[:] = [row for row in found if row["conversation"] == conversation]
        return bool(rows)

    wait_until(has_come)
    return rows[0]


def test_json_has_one_object_for_each_conversation(shop: Project) -> None:
    conversation = shop.run("send", "notes", "a title", "--json").json["conversation"]

    row = listed(shop, conversation)

    assert set(row) >= KEYS
    assert (row["v"], row["agent"], row["title"]) == (1, "notes", "a title")
    assert row["waiting"] == 0


def test_what_waits_is_counted_and_can_be_asked_for(shop: Project) -> None:
    conversation = shop.run("send", "notes", "note list", "--json").json["conversation"]
    wait_until(lambda: listed(shop, conversation)["waiting"] == 1)

    rows = shop.run("list", "--json", "--status", "waiting").json

    assert conversation in [row["conversation"] for row in rows]
    assert {row["status"] for row in rows} == {"waiting"}


def test_titles_are_one_visible_line(shop: Project) -> None:
    shop.run("send", "notes", "evil\x1b[2J\u202e\nline")
    ran = shop.run("list", "--limit", "1000")

    assert ran.code == 0
    assert not {"\x1b", "\u202e"} & set(ran.out)


def test_an_agent_that_nobody_talked_with_has_none(shop: Project) -> None:
    ran = shop.run("list", "--agent", "nobody", "--json")

    assert (ran.code, ran.json) == (0, [])


@pytest.mark.parametrize("args", [["list"], ["list", "--json"], ["inbox"], ["doctor"]])
def test_a_reader_that_leaves_and_a_full_disk_are_told_apart(
    args: list[str], shop: Project
) -> None:
    command = f"{' '.join(PROGRAM)} {' '.join(args)}"
    shop.run("send", "notes", "note pipes")
    script = (
        f"{command} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}; {command} >/dev/full; echo $?"
    )
    done = subprocess.run(
        script,
        shell=True,
        executable="/bin/bash",
        cwd=shop.folder,
        env={**shop.environ, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["0", "1"]
    assert done.stderr == "error: cannot write the answer: No space left on device\n"


def test_lists_and_inbox_answer_while_the_worker_does_not_and_show_says_so(
    project: Project,
) -> None:
    import os
    import signal

    with project.up() as up:
        asked = project.run("send", "notes", "note milk", "--json").json
        wait_until(lambda: bool(project.run("inbox", "--json").json))
        [worker] = up.workers()
        os.kill(worker, signal.SIGSTOP)
        try:
            rows = project.run("list", "--json").json
            items = project.run("inbox", "list", "--json").json
            shown = project.run("show", asked["conversation"])
        finally:
            os.kill(worker, signal.SIGCONT)

    assert [row["conversation"] for row in rows] == [asked["conversation"]]
    assert [item["tool"] for item in items] == ["probe.note"]
    assert (shown.code, shown.out) == (3, "")
    assert "capuchin up" in shown.err


def test_without_a_worker_a_message_names_it_and_what_to_type(shop: Project) -> None:
    ran = shop.run("send", "notes", "hello", CAPUCHIN_PROJECT="lonely")

    assert (ran.code, ran.out) == (3, "")
    assert "worker" in ran.err
    assert "capuchin worker" in ran.err or "capuchin up" in ran.err
