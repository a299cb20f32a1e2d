"""Tools that block, spin or stall hold up nobody else, and their results are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.program import Project, wait_until
from tests.e2e.demo import start, status_of, wait_idle
from tests.e2e.street import agent_text, street_project
from tests.tools.distributions import install

BLOCKERS = '''
"""Tools that are careless with time."""

import time

from capuchin_yaml.tools.api import ToolContext, tool


def began(ctx: ToolContext, name: str) -> None:
    (ctx.data_dir / name).write_text("")


def wait_for_gate(ctx: ToolContext) -> None:
    while not (ctx.data_dir / "gate").exists():
        time.sleep(0.05)


@tool(effect="read")
def block(ctx: ToolContext) -> str:
    """Block its thread."""
    began(ctx, "block")
    wait_for_gate(ctx)
    return "blocked"


@tool(effect="read")
async def stall(ctx: ToolContext) -> str:
    """Block its event loop."""
    began(ctx, "stall")
    wait_for_gate(ctx)
    return "stalled"


@tool(effect="write")
def spin(ctx: ToolContext) -> str:
    """Hold the interpreter."""
    began(ctx, "spin")
    n = 0
    while n % 1_000_000 or not (ctx.data_dir / "gate").exists():
        n += 1
    return "spun"


@tool(effect="read")
def hang(ctx: ToolContext) -> str:
    """Never come back."""
    began(ctx, "hang")
    time.sleep(3600)
    return "never"
'''
SCRIPT = r"""
rules:
  - when: {user: "^block"}
    reply: {calls: [{tool: block, args: {}}]}
  - when: {user: "^stall"}
    reply: {calls: [{tool: stall, args: {}}]}
  - when: {user: "^spin"}
    reply: {calls: [{tool: spin, args: {}}]}
  - when: {user: "^hang"}
    reply: {calls: [{tool: hang, args: {}}]}
  - when: {result: "(.*)"}
    reply: {say: "It said: $1"}
default: {say: "You said $user"}
"""


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project, up, whose tools block until the gate in their data folder opens."""
    project = street_project(tmp_path_factory.mktemp("careless"))
    install(
        project.packages,
        "capuchin-careless",
        entries={"careless": "capuchin_careless"},
        modules={"capuchin_careless.py": BLOCKERS},
    )
    tools = ", ".join(f"careless.{name}" for name in ("block", "stall", "spin"))
    text = agent_text("careless", tools=f"{tools}, {{use: careless.hang, timeout: 2s}}")
    policy = "approval: {policy: denylist, tools: [street.sign]}"
    (project.folder / "agents" / "careless.yaml").write_text(text.replace(policy, "approval: auto"))
    (project.folder / "script.yaml").write_text(SCRIPT)
    with project.up("--no-tui"):
        yield project


def test_a_second_conversation_is_answered_while_tools_block_spin_and_stall(
    careless: Project,
) -> None:
    """Case: one blocking tool stops heartbeats, other conversations and the screen."""
    data = careless.home / "data" / "careless"
    talks = {name: start(careless, "careless", name) for name in ("block", "stall", "spin")}
    wait_until(lambda: all((data / name).exists() for name in talks))

    answers = [careless.run("send", "careless", f"hello {n}").out for n in range(3)]
    states = [status_of(careless, talk) for talk in talks.values()]
    (data / "gate").write_text("")
    for talk in talks.values():
        wait_idle(careless, talk)

    assert answers == [f"You said hello {n}\n" for n in range(3)]
    assert states == ["thinking"] * 3
    for talk, said in zip(talks.values(), ("blocked", "stalled", "spun"), strict=True):
        events = careless.run("show", talk, "--json").json["events"]
        ended = [(e["status"], e["text"]) for e in events if e["kind"] == "tool_ended"]
        assert ended == [("ok", said)]


def test_a_tool_that_never_comes_back_is_bounded_by_its_time(careless: Project) -> None:
    ran = careless.run("send", "careless", "hang")

    assert ran.code == 0
    assert "no answer within 2 s" in ran.out
