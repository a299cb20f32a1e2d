"""The kit for authors finds what is wrong with a package, and runs tools as the engine does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from capuchin_yaml.errors import PluginUnavailable, ToolFailed
from capuchin_yaml.testing import UnsoundPackage, check_package, run_tool
from capuchin_yaml.tools.api import Artifact, ToolContext, ToolResult, preview_hash, tool
from tests.tools.distributions import TOOL_SOURCE, importable, install


@tool(effect="read")
def where(ctx: ToolContext, n: int = 3) -> dict[str, object]:
    """Tell what a tool knows.

    Args:
        n: A number.
    """
    ctx.heartbeat("half", 50)
    (ctx.data_dir / "note").write_text("x")
    return {
        "n": n,
        "config": ctx.config,
        "injected": ctx.injected,
        "call": [ctx.conversation_id, ctx.call_id, ctx.idempotency_key, ctx.attempt],
        "folder": ctx.data_dir,
        "thread": threading.current_thread() is threading.main_thread(),
    }


def test_a_tool_runs_in_a_thread_with_a_context_of_its_own() -> None:
    run = run_tool(where, config={"a": 1}, injected={"tenant": 7}, attempt=2)

    assert isinstance(run.value, dict)
    folder = run.value.pop("folder")
    assert run.value == {
        "n": 3,
        "config": {"a": 1},
        "injected": {"tenant": 7},
        "call": ["test", "test:1", "test-key", 2],
        "thread": False,
    }
    assert run.heartbeats == (("half", 50),)
    assert not folder.exists()


def test_a_result_with_more_to_it_is_taken_apart() -> None:
    @tool(effect="read")
    def make(ctx: ToolContext) -> ToolResult:
        """Make a file."""
        path = ctx.data_dir / "made.txt"
        path.write_text("made")
        return ToolResult({"n": 1}, is_error=True, artifacts=[Artifact("made.txt", path=path)])

    run = run_tool(make)

    assert (run.text, run.is_error, run.artifacts) == ('{"n": 1}', True, {"made.txt": b"made"})


def test_a_preview_runs_like_a_tool_and_its_hash_reaches_the_tool() -> None:
    def show(n: int) -> str:
        return f"would take {n}"

    @tool(preview=show)
    def take(n: int, ctx: ToolContext) -> bool:
        """Take."""
        return ctx.preview_hash == preview_hash(show(n))

    assert take.preview is not None
    shown = run_tool(take.preview, {"n": 3})

    assert shown.text == "would take 3"
    assert run_tool(take, {"n": 3}, preview_hash=preview_hash(shown.value)).value is True


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    run_tool(where, data_dir=tmp_path / "kept")

    assert (tmp_path / "kept" / "note").read_text() == "x"


async def test_an_async_tool_runs_inside_a_running_loop() -> None:
    @tool
    async def go(name: str) -> str:
        """Go."""
        return f"went to {name}"

    assert run_tool(go, {"name": "Rome"}).text == "went to Rome"


def test_arguments_are_checked_as_a_models_are() -> None:
    with pytest.raises(ToolFailed, match="the arguments do not fit: n: 'x' is not of type"):
        run_tool(where, {"n": "x"})


def test_what_a_tool_raises_comes_out_as_it_is() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        run_tool(fail)


def test_a_tool_that_is_not_installed_is_refused() -> None:
    with pytest.raises(PluginUnavailable, match="no tool package 'nope'"):
        run_tool("nope.tool")


def test_a_sound_package_is_returned(tmp_path: Path) -> None:
    install(
        tmp_path, "acme", entries={"acme": "acme_sound"}, modules={"acme_sound.py": TOOL_SOURCE}
    )

    with importable(tmp_path) as registry:
        assert list(check_package("acme", registry).tools) == ["hello"]
        assert run_tool("acme.hello", {"name": "Ada"}, registry=registry).text == "hello Ada"


def test_every_mistake_of_a_package_is_named(tmp_path: Path) -> None:
    source = '''
from capuchin_yaml.tools.api import ToolPackage, tool

@tool
def one(a: int, b: int) -> int:
    """One.

    Args:
        a: Described.
        c: Not there.
    """
    return a

config = {"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}}
package = ToolPackage([one], config=config)
wrong = ToolPackage([one], config={"type": "object", "properties": 3})
'''
    install(
        tmp_path,
        "acme",
        entries={"acme": "acme_unsound:package", "wrong": "acme_unsound:wrong"},
        modules={"acme_unsound.py": source},
    )

    with importable(tmp_path) as registry:
        with pytest.raises(AssertionError) as unsound:
            check_package("acme", registry)
        with pytest.raises(UnsoundPackage, match="config: its schema is no JSON Schema"):
            check_package("wrong", registry)

    assert str(unsound.value).splitlines() == [
        "tool package 'acme' is not sound:",
        "acme.one: parameter 'b' has no description; write a line for it under 'Args:'",
        "acme.one: its docstring describes 'c', which is no parameter",
        "config: the default of 'n' does not fit: 'x' is not of type 'integer'",
    ]
