"""Runs the real program in subprocesses, and a project of its own to run it in."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "capuchin_yaml.cli.app")
PATIENCE_S = 60.0
"""Longest wait for anything; nothing here takes more than a few seconds on a free machine."""

PROBE = '''
"""Tools for tests: each leaves a trace in its data folder."""

import subprocess
import time

from capuchin_yaml.tools.api import ToolContext, tool


@tool(effect="read")
def look(word: str) -> str:
    """Look something up.

    Args:
        word: What.
    """
    return f"seen {word}"


@tool(effect="write")
def note(word: str, ctx: ToolContext) -> str:
    """Write a word down.

    Args:
        word: Which.
    """
    with open(ctx.data_dir / "notes", "a", encoding="utf-8") as file:
        file.write(word + "\\n")
    return f"noted {word}"


@tool(effect="write", idempotent=True)
def nap(seconds: float, ctx: ToolContext) -> str:
    """Sleep, between two marks.

    Args:
        seconds: How long.
    """
    (ctx.data_dir / "nap-began").write_text("")
    time.sleep(seconds)
    (ctx.data_dir / "nap-ended").write_text("")
    return "rested"


@tool(effect="write")
def post(word: str, ctx: ToolContext) -> str:
    """Do something once that takes long.

    Args:
        word: What.
    """
    with open(ctx.data_dir / "posts", "a", encoding="utf-8") as file:
        file.write(word + "\\n")
    time.sleep(120 if word == "slow" else 0)
    return f"posted {word}"


@tool(effect="write")
def child(ctx: ToolContext) -> str:
    """Start a program that outlives the call."""
    left = subprocess.Popen(["sleep", "300"])
    (ctx.data_dir / "child").write_text(str(left.pid))
    return "started"
'''

SCRIPT = r"""
rules:
  - when: {user: "^note (.*)"}
    reply: {say: "Noting.", calls: [{tool: note, args: {word: $1}}]}
  - when: {user: "^look (.*)"}
    reply: {calls: [{tool: look, args: {word: $1}}]}
  - when: {user: "^nap"}
    reply: {calls: [{tool: nap, args: {seconds: 3}}]}
  - when: {user: "^long nap"}
    reply: {calls: [{tool: nap, args: {seconds: 120}}]}
  - when: {user: "^post (.*)"}
    reply: {calls: [{tool: post, args: {word: $1}}]}
  - when: {user: "^child"}
    reply: {calls: [{tool: child, args: {}}]}
  - when: {user: "^fail"}
    reply: {say: "", fail: {status: 400}}
  - when: {user: "^busy"}
    reply: {say: "Here again.", fail: {status: 429, retry_after_s: 5, times: 1}}
  - when: {user: "^slow"}
    reply: {say: "at last", delay_s: 60}
  - when: {tool: note, result: "noted"}
    reply: {say: "It is noted."}
  - when: {tool: note}
    reply: {say: "It was refused."}
  - when: {result: "."}
    reply: {say: "Done."}
default: {say: "You said $user"}
"""

AGENT = """\
apiVersion: capuchin/v1
name: {name}
version: 1.0.0
description: Takes notes.
prompt: You take notes for {{{{ who }}}}.
variables:
  who: {{type: string, default: somebody}}
tools:
  - probe.look
  - probe.note
  - probe.nap
  - probe.post
  - probe.child
approval: {{policy: denylist, tools: [{asks}]}}
limits: {{max_steps: 8}}
price: {{type: free}}
"""


def agent_text(name: str = "notes", asks: str = "probe.note") -> str:
    """An agent file that asks before the tools named in `asks`."""
    return AGENT.format(name=name, asks=asks)


@dataclass(frozen=True)
class Ran:
    """How one run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as the one JSON document it must be."""
        return json.loads(self.out)


@dataclass
class Project:
    """A folder with agents, a script for the model, and a tool package of its own."""

    folder: Path
    packages: Path
    environ: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path, *, editable: bool = False) -> Project:
        """Lay out a project with the agent `notes` that asks before `probe.note`."""
        packages = folder / "packages"
        install_probe(packages, editable=editable)
        (folder / "agents").mkdir()
        (folder / "agents" / "notes.yaml").write_text(agent_text())
        (folder / "script.yaml").write_text(SCRIPT)
        project = cls(folder, packages)
        project.environ = {
            **clean_environ(folder),
            "PYTHONPATH": str(packages),
            "CAPUCHIN_MODEL": f"scripted:{folder / 'script.yaml'}",
        }
        return project

    @property
    def home(self) -> Path:
        """The state folder."""
        return self.folder / ".capuchin"

    @property
    def agent_file(self) -> Path:
        """The agent `notes`."""
        return self.folder / "agents" / "notes.yaml"

    @property
    def data(self) -> Path:
        """What the probe's tools leave behind."""
        return self.home / "data" / "probe"

    def run(self, *args: str, stdin: str | None = None, **environ: str) -> Ran:
        """Run one verb to its end."""
        return run(*args, cwd=self.folder, environ={**self.environ, **environ}, stdin=stdin)

    @contextlib.contextmanager
    def sending(self, text: str) -> Iterator[str]:
        """A message to `notes` that is being answered; its conversation."""
        with subprocess.Popen(
            [*PROGRAM, "send", "notes", text],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            try:
                yield process.stderr.readline().split()[1]
            finally:
                process.terminate()

    @contextlib.contextmanager
    def up(self, *args: str, **environ: str) -> Iterator[Up]:
        """Run `up` until it is ready; whatever is left of it is ended at the end."""
        with Up(self, args, environ) as up:
            up.wait_ready()
            yield up


class Up:
    """A running `up`, and every process it brought along."""

    def __init__(self, project: Project, args: Sequence[str], environ: Mapping[str, str]) -> None:
        self._project = project
        self.log = project.folder / f"up-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, "up", *args],
                cwd=project.folder,
                env={**project.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> Up:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    @property
    def said(self) -> str:
        """What it has written so far."""
        return self.log.read_text(errors="replace")

    def wait_said(self, text: str) -> None:
        """Wait until it has written `text`."""
        wait_until(lambda: text in self.said, lambda: f"{text!r} in:\n{self.said}")

    def wait_ready(self) -> None:
        """Wait until conversations can be started."""

        def is_ready() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"up ended with {self.process.returncode}:\n{self.said}")
            return "ready at" in self.said

        wait_until(is_ready, lambda: self.said)

    def end(self, number: int) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def workers(self) -> list[int]:
        """The worker processes that the state folder names."""
        record = json.loads((self._project.home / "worker.json").read_text())
        return [worker["pid"] for worker in record["workers"]]


def install_probe(folder: Path, *, editable: bool = False) -> None:
    """Put the tool package `probe` into a folder, as pip would."""
    dist_info = folder / "capuchin_probe-1.0.dist-info"
    dist_info.mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: capuchin-probe\nVersion: 1.0\n"
    (dist_info / "METADATA").write_text(metadata)
    (dist_info / "entry_points.txt").write_text("[capuchin.tools]\nprobe = capuchin_probe\n")
    if editable:
        origin = {"url": folder.as_uri(), "dir_info": {"editable": True}}
        (dist_info / "direct_url.json").write_text(json.dumps(origin))
    (folder / "capuchin_probe").mkdir()
    (folder / "capuchin_probe" / "__init__.py").write_text(PROBE)


def clean_environ(home: Path, **more: str) -> dict[str, str]:
    """An environment with nothing of the developer's in it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "TERM": "xterm-256color",
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "CAPUCHIN_USER": "ann",
        **more,
    }


def run(
    *args: str, cwd: Path, environ: Mapping[str, str] | None = None, stdin: str | None = None
) -> Ran:
    """Run the program to its end; without `stdin` it is empty."""
    done = subprocess.run(
        [*PROGRAM, *args],
        cwd=cwd,
        env=dict(clean_environ(cwd) if environ is None else environ),
        input=(stdin or "").encode(),
        capture_output=True,
        timeout=PATIENCE_S * 2,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def wait_until(is_so: Callable[[], bool], tell: Callable[[], str] = lambda: "") -> None:
    """Return as soon as something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {PATIENCE_S:g} s: {tell()}")
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def processes_of(folder: Path) -> dict[int, str]:
    """Every process whose command line or environment names this folder."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if not words:
                continue
            environ = (entry / "environ").read_bytes()
            if os.fsencode(folder) in words + environ:
                found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace")
    return found
