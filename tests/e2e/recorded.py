"""Plays the demo in tmux and writes what was seen: `python -m tests.e2e.recorded`.

A real server, a real worker, the shipped agent with a scripted model, and a person's keys.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.program import PATIENCE_S, Project, wait_until
from tests.e2e.demo import demo_project, refunds, server_record
from tests.e2e.screen import Screen, TmuxGlass, on_screen

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "tui-recorded.md"
HEAD = """# A recorded run of the terminal UI

Recorded by `python -m tests.e2e.recorded`: tmux, 120 x 36, a real server and a real worker.
The agent is that of `agents/billing.yaml`, with a scripted model.
Each picture is what tmux showed at that moment; empty lines inside it are left out.
`tests/e2e/test_recorded.py` plays it again, and holds it to every step.
"""
SCRIPT = r"""
rules:
  - when: {user: "refund .*(A-[0-9]+)"}
    reply:
      say: "I look order $1 up. That takes a moment, so go on writing if you like."
      stream_chunk_s: 0.1
      calls: [{tool: lookup_order, args: {order_id: $1}}]
  - when: {tool: lookup_order, result: "(A-[0-9]+)"}
    reply:
      say: "It was late, so a **refund** is fair."
      calls: [{tool: refund, args: {order_id: $1, amount_cents: 4200, reason: it came late}}]
      delay_s: 4
  - when: {tool: refund, status: ok}
    reply: {say: "It is refunded. Is there anything else?"}
  - when: {tool: refund}
    reply: {say: "I am sorry, that refund was refused."}
default: {say: "You said: $user"}
"""
FIRST = "I need a refund for order A-1001"
DRAFT = "and please also look at"
SECOND = "one more refund for order A-1002"
LATER = "this was written while the server was away"


class Recorder:
    """What was seen, with a title each."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.shown: list[tuple[str, str, str]] = []

    def take(self, title: str, words: str) -> str:
        """Keep what the screen shows now."""
        seen = self.screen.text
        self.shown.append((title, words, seen))
        return seen

    def page(self) -> str:
        """All of it as a page."""
        parts = [
            f"\n## {n}. {title}\n\n{words}\n\n```text\n{_dense(seen)}\n```\n"
            for n, (title, words, seen) in enumerate(self.shown, 1)
        ]
        return HEAD + "".join(parts)


def play(folder: Path) -> Recorder:
    """Play it, and hold every step to what must be seen.

    Raises:
        AssertionError: a step did not show what it must.
    """
    project = demo_project(folder)
    (folder / "script.yaml").write_text(SCRIPT)
    project.environ["CAPUCHIN_MODEL"] = "scripted:script.yaml"
    with (
        project.up("--no-tui", "agents/billing.yaml"),
        on_screen(TmuxGlass, "tui", cwd=folder, environ=project.environ) as screen,
    ):
        recorder = Recorder(screen)
        _chat(recorder)
        _change_and_approve(recorder, project)
        _lose_the_server(recorder, project)
        screen.press("C-q")
        screen.wait_ended()
    return recorder


def _chat(recorder: Recorder) -> None:
    screen = recorder.screen
    screen.wait_for("● server", "● worker")
    screen.type(FIRST)
    screen.press("Enter")
    screen.wait_for("billing.lookup_order", "I look order A-1001 up")
    screen.type(DRAFT)
    recorder.take(
        "A message is sent, and the next one is begun",
        "The agent looks the order up; the person goes on typing.",
    )
    screen.wait_for("billing.issue_refund", "1 waiting (F2)", DRAFT)
    seen = recorder.take(
        "An approval arrives while typing",
        "A badge and a line above the composer; the focus and the draft stay where they are.",
    )
    assert DRAFT in seen.splitlines()[-2]
    screen.type(" A-1002 later")
    assert f"{DRAFT} A-1002 later" in screen.text


def _change_and_approve(recorder: Recorder, project: Project) -> None:
    screen = recorder.screen
    screen.press("F2")
    screen.wait_for("billing.issue_refund", "end of the item")
    screen.press("Enter")
    screen.wait_for("● a approve")
    recorder.take(
        "It is reviewed",
        "F2 shows the whole item: what runs, with what, why it waits.\n"
        "Its keys act only after it was read.",
    )
    screen.press("e")
    # Nothing waits for the form: what is typed behind its key is for it.
    for _ in range(4):
        screen.press("BSpace")
    screen.type("2100")
    screen.wait_for("amount_cents", "ctrl+s")
    recorder.take("It is edited", "`e` opens a form made from the tool's own schema.")
    screen.press("C-s")
    screen.wait_for("2100", "end of the item", "4200")
    screen.wait_for("● a approve")
    recorder.take(
        "The change is shown before it is decided",
        "Nothing was sent yet: this is what would run, and what the model asked for.",
    )
    assert refunds(project) == []
    _approve(screen, lambda: refunds(project) == [("A-1001", 2100)])
    screen.press("Escape")
    screen.wait_for("It is refunded.", "changed by ")
    assert screen.text.count("▸ billing.issue_refund") == 1
    recorder.take(
        "It is approved, and ran as it was shown",
        "The ledger of the demo shop holds one refund of 2100 cents; the draft is still there.",
    )


def _lose_the_server(recorder: Recorder, project: Project) -> None:
    screen = recorder.screen
    for _ in range(len(DRAFT) + 13):
        screen.press("BSpace")
    screen.wait_gone(DRAFT)
    screen.type(SECOND)
    screen.press("Enter")
    screen.wait_for("1 waiting (F2)")
    screen.type(LATER)
    killed = time.monotonic()
    os.kill(server_record(project)["pid"], 9)
    screen.wait_for("✖ no server")
    taken = time.monotonic() - killed
    recorder.take(
        "The server is killed with `kill -9`",
        f"The banner came {taken:.1f} s later, as this script saw it.\n"
        "What is on the screen stays readable, and the draft stays.",
    )
    assert LATER in screen.text
    screen.wait_for("● server", "● worker", "1 waiting (F2)", LATER)
    taken = time.monotonic() - killed
    recorder.take(
        "It is back, and so is what waited",
        f"`up` started the server again; {taken:.1f} s after the kill everything was live.\n"
        "Nothing is there twice and nothing is lost.",
    )
    screen.press("F2")
    screen.wait_for("billing.issue_refund", "end of the item")
    screen.press("Enter")
    screen.wait_for("● a approve")
    _approve(screen, lambda: len(refunds(project)) == 2)
    assert refunds(project) == [("A-1001", 2100), ("A-1002", 4200)]
    screen.press("Escape")
    _wait(lambda: screen.text.count("It is refunded.") == 2, screen)
    recorder.take("What waited is decided", "The second refund ran once.")
    assert LATER in screen.text


def _approve(screen: Screen, is_done: Callable[[], bool]) -> None:
    """Press `a` as a person does: again when it did nothing, for keys act only after a quiet."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, screen.text
        time.sleep(0.5)
        screen.press("a")
        look_until = time.monotonic() + 5
        while not is_done() and time.monotonic() < look_until:
            time.sleep(0.05)


def _wait(is_so: Callable[[], bool], screen: Screen) -> None:
    wait_until(is_so, lambda: screen.text)


def _dense(seen: str) -> str:
    """The picture without long runs of empty lines, and without what is of this machine."""
    lines = [line.rstrip() for line in seen.splitlines()]
    out: list[str] = []
    for line in lines:
        bare = re.sub(r"[│▌\s]", "", line)
        if bare or not out or re.sub(r"[│▌\s]", "", out[-1]):
            out.append(line)
    return "\n".join(out).rstrip()


def main() -> int:
    """Play, and write the page."""
    with tempfile.TemporaryDirectory(prefix="capuchin-recorded-") as folder:
        PAGE.write_text(play(Path(folder) / "shop").page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
