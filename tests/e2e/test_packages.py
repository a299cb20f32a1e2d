"""Tool packages of strangers: slow, broken, twins, or fond of odd imports, in the real program."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, Project, clean_environ
from tests.e2e.street import agent_text, street_project
from tests.tools.distributions import TOOL_SOURCE, install

SLEEPY = "import time\ntime.sleep(5)\n" + TOOL_SOURCE
ODD = (
    '''
"""Imports and does at import time what the workflow sandbox forbids."""

import asyncio, ctypes, datetime, multiprocessing, os, pathlib, random, socket, ssl, subprocess
import sys, tempfile, threading, urllib.request, uuid

import anthropic, jinja2, pydantic, textual

STARTED = datetime.datetime.now()
HERE = pathlib.Path(__file__).resolve()
WHO = os.environ.get("USER", "nobody")
LUCK = random.getrandbits(8), uuid.uuid4()
threading.Thread(target=lambda: None).start()
sys.setrecursionlimit(sys.getrecursionlimit())
print("ODD was imported")
'''
    + TOOL_SOURCE
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the agent `street` that uses none of the packages of these tests."""
    return street_project(tmp_path)


def add_agent(project: Project, name: str, tools: str) -> None:
    """Another agent beside `street`."""
    text = agent_text(name, tools=tools).replace("[street.sign]", f"[{tools.split(',')[0]}]")
    (project.folder / "agents" / f"{name}.yaml").write_text(text)


def add_broken(project: Project) -> dict[str, str]:
    """Packages that fail to import, each in its own way, and the cause of each."""
    sources = {
        "lost": ("import not_installed_anywhere\n", "No module named 'not_installed_anywhere'"),
        "typo": ("def x(:\n", "SyntaxError"),
        "exits": ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        "raises": ("raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
    }
    for name, (source, _) in sources.items():
        install(
            project.packages,
            f"acme-{name}",
            entries={name: f"acme_{name}"},
            modules={f"acme_{name}.py": source},
        )
    install(
        project.packages,
        "acme-empty",
        entries={"empty": "acme_empty:nothing"},
        modules={"acme_empty.py": "x = 1\n"},
    )
    install(project.packages, "acme-gone", entries={"gone": "acme_gone"})
    return {
        **{name: cause for name, (_, cause) in sources.items()},
        "empty": "nothing",
        "gone": "No module named 'acme_gone'",
    }


def test_broken_packages_nobody_uses_are_no_hindrance(project: Project) -> None:
    """Case: an import error in any installed plugin kills every command, even help."""
    add_broken(project)

    for verb in (["--help"], ["--version"], ["validate"], ["export", "agents/street.yaml"]):
        ran = project.run(*verb)
        assert ran.code == 0, ran.err
        assert "acme" not in ran.out + ran.err
    with project.up("--no-tui") as up:
        assert project.run("send", "street", "echo hello").code == 0
        assert "acme" not in up.said


def test_a_broken_package_is_named_once_where_it_is_used(project: Project) -> None:
    """Case: the cause of a broken plugin is swallowed, or hidden behind 'agent not found'."""
    causes = add_broken(project)
    for name in causes:
        add_agent(project, name, f"{name}.hello")

    ran = project.run("validate", "--format", "concise")
    refused = project.run("up", "--no-tui")

    assert (ran.code, refused.code) == (1, 1)
    assert len(ran.out.splitlines()) == len(causes)
    for name, cause in causes.items():
        [line] = [x for x in ran.out.splitlines() if x.startswith(f"agents/{name}.yaml:")]
        assert f"acme-{name} 1.0" in line
        assert cause in line
        assert cause in refused.err
    assert "Traceback" not in ran.err + refused.err


def test_an_unused_package_that_is_slow_to_import_slows_nothing(project: Project) -> None:
    """Case: every command imports every plugin, so a slow one is felt everywhere."""
    install(
        project.packages,
        "acme-sleepy",
        entries={"sleepy": "acme_sleepy"},
        modules={"acme_sleepy.py": SLEEPY},
    )
    add_agent(project, "tired", "sleepy.hello")

    for verb in (["--help"], ["--version"], ["validate", "agents/street.yaml"]):
        began = time.monotonic()
        assert project.run(*verb).code == 0
        assert time.monotonic() - began < 5, verb
    began = time.monotonic()
    assert project.run("validate", "agents/tired.yaml").code == 0
    assert time.monotonic() - began > 5


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_two_distributions_of_one_name_are_both_named_where_it_is_used(
    order: tuple[str, str], project: Project
) -> None:
    """Case: of two plugins with one tool name the last installed wins in silence."""
    folders = [project.folder / name for name in order]
    for name, folder in zip(order, folders, strict=True):
        install(
            folder,
            f"acme-{name}",
            entries={"acme": f"acme_{name}"},
            modules={f"acme_{name}.py": TOOL_SOURCE},
        )
    add_agent(project, "torn", "acme.hello")
    path = ":".join(map(str, [*folders, project.packages]))

    torn = project.run("validate", "agents/torn.yaml", PYTHONPATH=path)
    other = project.run("validate", "agents/street.yaml", PYTHONPATH=path)

    assert torn.code == 1
    assert "acme-one 1.0 and acme-two 1.0" in torn.out
    assert (other.code, other.out) == (0, "")


def test_a_package_with_odd_imports_runs_and_disturbs_nobody(project: Project) -> None:
    """Case: a third-party import near workflow code keeps the worker from starting."""
    install(project.packages, "acme-odd", entries={"odd": "acme_odd"}, modules={"acme_odd.py": ODD})
    with project.up("--no-tui"):
        assert project.run("send", "street", "echo hello").code == 0
    add_agent(project, "odd", "odd.hello, street.echo")

    with project.up("--no-tui") as up:
        ran = project.run("send", "odd", "echo hello")

        assert (ran.code, "echo of hello" in ran.out) == (0, True), ran.err
        assert "ODD was imported" not in up.said + ran.out + ran.err
    errors = (project.home / "log" / "worker.log").read_text()
    assert "RestrictedWorkflowAccess" not in errors


def test_a_package_cannot_come_from_the_folder_of_an_agent(tmp_path: Path) -> None:
    """Case: code beside a downloaded agent file is imported by name."""
    for folder in (tmp_path, tmp_path / "agents"):
        install(folder, "evil", entries={"evil": "evil"}, modules={"evil.py": "open('owned', 'w')"})
    text = agent_text("evil", tools="evil.hello").replace("street.sign", "evil.hello")
    (tmp_path / "agents" / "evil.yaml").write_text(text)

    for verb in (["validate"], ["export", "agents/evil.yaml"], ["doctor"], ["up"]):
        # The console script, as a person starts it: `python -m` would look here first.
        done = subprocess.run(
            [str(Path(PROGRAM[0]).parent / "capuchin"), *verb],
            cwd=tmp_path,
            env=clean_environ(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 1
        assert "no tool package named 'evil'" in done.stdout + done.stderr
    assert not (tmp_path / "owned").exists()
