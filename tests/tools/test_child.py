"""A program that a tool starts is alone, sees no keys, and never outlives its call."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from capuchin_yaml.errors import ToolCancelled
from capuchin_yaml.tools.child import MAX_OUTPUT_BYTES, Children
from capuchin_yaml.tools.context import ToolContext
from tests.tools.processes import is_gone, written


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    return ToolContext(
        idempotency_key="k",
        conversation_id="c",
        call_id="c:1",
        attempt=1,
        data_dir=tmp_path / "data",
    )


def test_a_program_gives_its_code_and_words(ctx: ToolContext) -> None:
    done = ctx.run(["sh", "-c", "echo out; echo err >&2; exit 3"])

    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_input_reaches_it_and_the_folder_is_the_one_named(ctx: ToolContext, tmp_path: Path) -> None:
    assert ctx.run(["cat"], input="héllo").stdout == "héllo"
    assert ctx.run(["cat"], input=b"x" * 300_000).stdout == "x" * 300_000
    assert ctx.run(["pwd"], cwd=tmp_path).stdout == f"{tmp_path}\n"
    assert ctx.run(["true"], input="nobody reads it" * 100_000).returncode == 0


def test_without_input_there_is_nothing_to_read(ctx: ToolContext) -> None:
    assert ctx.run(["cat"], timeout_s=5).stdout == ""


def test_only_path_home_lang_and_what_is_named_are_seen(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    seen = ctx.run([sys.executable, "-c", "import os; print(*os.environ)"], env={"MINE": "1"})

    # LC_CTYPE is set by Python itself.
    assert set(seen.stdout.split()) - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "MINE"}
    assert "MINE" in seen.stdout


def test_it_has_a_session_of_its_own_and_no_terminal(ctx: ToolContext) -> None:
    script = "import os; print(os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid())"

    assert ctx.run([sys.executable, "-c", script]).stdout == "True True\n"
    assert ctx.run(["sh", "-c", "echo hi > /dev/tty"]).returncode != 0


def test_bytes_that_are_no_text_are_replaced(ctx: ToolContext) -> None:
    assert ctx.run(["printf", r"a\377b"]).stdout == "a\ufffdb"


def test_long_output_is_cut_in_the_middle_with_a_mark(ctx: ToolContext) -> None:
    script = f"print('begin' + 'x' * {3 * MAX_OUTPUT_BYTES} + 'end')"
    shown = ctx.run([sys.executable, "-c", script]).stdout

    assert shown.startswith("begin")
    assert shown.endswith("end\n")
    assert f"{2 * MAX_OUTPUT_BYTES + 9} bytes left out" in shown


def test_a_shell_line_is_refused(ctx: ToolContext) -> None:
    with pytest.raises(TypeError, match="never a shell line"):
        ctx.run("echo hi; rm -rf /")


def test_a_program_that_does_not_exist_is_an_os_error(ctx: ToolContext) -> None:
    with pytest.raises(FileNotFoundError):
        ctx.run(["no-such-program-here"])


def test_past_its_time_the_program_and_its_children_are_gone(
    ctx: ToolContext, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(TimeoutError, match=r"sh did not end within 0\.5 s"):
        ctx.run(["sh", "-c", f"sleep 300 & echo $$ $! > {pids}; wait"], timeout_s=0.5)

    assert all(is_gone(pid) for pid in written(pids, 2))


def test_a_program_that_ignores_the_polite_signal_is_killed(
    ctx: ToolContext, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM; echo $$ > {pids}; while :; do sleep 1; done"
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        ctx.run(["sh", "-c", script], timeout_s=0.3)

    assert is_gone(written(pids)[0])
    assert time.monotonic() - began < 5


def test_what_a_program_leaves_running_ends_with_it(ctx: ToolContext, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    began = time.monotonic()
    done = ctx.run(["sh", "-c", f"sleep 300 & echo $! > {pids}"])

    assert done.returncode == 0
    assert is_gone(written(pids)[0])
    assert time.monotonic() - began < 5


def test_a_cancel_ends_the_program_and_the_run(ctx: ToolContext, tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def cancel() -> None:
        written(pids, 2)
        ctx.cancelled.set()

    threading.Thread(target=cancel).start()
    with pytest.raises(ToolCancelled):
        ctx.run(["sh", "-c", f"sleep 300 & echo $$ $! > {pids}; wait"])

    assert all(is_gone(pid) for pid in written(pids, 2))


def test_after_a_cancel_no_program_starts(ctx: ToolContext) -> None:
    ctx.children.stop()

    with pytest.raises(ToolCancelled):
        ctx.run(["true"])


async def test_an_async_tool_does_not_block_its_loop(ctx: ToolContext) -> None:
    first, second = await asyncio.gather(
        ctx.run_async(["sh", "-c", "sleep 0.2; echo one"]), ctx.run_async(["echo", "two"])
    )

    assert (first.stdout, second.stdout) == ("one\n", "two\n")


async def test_cancelling_the_await_ends_the_program(ctx: ToolContext, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    running = asyncio.create_task(ctx.run_async(["sh", "-c", f"echo $$ > {pids}; sleep 300"]))
    [pid] = await asyncio.to_thread(written, pids)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert is_gone(pid)
    assert not ctx.cancelled.is_set()


def test_a_killed_worker_leaves_no_program_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import threading\n"
        "from capuchin_yaml.tools.child import Children\n"
        "Children(threading.Event()).run("
        f"['sh', '-c', 'sleep 300 & echo $$ $! > {pids}; wait'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as worker:
        found = written(pids, 2)
        worker.send_signal(signal.SIGKILL)

    assert all(is_gone(pid) for pid in found)


def test_the_programs_of_other_calls_are_left_alone(tmp_path: Path) -> None:
    mine, other = Children(threading.Event()), Children(threading.Event())
    pids = tmp_path / "pids"
    ended: list[int] = []
    script = f"echo $$ > {pids}; sleep 0.5"
    thread = threading.Thread(
        target=lambda: ended.append(other.run(["sh", "-c", script]).returncode)
    )
    thread.start()
    written(pids)
    mine.kill()
    thread.join()

    assert ended == [0]


def test_an_interruption_at_any_moment_leaves_no_program_and_no_pipe(ctx: ToolContext) -> None:
    ctx.run(["true"])  # what is opened once and kept is open from here on
    open_before = len(os.listdir("/proc/self/fd"))
    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def call(entered: threading.Event) -> None:
        with contextlib.suppress(ToolCancelled):
            entered.set()
            while True:
                ctx.run(["sleep", "0.01"])

    for round_ in range(60):
        entered = threading.Event()
        thread = threading.Thread(target=call, args=(entered,))
        thread.start()
        entered.wait()
        time.sleep(round_ / 3000)
        interrupt(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(ToolCancelled))
        thread.join()

    deadline = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > open_before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(os.listdir("/proc/self/fd")) <= open_before
    assert ctx.run(["true"]).returncode == 0
