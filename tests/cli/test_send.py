"""`capuchin send`: one message, one answer, and an exit code that a script can trust."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.cli.program import PROGRAM, Project, wait_until

HOSTILE = "a\x1b[2J\u202eb\u200bc"
VISIBLE = "a\\x1b[2J\\u{202e}b\\u{200b}c"


def test_the_answer_is_on_stdout_and_the_conversation_on_stderr(shop: Project) -> None:
    ran = shop.run("send", "notes", "hello")

    assert (ran.code, ran.out) == (0, "You said hello\n")
    assert ran.err.startswith("conversation shop")


def test_json_is_one_document_with_the_documented_keys(shop: Project) -> None:
    ran = shop.run("send", "notes", "hello", "--json")

    answer = ran.json
    assert ran.code == 0
    assert answer["v"] == 1
    assert answer["agent"] == "notes"
    assert answer["status"] == "idle"
    assert answer["reply"] == "You said hello"
    assert answer["items"] == []
    assert answer["usage"]["output_tokens"] > 0
    assert ran.err == ""


def test_a_conversation_goes_on_by_the_beginning_of_its_id(shop: Project) -> None:
    first = shop.run("send", "notes", "one", "--json").json

    second = shop.run("send", first["conversation"], "two", "--json")

    assert second.json["conversation"] == first["conversation"]
    assert second.json["reply"] == "You said two"


def test_the_message_can_come_from_stdin(shop: Project) -> None:
    ran = shop.run("send", "notes", "-", stdin="line one\nline two")

    assert ran.out == "You said line one\nline two\n"


def test_a_call_that_needs_a_person_ends_with_4_and_one_line_that_says_what_to_type(
    shop: Project,
) -> None:
    ran = shop.run("send", "notes", "note milk")

    assert ran.code == 4
    assert ran.out == "Noting.\n"
    [needed] = [line for line in ran.err.splitlines() if "a person is needed" in line]
    assert "probe.note waits for approval" in needed
    assert "capuchin inbox approve" in needed


def test_json_of_a_call_that_needs_a_person_holds_the_item(shop: Project) -> None:
    ran = shop.run("send", "notes", "note milk", "--json")

    [item] = ran.json["items"]
    assert (ran.code, ran.json["status"]) == (4, "waiting")
    assert (item["kind"], item["tool"], item["args"]) == (
        "approval",
        "probe.note",
        {"word": "milk"},
    )
    assert item["id"].startswith(ran.json["conversation"] + ":")


def test_a_model_error_is_1_with_its_reason(shop: Project) -> None:
    ran = shop.run("send", "notes", "fail")

    assert (ran.code, ran.out) == (1, "")
    assert "error: the turn ended as model_rejected" in ran.err


def test_a_provider_that_asks_to_wait_is_told_while_it_is_waited_for(shop: Project) -> None:
    ran = shop.run("send", "notes", "busy?")

    assert (ran.code, ran.out) == (0, "Here again.\n")
    [told] = [line for line in ran.err.splitlines() if "cannot answer now" in line]
    assert "tried again at" in told
    assert "attempt 2" in told


def test_an_unknown_partner_is_1_and_names_the_near_agent(shop: Project) -> None:
    ran = shop.run("send", "nots", "hello")

    assert (ran.code, ran.out) == (1, "")
    assert "'nots' is neither an agent nor a conversation; did you mean 'notes'?" in ran.err


def test_a_blank_message_is_refused_before_anything_is_started(shop: Project) -> None:
    ran = shop.run("send", "notes", "  \n ")

    assert (ran.code, ran.out) == (1, "")
    assert "blank" in ran.err


def test_a_message_that_is_not_utf_8_is_refused(shop: Project) -> None:
    done = subprocess.run(
        [*map(os.fsencode, PROGRAM), b"send", b"notes", b"\xff\xfe"],
        cwd=shop.folder,
        env=shop.environ,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert b"not UTF-8" in done.stderr


def test_a_message_is_utf_8_also_in_a_locale_that_is_not(shop: Project) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    sent = shop.run("send", "notes", "naïve 漢字", "--var", "who=Zoë", "--json", **locale)

    assert sent.json["reply"] == "You said naïve 漢字"
    assert shop.run("show", sent.json["conversation"], "--json").json["title"] == "naïve 漢字"


def test_bytes_on_stdin_that_are_not_utf_8_are_refused(shop: Project) -> None:
    done = subprocess.run(
        [*PROGRAM, "send", "notes", "-"],
        cwd=shop.folder,
        env=shop.environ,
        input=b"\xff",
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert b"not UTF-8" in done.stderr


def test_variables_are_checked_before_the_start(shop: Project) -> None:
    ran = shop.run("send", "notes", "hello", "--var", "whom=Ada")

    assert (ran.code, ran.out) == (1, "")
    assert "whom" in ran.err


def test_a_variable_without_a_value_is_wrong_usage(shop: Project) -> None:
    ran = shop.run("send", "notes", "hello", "--var", "who")

    assert (ran.code, ran.out) == (2, "")
    assert "NAME=VALUE" in ran.err


def test_hostile_text_is_printed_visibly_and_kept_exact_in_json(shop: Project) -> None:
    said = shop.run("send", "notes", HOSTILE)
    told = shop.run("send", "notes", HOSTILE, "--json")

    assert said.out == f"You said {VISIBLE}\n"
    assert told.json["reply"] == f"You said {HOSTILE}"
    assert not {"\x1b", "\u202e", "\u200b"} & set(told.out)


def test_ctrl_c_while_it_waits_is_130_without_a_trace_and_the_turn_goes_on(shop: Project) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "send", "notes", "nap"],
        cwd=shop.folder,
        env=shop.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    conversation = process.stderr.readline().split()[1].decode()

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    wait_until(lambda: shop.run("show", conversation, "--json").json["status"] == "idle")
