"""The TUI in a real terminal: paint, paste, resize, stray output, and the terminal given back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from capuchin_yaml.tui import clipboard
from capuchin_yaml.tui.terminal import can_run
from tests.tui.terminal import TuiTerminal

CTRL_Q, ENTER = b"\x11", b"\r"
ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"

WAYS = ("print", "stderr", "fd1", "fd2", "warning", "log", "child")


def test_it_paints_takes_a_paste_follows_the_window_and_gives_the_terminal_back(
    tmp_path: Path,
) -> None:
    with TuiTerminal("demo", tmp_path / "tui.log") as terminal:
        terminal.until(lambda t: "▲ 1 waiting (F2)" in t and "anna" in t)
        assert terminal.raw.startswith(ENTER_SCREEN) or ENTER_SCREEN in terminal.raw
        terminal.paste("one\ntwo [/x]\nthree 你好")
        terminal.until(lambda t: "three 你好" in t.replace("你 好 ", "你好"))
        assert "sending" not in terminal.text
        terminal.press(ENTER)
        terminal.until(lambda t: "queued  one two [/x] three" in t)
        terminal.resize(60, 20)
        terminal.until(lambda t: "conversations" not in t and "queued" in t)
        assert all(len(line) <= 60 for line in terminal.text.splitlines())
        terminal.press(CTRL_Q)

        assert terminal.end() == 0
        assert terminal.raw.rfind(LEAVE_SCREEN) > terminal.raw.rfind(ENTER_SCREEN)


def test_nothing_that_others_print_reaches_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "tui.log"
    with TuiTerminal("noise", log) as terminal:
        terminal.until(lambda t: "▲ 1 waiting (F2)" in t)
        # Why not for a while: on a busy machine the last way may take seconds to come.
        terminal.until(lambda _: all(f"STRAY {way}" in log.read_text() for way in WAYS))
        terminal.press(CTRL_Q)
        code = terminal.end()

        assert code == 0
        # What is printed after the TUI has ended is the terminal's again.
        during = terminal.raw[: terminal.raw.rfind(LEAVE_SCREEN)]
        assert b"STRAY" not in during

    assert log.stat().st_mode & 0o077 == 0


def test_a_large_paste_leaves_it_responsive(tmp_path: Path) -> None:
    with TuiTerminal("demo", tmp_path / "tui.log") as terminal:
        terminal.until(lambda t: "▲ 1 waiting (F2)" in t)
        terminal.paste("\n".join(f"line {n}" for n in range(20_000)))
        terminal.until(lambda t: "20,000 lines" in t)
        terminal.press(b"ok")

        terminal.until(lambda t: "⟧ok" in t.replace(" ", ""), 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_gives_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    with TuiTerminal("demo", tmp_path / "tui.log") as terminal:
        terminal.until(lambda t: "▲ 1 waiting (F2)" in t)
        terminal.process.send_signal(number)

        assert terminal.end() == 128 + number
        assert LEAVE_SCREEN in terminal.raw


def test_a_fault_gives_the_terminal_back_and_names_the_log(tmp_path: Path) -> None:
    log = tmp_path / "tui.log"
    with TuiTerminal("fault", log) as terminal:
        code = terminal.end()
        after = terminal.raw[terminal.raw.rfind(LEAVE_SCREEN) :]

    assert code == 1
    assert b"ended by a fault (RuntimeError: a fault [/x] \\x1b[31m)" in after
    assert str(log).encode() in after.replace(b"\r\n", b"")
    assert "RuntimeError" in log.read_text()


def test_without_a_terminal_it_says_what_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as not_a_terminal:
        os.close(write)
        monkeypatch.setattr(sys, "__stdin__", not_a_terminal)

        assert (
            can_run() == "the input is no terminal; use `capuchin chat` or `capuchin send` instead"
        )


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_terminal_that_cannot_draw_is_refused(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    ours, theirs = os.openpty()
    with (
        os.fdopen(theirs, "r+b", buffering=0) as raw,
        open(raw.fileno(), closefd=False) as terminal,
    ):
        monkeypatch.setattr(sys, "__stdin__", terminal)
        monkeypatch.setattr(sys, "__stdout__", terminal)
        monkeypatch.setenv("TERM", term)
        refused = can_run()
        monkeypatch.setenv("TERM", "xterm-256color")
        accepted = can_run()
    os.close(ours)

    assert refused is not None
    assert "capuchin chat" in refused
    assert accepted is None


def test_a_copy_says_what_was_done_and_is_wrapped_for_tmux() -> None:
    plain = clipboard.sequences("hi", {})
    wrapped = clipboard.sequences("hi", {"TMUX": "/tmp/x"})

    assert plain == ["\x1b]52;c;aGk=\x07"]
    assert wrapped[1] == "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"
    assert clipboard.word("x" * 100_000, {}) == (
        "not copied: 100 KB, terminals take about 74 KB", False,
    )  # fmt: skip
    assert "set-clipboard on" in clipboard.word("hi", {"TMUX": "/tmp/x"})[0]


@pytest.mark.parametrize("scene", ["demo", "stream"])
def test_a_terminal_that_goes_away_ends_it(tmp_path: Path, scene: str) -> None:
    with TuiTerminal(scene, tmp_path / "tui.log") as terminal:
        terminal.until(lambda t: "● server" in t)
        terminal.vanish()

        assert terminal.process.wait(10) == 128 + signal.SIGHUP
