"""`capuchin inbox`: what waits for a person, and decisions bound to what was shown."""

from __future__ import annotations

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.program import PROGRAM, Project, agent_text, wait_until
from tests.cli.terminal import Terminal

KEYS = {
    *("v", "id", "kind", "conversation", "agent", "tool", "alias", "summary"),
    *("args", "digest", "revision", "requested_at", "due", "then"),
}


def asked(shop: Project, word: str) -> dict[str, str]:
    """A call that waits for approval."""
    [item] = shop.run("send", "notes", f"note {word}", "--json").json["items"]
    found: dict[str, str] = item
    return found


def notes(shop: Project) -> list[str]:
    """What was really written down."""
    return (shop.data / "notes").read_text().split() if (shop.data / "notes").exists() else []


def test_list_has_every_waiting_item_with_the_documented_keys(shop: Project) -> None:
    item = asked(shop, "listed")
    wait_until(lambda: item["id"] in [row["id"] for row in shop.run("inbox", "--json").json])

    [row] = [r for r in shop.run("inbox", "list", "--json").json if r["id"] == item["id"]]

    assert set(row) >= KEYS
    assert (row["v"], row["kind"], row["tool"], row["agent"]) == (
        1,
        "approval",
        "probe.note",
        "notes",
    )
    assert (row["args"], row["digest"]) == ({"word": "listed"}, item["digest"])
    assert item["id"] in shop.run("inbox").out


def test_show_prints_all_that_a_decision_is_bound_to(shop: Project) -> None:
    item = asked(shop, "shown")

    ran = shop.run("inbox", "show", item["id"])

    assert ran.code == 0
    for part in (
        "probe.note",
        '{"word":"shown"}',
        "capuchin-probe 1.0",
        "write",
        item["digest"],
        f"capuchin inbox approve {item['id']} --digest {item['digest'][:12]}",
    ):
        assert part in ran.out


def test_arguments_with_hidden_marks_are_shown_visibly(shop: Project) -> None:
    item = asked(shop, "evil\u202e\u200b")

    ran = shop.run("inbox", "show", item["id"])
    listing = shop.run("inbox")

    assert "evil\\u{202e}\\u{200b}" in ran.out
    assert not {"\u202e", "\u200b"} & set(ran.out + listing.out)


def test_approve_with_the_digest_runs_the_call_once(shop: Project) -> None:
    item = asked(shop, "approved")

    ran = shop.run("inbox", "approve", item["id"], "--digest", item["digest"][:8], "--json")

    answer = ran.json
    assert ran.code == 0
    assert (answer["v"], answer["id"], answer["decision"]) == (1, item["id"], "approve")
    assert (answer["by"], answer["accepted"]) == ("ann", True)
    wait_until(lambda: "approved" in notes(shop))
    assert notes(shop).count("approved") == 1


def test_deny_with_a_reason_goes_to_the_model_and_nothing_runs(shop: Project) -> None:
    item = asked(shop, "denied")

    ran = shop.run("inbox", "deny", item["id"], "--digest", item["digest"], "--reason", "too much")

    conversation = item["id"].partition(":")[0]
    wait_until(lambda: shop.run("show", conversation, "--json").json["status"] == "idle")
    shown = shop.run("show", conversation, "--json").json
    assert ran.code == 0
    assert ran.out.startswith("deny: probe.note")
    [result] = [e for e in shown["events"] if e["kind"] == "tool_ended"]
    assert result["status"] == "denied"
    assert "too much" in result["text"]
    assert "denied" not in notes(shop)


def test_what_was_decided_before_is_told_and_ends_with_1(shop: Project) -> None:
    item = asked(shop, "twice")
    shop.run("inbox", "approve", item["id"], "--digest", item["digest"])

    again = shop.run(
        "inbox", "deny", item["id"], "--digest", item["digest"], "--json", CAPUCHIN_USER="bob"
    )

    assert again.code == 1
    assert (again.json["accepted"], again.json["decision"], again.json["by"]) == (
        False,
        "approve",
        "ann",
    )
    assert "was decided before: approve by ann at " in again.err


def test_two_decisions_at_once_have_one_winner_and_the_other_is_told(shop: Project) -> None:
    item = asked(shop, "race")

    def decide(choice: str) -> int:
        return shop.run("inbox", choice, item["id"], "--digest", item["digest"]).code

    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(decide, ["approve", "deny"]))

    assert sorted(codes) == [0, 1]


def test_another_digest_decides_nothing(shop: Project) -> None:
    item = asked(shop, "changed")

    ran = shop.run("inbox", "approve", item["id"], "--digest", "0" * 12)

    assert (ran.code, ran.out) == (1, "")
    assert f"capuchin inbox show {item['id']}" in ran.err
    assert "changed" not in notes(shop)


@pytest.mark.parametrize("digest", ["1234567", "not-a-digest", "", "0x123456789"])
def test_a_digest_too_short_or_no_digest_is_wrong_usage(digest: str, shop: Project) -> None:
    ran = shop.run("inbox", "approve", "x:a1", "--digest", digest)

    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("choice", ["approve", "deny"])
def test_without_a_digest_and_a_terminal_it_is_wrong_usage(choice: str, shop: Project) -> None:
    item = asked(shop, "silent")

    ran = shop.run("inbox", choice, item["id"], stdin=f"{choice}\n")

    assert (ran.code, ran.out) == (2, "")
    assert "--digest" in ran.err
    assert "silent" not in notes(shop)


def test_on_a_terminal_the_item_is_shown_whole_and_the_word_is_asked_for(shop: Project) -> None:
    item = asked(shop, "typed")
    args = ("inbox", "approve", item["id"])
    with Terminal(*args, cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("type approve to approve this: ")
        assert '{"word":"typed"}' in terminal.seen
        assert item["digest"] in terminal.seen
        terminal.type("approve")

        assert terminal.end() == 0
    wait_until(lambda: "typed" in notes(shop))


@pytest.mark.parametrize("typed", ["", "y", "yes", "deny", "APPROVE!"])
def test_any_other_word_decides_nothing(typed: str, shop: Project) -> None:
    item = asked(shop, "other")
    args = ("inbox", "approve", item["id"])
    with Terminal(*args, cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.wait_for("type approve to approve this: ")
        terminal.type(typed)

        assert terminal.end() == 1
    assert "nothing was decided" in terminal.seen
    assert "other" not in notes(shop)


def test_what_was_typed_before_the_question_does_not_count(shop: Project) -> None:
    item = asked(shop, "early")
    args = ("inbox", "approve", item["id"])
    with Terminal(*args, cwd=shop.folder, environ=shop.environ) as terminal:
        terminal.type("approve")
        terminal.wait_for("type approve to approve this: ")
        terminal.type("no")

        assert terminal.end() == 1
    assert "early" not in notes(shop)


def test_a_conversation_stands_for_its_one_item(shop: Project) -> None:
    item = asked(shop, "alone")

    ran = shop.run("inbox", "show", item["id"].partition(":")[0], "--json")

    assert ran.json["id"] == item["id"]


def test_a_limit_is_answered_by_its_words(project: Project) -> None:
    project.agent_file.write_text(agent_text().replace("max_steps: 8", "max_steps: 1"))
    with project.up():
        paused = project.run("send", "notes", "look here", "--json")
        [item] = paused.json["items"]
        assert (paused.code, item["kind"]) == (4, "limit")
        assert "go_on" in paused.err

        wrong = project.run("inbox", "answer", item["id"], "happened")
        assert wrong.code == 1
        assert "go_on, stop" in wrong.err
        gone_on = project.run("inbox", "answer", item["id"], "go_on")

        conversation = paused.json["conversation"]
        wait_until(lambda: project.run("show", conversation, "--json").json["status"] == "idle")
    assert gone_on.code == 0


def test_a_result_goes_with_happened_only(shop: Project) -> None:
    ran = shop.run("inbox", "answer", "x:o1", "rerun", "--result", "text")

    assert (ran.code, ran.out) == (2, "")


def test_watch_says_each_item_as_it_opens_and_goes(shop: Project) -> None:
    with subprocess.Popen(
        [*PROGRAM, "inbox", "watch", "--json"],
        cwd=shop.folder,
        env=shop.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        item = asked(shop, "watched")
        changes = []
        for line in process.stdout:
            change = json.loads(line)
            if change["id"] != item["id"]:
                continue
            changes.append(change["change"])
            if change["change"] == "gone":
                break
            shop.run("inbox", "deny", item["id"], "--digest", item["digest"])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)

    assert changes == ["opened", "gone"]
    assert process.returncode == 130
