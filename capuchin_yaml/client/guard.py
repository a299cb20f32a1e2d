"""The small process that owns the server: it starts it, keeps its log, and ends it in time.

`up` holds the write end of a named pipe (`guard.pipe` in the state folder), and so does every
other `up` that uses the same server. When the last of them is gone, however it ended, the pipe
closes and the server is ended. Words of one byte come through the same pipe:

    h   hello: somebody holds the server
    b   bye: it is done, and its worker has ended
    d   detach: live on without `up`
    q   quit: end the server now (`down`)
    w   write the state file again

Imports the standard library only, and is run by its path with `python -I -S`: it starts fast,
and no folder that somebody works in can put a module in its way.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

HELLO, BYE, DETACH, QUIT, REWRITE = b"h", b"b", b"d", b"q", b"w"
POLITE_S = 1.2
"""Time from the polite signal to the kill when a holder died: its worker may still report."""
HURRY_S = 0.2
"""The same when every holder was done. A kill loses nothing that was acknowledged."""
LOG_BYTES = 1024 * 1024
"""Size at which the log starts anew; one older log is kept."""
IS_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1


def process_start(pid: int) -> str | None:
    """Name when process `pid` started, so that a later process with the same number differs.

    None when there is no such process, or when it has ended and was not collected yet.
    """
    if pid <= 0:
        return None
    if IS_LINUX:
        try:
            with open(f"/proc/{pid}/stat", "rb") as stream:
                # The name in brackets may hold anything; the fields follow its last bracket.
                fields = stream.read().rpartition(b")")[2].split()
            with open("/proc/sys/kernel/random/boot_id", "rb") as stream:
                boot = stream.read().strip().decode()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else f"{boot}:{fields[19].decode()}"
    shown = subprocess.run(
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(maxsplit=1)
    return None if len(shown) < 2 or shown[0].startswith("Z") else shown[1].strip()


class Guard:
    """Owns one server from its start to its end."""

    def __init__(self, plan: dict[str, object], command: list[str]) -> None:
        self._state_file = str(plan["state_file"])
        self._log_file = str(plan["log_file"])
        self._pipe_file = str(plan["pipe_file"])
        # Held by this process and inherited by the server: while either lives, nobody else
        # starts a server on the same database.
        self._server_lock = int(str(plan["server_lock"]))
        # Shared with `up`: while it looks for a server to use, none is ended under it.
        self._up_lock_file = str(plan["up_lock_file"])
        self._record = plan["record"]
        self._command = command
        self._detached_end: int | None = None
        self._holders = 0
        self._was_told = False
        self._log = open(self._log_file, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self._up_lock = open(self._up_lock_file, "ab", opener=_private)  # noqa: SIM115
        self._wakeup, wakeup_in = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(wakeup_in, False)
        signal.set_wakeup_fd(wakeup_in, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._server: subprocess.Popen[bytes]

    def start(self) -> None:
        """Start the server and write the state file."""
        die_with_guard = _end_with_parent(os.getpid()) if IS_LINUX else None
        self._server = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(self._server_lock,),
            process_group=0,
            preexec_fn=die_with_guard,
        )
        try:
            self._write_state()
        except OSError:
            self._server.kill()
            raise

    def watch(self) -> int:
        """Return when the server has ended, by itself or because nobody needs it; its exit code."""
        assert self._server.stdout is not None
        output = self._server.stdout.fileno()
        os.set_blocking(0, False)
        watched = [0, output, self._wakeup]
        while self._server.poll() is None:
            ready = select.select(watched, [], [])[0]
            if output in ready and not self._copy_output(output):
                watched.remove(output)
            if self._wakeup in ready and self._told_to_end():
                break
            if 0 in ready and self._obey(_read(0)):
                break
        return self._end(output)

    def _obey(self, words: bytes | None) -> bool:
        """Do what came through the pipe; whether the server must end now."""
        if words == b"":
            # Nobody holds the pipe. While another `up` has the lock it may still come in.
            if not self._lock_out():
                time.sleep(0.05)
                return False
            words = _read(0)
            if words == b"":
                return True
            fcntl.flock(self._up_lock, fcntl.LOCK_UN)
        if words is None:
            return False
        with contextlib.suppress(OSError):
            if DETACH in words and self._detached_end is None:
                # A writer of our own: the pipe never closes, and words still arrive.
                self._detached_end = os.open(self._pipe_file, os.O_WRONLY | os.O_NONBLOCK)
                self._write_state()
            if REWRITE in words:
                self._write_state()
        self._holders += words.count(HELLO) - words.count(BYE)
        self._was_told = QUIT in words
        return self._was_told

    def _lock_out(self) -> bool:
        try:
            fcntl.flock(self._up_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _told_to_end(self) -> bool:
        numbers = _read(self._wakeup) or b""
        return any(n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) for n in numbers)

    def _end(self, output: int) -> int:
        polite_s = HURRY_S if self._was_told or self._holders <= 0 else POLITE_S
        for number, patience_s in ((signal.SIGTERM, polite_s), (signal.SIGKILL, 5.0)):
            if self._server.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._server.pid, number)
            deadline = time.monotonic() + patience_s
            while self._server.poll() is None and time.monotonic() < deadline:
                if select.select([output], [], [], 0.02)[0] and not self._copy_output(output):
                    time.sleep(0.01)
        os.set_blocking(output, False)
        while self._copy_output(output):
            pass
        return self._server.returncode or 0

    def _copy_output(self, output: int) -> bool:
        text = _read(output)
        if not text:
            return False
        with contextlib.suppress(OSError):
            if self._log.tell() > LOG_BYTES:
                self._log.close()
                os.replace(self._log_file, self._log_file + ".1")
                self._log = open(self._log_file, "ab", buffering=0, opener=_private)  # noqa: SIM115
            self._log.write(text)
        return True

    def _write_state(self) -> None:
        assert isinstance(self._record, dict)
        state = self._record | {
            "pid": self._server.pid,
            # Empty for a server that has ended already: no process has that start.
            "start": process_start(self._server.pid) or "",
            "guard_pid": os.getpid(),
            "guard_start": process_start(os.getpid()),
            "detached": self._detached_end is not None,
        }
        temporary = f"{self._state_file}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        with open(temporary, "x", encoding="utf-8", opener=_private) as stream:
            json.dump(state, stream)
            stream.write("\n")
        os.replace(temporary, self._state_file)


def main(arguments: list[str]) -> int:
    """Start the guard in a session of its own; return 0 as soon as it has started the server.

    Arguments: a JSON object of where things are, then the server's command line. Standard input
    is the read end of the pipe.
    """
    os.umask(0o077)
    plan = json.loads(arguments[0])
    told, tell = os.pipe()
    if os.fork():
        # Why two processes: `up` collects this one at once, and never has to collect the guard.
        os.close(tell)
        return 0 if os.read(told, 1) else 1
    os.close(told)
    os.setsid()
    guard = Guard(plan, arguments[1:])
    guard.start()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.write(tell, b"1")
    os.close(tell)
    return guard.watch()


def _end_with_parent(parent: int) -> Callable[[], None]:
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_the_server() -> None:
        # Second belt: if the guard itself is killed, the kernel ends the server.
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return in_the_server


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _read(fd: int) -> bytes | None:
    """Return what is there, empty at the end, None when nothing has come yet."""
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
