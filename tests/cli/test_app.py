"""The program around the verbs: lazy, quiet in pipes, and honest in its exit codes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capuchin_yaml import __version__
from capuchin_yaml.cli.app import VERBS, program
from tests.cli.program import PROGRAM, Project, clean_environ, run

HEAVY = ("temporalio", "textual", "anthropic", "jinja2", "jsonschema", "pydantic", "yaml")
ESCAPE = "x\x1b[31m\u202ey"


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument: str, tmp_path: Path) -> None:
    code = (
        "import sys, json\n"
        "from capuchin_yaml.cli.app import run\n"
        "from capuchin_yaml.cli.output import Output\n"
        f"code = run([{argument!r}], Output(open('answer', 'w'), sys.stderr))\n"
        "verbs = [m for m in sys.modules if m.startswith('capuchin_yaml.cli.')]\n"
        f"print(json.dumps([code, [m for m in {HEAVY!r} if m in sys.modules], sorted(verbs)]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True
    )

    assert json.loads(done.stdout) == [
        0,
        [],
        ["capuchin_yaml.cli.app", "capuchin_yaml.cli.output", "capuchin_yaml.cli.verb"],
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_says_in_the_list_what_its_own_help_says(verb: str) -> None:
    with program.make_context("capuchin", [], resilient_parsing=True) as context:
        command = program.get_command(context, verb)

        assert command is not None
        assert command.help is not None
        assert command.help.split("\n")[0] == VERBS[verb]


def test_version_is_the_packages(tmp_path: Path) -> None:
    ran = run("--version", cwd=tmp_path)

    assert (ran.code, ran.out) == (0, f"capuchin {__version__}\n")


def test_without_a_verb_the_help_is_said_as_wrong_usage(tmp_path: Path) -> None:
    ran = run(cwd=tmp_path)

    assert (ran.code, ran.out) == (2, "")
    assert "Verbs:" in ran.err


def test_what_may_be_typed_instead_is_said_on_one_line(tmp_path: Path) -> None:
    ran = run("inbox", "answer", "x:o1", cwd=tmp_path)

    assert ran.code == 2
    [error] = [line for line in ran.err.splitlines() if line.startswith("error:")]
    assert error.endswith("Choose from: happened, rerun, failed, go_on, stop")


def test_an_unknown_verb_is_wrong_usage_and_names_the_near_one(tmp_path: Path) -> None:
    ran = run("validte", cwd=tmp_path)

    assert (ran.code, ran.out) == (2, "")
    assert "no verb 'validte'; did you mean 'validate'?" in ran.err


@pytest.mark.parametrize(
    "args",
    [
        [ESCAPE],
        ["--" + ESCAPE],
        ["list", ESCAPE],
        ["list", "--status", ESCAPE],
        ["send", ESCAPE, ESCAPE],
        ["send", "a", ESCAPE, "--var", ESCAPE],
        ["chat", ESCAPE],
        ["show", ESCAPE],
        ["cancel", ESCAPE],
        ["close", ESCAPE],
        ["inbox", ESCAPE],
        ["inbox", "show", ESCAPE],
        ["inbox", "approve", ESCAPE],
        ["inbox", "deny", ESCAPE, "--digest", ESCAPE],
        ["inbox", "answer", ESCAPE, ESCAPE],
        ["validate", ESCAPE],
        ["export", ESCAPE],
        ["doctor", ESCAPE],
        ["init", ESCAPE],
        ["up", ESCAPE],
        ["worker", ESCAPE],
        ["down", ESCAPE],
        ["tui", ESCAPE],
    ],
)
def test_arguments_with_escape_sequences_are_printed_visibly(
    args: list[str], tmp_path: Path
) -> None:
    ran = run(*args, cwd=tmp_path)

    assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)


def test_a_reader_that_leaves_ends_the_program_quietly(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{' '.join(PROGRAM)} --help | true; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        cwd=tmp_path,
        env=clean_environ(tmp_path),
        capture_output=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.parametrize("args", [["--help"], ["validate", "--help"], ["init", "new"]])
def test_a_full_disk_is_an_error_and_no_trace(args: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, *args],
            cwd=tmp_path,
            env=clean_environ(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == b"error: cannot write the answer: No space left on device\n"


def test_a_closed_stdout_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{' '.join(PROGRAM)} --help >&-",
        shell=True,
        cwd=tmp_path,
        env=clean_environ(tmp_path),
        stderr=subprocess.PIPE,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr == b"error: cannot write the answer: stdout is closed\n"


@pytest.mark.parametrize(
    ("environ", "painted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_only_a_terminal_is_painted_on(
    environ: dict[str, str], painted: bool, tmp_path: Path
) -> None:
    (tmp_path / "agent.yaml").write_text("name: x\n")
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [*PROGRAM, "validate"],
            cwd=tmp_path,
            env=clean_environ(tmp_path, **environ),
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        text = os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)

    assert (b"\x1b[" in text) is painted
    assert b"error" in text


def test_ctrl_c_is_130_and_no_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reached")
    code = (
        "import sys, click\n"
        "from capuchin_yaml.cli import app\n"
        "from capuchin_yaml.cli.verb import Verb\n"
        "@click.command(cls=Verb)\n"
        "def command():\n"
        "    open('reached', 'w').close()\n"
        "    import time\n"
        "    time.sleep(60)\n"
        "app.program.get_command = lambda ctx, name: command\n"
        "sys.argv = ['capuchin', 'list']\n"
        "app.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    (tmp_path / "reached").read_text()

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, out, err.strip()) == (130, b"", b"")


def test_a_verb_without_a_server_says_what_to_type_and_ends_with_3(tmp_path: Path) -> None:
    for args in (["list"], ["inbox"], ["show", "x"], ["send", "a", "b"], ["cancel", "x"]):
        ran = run(*args, cwd=tmp_path)

        assert (ran.code, ran.out) == (3, ""), args
        assert "capuchin up" in ran.err
        assert len(ran.err.splitlines()) == 1


def test_verbs_that_only_read_make_no_state_folder(tmp_path: Path) -> None:
    for args in (["list"], ["inbox"], ["doctor"], ["validate"], ["down"]):
        run(*args, cwd=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_verbose_shows_logs_on_stderr_and_never_on_stdout(shop: Project) -> None:
    ran = shop.run("list", "-v", "--json", TEMPORAL_ADDRESS="127.0.0.1:1")

    assert (ran.code, ran.out) == (3, "")
    assert "127.0.0.1:1" in ran.err
