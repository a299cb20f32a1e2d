"""Text of models, tools, people and files is printed visibly by every verb, never obeyed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, Project, Ran, wait_until
from tests.cli.terminal import Terminal
from tests.e2e.street import HOSTILE, RAW_MARKS, agent_text, street_project

SHOWN = "\\x1b[2Jred\\u{202e}gpj.exe"
"""How the middle of the hostile text must look on paper."""


@dataclass(frozen=True)
class Marked:
    """A project in which every text that a stranger could have written is hostile."""

    project: Project
    echoed: str
    """A conversation whose message, reply and tool result are."""
    waiting: str
    """One whose waiting call has hostile arguments."""
    denied: str
    """One whose denial has a hostile reason."""


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Marked]:
    """The project, up, with three conversations."""
    project = street_project(tmp_path_factory.mktemp("marked"))
    # YAML spells what no file may hold raw.
    hostile = agent_text(description=json.dumps(f"Walks {HOSTILE}."))
    (project.folder / "agents" / "street.yaml").write_text(hostile)
    with project.up("--no-tui") as up:
        echoed = sent(project, f"echo {HOSTILE}")
        waiting = sent(project, f"sign {HOSTILE}")
        denied = sent(project, f"sign {HOSTILE} again")
        [item] = project.run("show", denied, "--json").json["items"]
        reason = f"because {HOSTILE}"
        project.run("inbox", "deny", item["id"], "--digest", item["digest"], "--reason", reason)
        yield Marked(project, echoed, waiting, denied)
        assert_visible(Ran(0, "", up.said))


def sent(project: Project, text: str) -> str:
    """Start a conversation with this message."""
    conversation: str = project.run("send", "street", text, "--json").json["conversation"]
    return conversation


def assert_visible(ran: Ran) -> None:
    """Nothing that a terminal would obey was printed."""
    assert not RAW_MARKS & set(ran.out + ran.err), (ran.out, ran.err)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("list", SHOWN),
        ("list --json", "gpj.exe"),
        ("show {echoed}", SHOWN),
        ("show {echoed} --json", "gpj.exe"),
        ("show {denied}", f"because \\x1b]0;owned\\x07{SHOWN}"),
        ("show {waiting}", SHOWN),
        ("inbox", "\\u001b"),
        ("inbox --json", "gpj.exe"),
        ("inbox show {waiting}", "\\u001b[2Jred"),
        ("inbox show {waiting} --json", "gpj.exe"),
        ("validate -v", "denylist"),
        ("validate --json", "street"),
        ("validate --format sarif", ""),
        ("export agents/street.yaml", "gpj.exe"),
        ("doctor", "street"),
        ("doctor --json", "street"),
        ("cancel {denied}", ""),
    ],
)
def test_a_verb_prints_hostile_text_visibly(verb: str, said: str, marked: Marked) -> None:
    ids = {name: getattr(marked, name) for name in ("echoed", "waiting", "denied")}

    ran = marked.project.run(*verb.format(**ids).split())

    assert_visible(ran)
    assert said in ran.out


def test_send_prints_the_reply_visibly_and_json_keeps_it_exact(marked: Marked) -> None:
    plain = marked.project.run("send", "street", f"echo {HOSTILE}")
    exact = marked.project.run("send", marked.denied, f"hello {HOSTILE}", "--json")

    assert_visible(plain)
    assert_visible(exact)
    assert SHOWN in plain.out
    assert exact.json["reply"] == f"You said hello {HOSTILE}"


def test_chat_prints_replies_and_waiting_calls_visibly(marked: Marked) -> None:
    ran = marked.project.run("chat", "street", stdin=f"echo {HOSTILE}\nsign {HOSTILE}\n")

    assert ran.code == 4
    assert_visible(ran)
    assert SHOWN in ran.out


def test_on_a_terminal_only_our_own_colours_are_obeyed(marked: Marked) -> None:
    project = marked.project
    for verb in (["show", marked.echoed], ["list"], ["inbox", "show", marked.waiting]):
        with Terminal(*verb, cwd=project.folder, environ=project.environ) as terminal:
            terminal.end()

        assert "\x1b[2J" not in terminal.seen
        assert not RAW_MARKS - {"\x1b"} & set(terminal.seen)


@pytest.mark.parametrize("verb", [["show", "--follow", "{echoed}"], ["inbox", "watch"]])
def test_what_is_followed_is_printed_visibly(verb: list[str], marked: Marked) -> None:
    words = [word.format(echoed=marked.echoed) for word in verb]
    out, err = marked.project.folder / "followed", marked.project.folder / "followed-err"
    with out.open("wb") as answer, err.open("wb") as notes:
        process = subprocess.Popen(
            [*PROGRAM, *words],
            cwd=marked.project.folder,
            env=marked.project.environ,
            stdout=answer,
            stderr=notes,
        )
    with process:
        wait_until(lambda: "gpj.exe" in out.read_text() or "\\u001b" in out.read_text())
        process.terminate()

    assert_visible(Ran(0, out.read_text(), err.read_text()))


def test_a_file_whose_every_text_is_hostile_is_refused_visibly(tmp_path: Path) -> None:
    text = json.dumps(HOSTILE)
    (tmp_path / "agent.yaml").write_text(
        f"apiVersion: {text}\nname: {text}\nprompt: {text}\n{text}: 1\n"
        f"tools: [{text}, {{use: {text}, as: {text}}}]\napproval: {text}\nmodel: {text}\n"
    )
    project = Project(tmp_path, tmp_path, {})
    forms = ("full", "concise", "json", "sarif", "github")

    for verb in (
        *(["validate", "--format", form] for form in forms),
        ["export", "agent.yaml"],
        ["doctor"],
        ["up", "--no-tui"],
        ["worker", "agent.yaml"],
    ):
        ran = project.run(*verb, PATH="/nowhere", HOME=str(tmp_path))

        assert ran.code == 1, verb
        assert_visible(ran)
        assert "red" in ran.out + ran.err, verb


def test_a_file_with_a_hostile_name_is_reported_visibly(tmp_path: Path) -> None:
    name = "a\x1b[31m\u202eb.yaml"
    (tmp_path / name).write_text("apiVersion: capuchin/v1\nnme: x\n")
    project = Project(tmp_path, tmp_path, {})

    for verb in (["validate", name], ["validate", "--json", name], ["up", name], ["doctor", name]):
        ran = project.run(*verb, PATH="/nowhere", HOME=str(tmp_path))

        assert ran.code == 1, verb
        assert_visible(ran)
