"""`capuchin show`: one conversation, whole, and as it goes on."""

from __future__ import annotations

import json
import signal
import subprocess

from tests.cli.program import PROGRAM, Project

HOSTILE = "look \x1b]0;pwned\x07\u202eb"


def test_a_person_reads_what_was_said_called_and_answered(shop: Project) -> None:
    conversation = shop.run("send", "notes", "look here", "--json").json["conversation"]

    ran = shop.run("show", conversation)

    assert ran.code == 0
    for part in ("notes 1.0.0", "user", "look here", "(ann)", 'probe.look {"word":"here"}'):
        assert part in ran.out
    assert "ok after 0s: seen here" in ran.out
    assert ran.err == f"{conversation} is idle\n"


def test_json_is_one_document_with_the_documented_keys(shop: Project) -> None:
    conversation = shop.run("send", "notes", "look here", "--json").json["conversation"]

    shown = shop.run("show", conversation, "--json").json

    assert (shown["v"], shown["conversation"], shown["agent"]) == (1, conversation, "notes")
    assert (shown["status"], shown["waiting"]) == ("idle", 0)
    assert shown["definition"]["version"] == "1.0.0"
    assert len(shown["definition"]["hash"]) == 64
    assert [message["role"] for message in shown["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert shown["messages"][1]["content"][0]["input"] == {"word": "here"}
    assert [event["offset"] for event in shown["events"]] == list(range(len(shown["events"])))
    assert shown["usage"]["output_tokens"] > 0


def test_hostile_text_is_printed_visibly_and_kept_exact_in_json(shop: Project) -> None:
    conversation = shop.run("send", "notes", HOSTILE, "--json").json["conversation"]

    read = shop.run("show", conversation)
    parsed = shop.run("show", conversation, "--json")

    assert not {"\x1b", "\x07", "\u202e"} & set(read.out + parsed.out)
    assert "look \\x1b]0;pwned\\x07\\u{202e}b" in read.out
    assert parsed.json["messages"][0]["content"][0]["text"] == HOSTILE


def test_follow_says_each_event_as_a_line_of_json_until_the_conversation_ends(
    shop: Project,
) -> None:
    conversation = shop.run("send", "notes", "one", "--json").json["conversation"]
    with subprocess.Popen(
        [*PROGRAM, "show", conversation, "--follow", "--json"],
        cwd=shop.folder,
        env=shop.environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline())]
        shop.run("send", conversation, "two")
        shop.run("close", conversation)
        lines += [json.loads(line) for line in process.stdout]

    assert process.returncode == 0
    assert {line["v"] for line in lines} == {1}
    assert [line["text"] for line in lines if line["kind"] == "turn_started"] == ["one", "two"]
    assert lines[-1]["kind"] == "conversation_closed"


def test_follow_ends_with_its_reader(shop: Project) -> None:
    conversation = shop.run("send", "notes", "one", "--json").json["conversation"]
    done = subprocess.run(
        f"{' '.join(PROGRAM)} show {conversation} -f | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        cwd=shop.folder,
        env=shop.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_ctrl_c_ends_following_with_130(shop: Project) -> None:
    conversation = shop.run("send", "notes", "one", "--json").json["conversation"]
    with subprocess.Popen(
        [*PROGRAM, "show", conversation, "-f"],
        cwd=shop.folder,
        env=shop.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_conversation_that_is_not_there_is_1(shop: Project) -> None:
    ran = shop.run("show", "notes-zzzzzz")

    assert (ran.code, ran.out) == (1, "")
    assert "capuchin list" in ran.err
