"""The one owner of stdout, stderr, colours and exit codes."""

from __future__ import annotations

import errno
import io
import json

import pytest

from capuchin_yaml import errors
from capuchin_yaml.cli.output import (
    AnswerLost,
    ExitCode,
    Ink,
    Output,
    exit_code_for,
    json_text,
    shows_colours,
)

HOSTILE = "a\x1b[2Jb\u202ec\x07\u200bd"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Full(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_foreign_text_is_printed_visibly_on_both_streams() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out, err)

    output.answer(HOSTILE)
    output.tell(Ink(HOSTILE, "red"))

    expected = "a\\x1b[2Jb\\u{202e}c\\x07\\u{200b}d\n"
    assert out.getvalue() == expected
    assert err.getvalue() == expected


def test_colours_are_painted_on_a_terminal_only() -> None:
    terminal = _Terminal()
    Output(terminal, None, environ={"TERM": "xterm"}).answer(Ink("x\x1b", "red"))
    pipe = io.StringIO()
    Output(pipe, None, environ={"TERM": "xterm"}).answer(Ink("x", "red"))

    assert terminal.getvalue() == "\x1b[31mx\\x1b\x1b[0m\n"
    assert pipe.getvalue() == "x\n"


@pytest.mark.parametrize(
    ("environ", "painted"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": ""}, False),
        ({}, False),
    ],
)
def test_no_color_and_dumb_terminals_are_respected(environ: dict[str, str], painted: bool) -> None:
    assert shows_colours(_Terminal(), environ) is painted


def test_rendered_text_keeps_its_colours_and_nothing_else_of_a_terminal() -> None:
    terminal = _Terminal()
    output = Output(terminal, None, environ={"TERM": "xterm"})

    output.answer_rendered("\x1b[1;31merror\x1b[0m \x1b]0;title\x07\n")

    assert terminal.getvalue() == "\x1b[1;31merror\x1b[0m \\x1b]0;title\\x07\n"


def test_json_is_exact_and_holds_no_mark_that_a_terminal_obeys() -> None:
    document = {"text": HOSTILE + "\x7f\ud800é漢"}

    text = json_text(document)

    assert json.loads(text) == document
    assert not set(text) & set("\x1b\u202e\x07\u200b\x7f\ud800")
    assert "é漢" in text


def test_json_is_json_also_where_the_stream_knows_ascii_only() -> None:
    document = {"naïve": "漢字 🙈 \u202e"}
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")

    Output(stream, None).answer_json(document)

    stream.seek(0)
    assert json.loads(stream.read()) == document


def test_one_line_json_has_no_newline() -> None:
    assert json_text({"a": ["x\ny"]}, one_line=True) == '{"a":["x\\ny"]}'


def test_a_full_disk_is_an_error() -> None:
    output = Output(_Full(), io.StringIO())

    with pytest.raises(AnswerLost, match="No space left on device"):
        output.answer("x")


def test_a_closed_stdout_is_an_error() -> None:
    with pytest.raises(AnswerLost, match="closed"):
        Output(None, io.StringIO()).answer("x")


def test_telling_never_fails() -> None:
    Output(io.StringIO(), None).tell("x")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidAgent("x"), ExitCode.REFUSED),
        (errors.PluginUnavailable("x"), ExitCode.REFUSED),
        (errors.ServerUnavailable("x"), ExitCode.NO_SERVER),
        (errors.WorkerUnavailable("x"), ExitCode.NO_SERVER),
        (errors.UnsafeState("x"), ExitCode.REFUSED),
        (errors.ConversationNotFound("x"), ExitCode.REFUSED),
        (errors.ConversationBlocked("x"), ExitCode.REFUSED),
        (errors.RequestRefused("x"), ExitCode.REFUSED),
        (errors.NotSent("x"), ExitCode.REFUSED),
        (errors.ModelRejected("x"), ExitCode.REFUSED),
    ],
)
def test_each_error_has_its_exit_code(error: errors.CapuchinError, code: ExitCode) -> None:
    assert exit_code_for(error) == code
