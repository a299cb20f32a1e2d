"""A project whose tools and model misbehave in every way that the program must cope with."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Project, clean_environ
from tests.tools.distributions import install

HOSTILE = "\x1b]0;owned\x07\x1b[2Jred\u202egpj.exe\u200b\x9b31m"
"""Sets a title, clears the screen, turns the reading direction, hides a mark."""
RAW_MARKS = frozenset("\x1b\x07\u202e\u200b\x9b\x00")
"""What must never reach a terminal as it is."""

TOOLS = '''
"""Tools that misbehave."""

import logging
import os
import subprocess
import sys
import time
import warnings

from capuchin_yaml.tools.api import ToolContext, tool

HOSTILE = {hostile!r}


@tool(effect="write")
def sleepwalk(ctx: ToolContext) -> str:
    """Walk for a long time; not to be done twice."""
    with open(ctx.data_dir / "walk-began", "a") as file:
        file.write(str(ctx.attempt))
    time.sleep(60)
    return "walked"


@tool(effect="read")
def echo(word: str) -> str:
    """Give back what a stranger wrote.

    Args:
        word: What.
    """
    return "echo of " + word + HOSTILE


@tool(effect="write", name="sign")
def sign(word: str, ctx: ToolContext) -> str:
    """Put a name under something.

    Args:
        word: The name.
    """
    with open(ctx.data_dir / "signed", "a", encoding="utf-8") as file:
        file.write(word)
    return "signed"


@tool(effect="read")
def noise() -> str:
    """Write to everything that could be a screen."""
    print("NOISE-print")
    print("NOISE-stderr", file=sys.stderr)
    logging.warning("NOISE-logging")
    warnings.warn("NOISE-warning")
    os.write(1, b"NOISE-fd1\\n")
    os.write(2, b"NOISE-fd2\\n")
    subprocess.run(["sh", "-c", "echo NOISE-child; echo NOISE-child >&2"])
    subprocess.run(["sh", "-c", "echo NOISE-tty >/dev/tty || true"])
    return "was noisy"
'''

SCRIPT = r"""
rules:
  - when: {user: "^sleepwalk"}
    reply: {calls: [{tool: sleepwalk, args: {}}]}
  - when: {user: "^noise"}
    reply: {calls: [{tool: noise, args: {}}]}
  - when: {user: "^sign (.*)"}
    reply: {say: "Signing $1", calls: [{tool: sign, args: {word: $1}}]}
  - when: {user: "^echo (.*)"}
    reply: {say: "Echoing $1", calls: [{tool: echo, args: {word: $1}}]}
  - when: {user: "^slow (.*)"}
    reply: {say: "$1 at last", delay_s: 3}
  - when: {user: "^loop"}
    reply: {calls: [{tool: echo, args: {word: again}}]}
  - when: {result: "echo of again"}
    reply: {calls: [{tool: echo, args: {word: again}}]}
  - when: {result: "(.*)"}
    reply: {say: "It came back: $1"}
default: {say: "You said $user"}
"""

AGENT = """\
apiVersion: capuchin/v1
name: {name}
version: 1.0.0
description: {description}
prompt: You walk the street.
tools: [{tools}]
approval: {{policy: denylist, tools: [street.sign]}}
limits: {{max_steps: 4}}
"""
EVERY_TOOL = "street.sleepwalk, street.echo, street.sign, street.noise"


def agent_text(name: str = "street", description: str = "Walks.", tools: str = EVERY_TOOL) -> str:
    """An agent file with the tools of the street."""
    return AGENT.format(name=name, description=description, tools=tools)


def street_project(folder: Path) -> Project:
    """A project with the agent `street`, its package, and a script that answers."""
    packages = folder / "packages"
    install(
        packages,
        "capuchin-street",
        entries={"street": "capuchin_street"},
        modules={"capuchin_street.py": TOOLS.replace("{hostile!r}", repr(HOSTILE))},
    )
    (folder / "agents").mkdir()
    (folder / "agents" / "street.yaml").write_text(agent_text())
    (folder / "script.yaml").write_text(SCRIPT)
    environ = clean_environ(
        folder,
        PYTHONPATH=str(packages),
        CAPUCHIN_MODEL=f"scripted:{folder / 'script.yaml'}",
    )
    return Project(folder, packages, environ)


def street_data(project: Project) -> Path:
    """What the street's tools leave behind."""
    return project.home / "data" / "street"
