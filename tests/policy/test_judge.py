"""Verdicts: the strictest of all sources, bound to what would run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from capuchin_yaml.policy.judge import NOTHING_BEFORE, InstalledTool, judge_calls
from capuchin_yaml.spec import AgentSpec, ApprovalSpec
from tests.policy.test_gating import agent, tool

HERE = InstalledTool("1", "d", "1", False)


def judge(spec: AgentSpec, *calls: dict[str, Any], installed: Any = HERE, **more: Any) -> Any:
    full = [{"call_id": f"c:{i}", "problem": None, **c} for i, c in enumerate(calls)]
    return judge_calls(
        spec,
        more.get("hash", "h"),
        replace(NOTHING_BEFORE, injected=more.get("injected", {})),
        full,
        lambda identity: installed,
    )


def test_an_allowed_call_carries_its_canonical_arguments_and_digest() -> None:
    [verdict] = judge(agent(tool("a.read", "read")), {"tool": "read", "input": {"b": 1, "a": 2}})

    assert verdict["verdict"] == "allow"
    assert verdict["arguments"] == '{"a":2,"b":1}'
    assert len(verdict["digest"]) == 64


def test_the_authors_wish_counts_as_it_is_installed_now() -> None:
    spec = agent(tool("a.read", "read"), policy="auto")

    [verdict] = judge(
        spec, {"tool": "read", "input": {}}, installed=InstalledTool("1", "d", "1", True)
    )

    assert (verdict["verdict"], verdict["decided_by"]) == ("ask", "needs_approval")


def test_unknown_vanished_and_broken_calls_are_invalid_and_never_asked() -> None:
    spec = agent(tool("a.write"), policy="all")

    verdicts = judge(
        spec,
        {"tool": "wrong", "input": {}},
        {"tool": "write", "input": {}, "problem": "no object"},
        {"tool": "write", "input": []},
    )
    [gone] = judge(spec, {"tool": "write", "input": {}}, installed=None)

    assert [v["verdict"] for v in verdicts] == ["invalid"] * 3
    assert gone["verdict"] == "invalid"
    assert "no longer installed" in gone["reason"]


def test_every_bound_part_changes_the_digest() -> None:
    spec = agent(tool("a.write"))
    call = {"tool": "write", "input": {"a": 1}}

    digests = {
        judge(spec, call)[0]["digest"],
        judge(spec, {"tool": "write", "input": {"a": 2}})[0]["digest"],
        judge(spec, call, hash="other")[0]["digest"],
        judge(spec, call, injected={"tenant": "7"})[0]["digest"],
        judge(spec, call, installed=InstalledTool("2", "d", "1", False))[0]["digest"],
        judge(spec, call, installed=InstalledTool("1", "e", "1", False))[0]["digest"],
        judge(spec, call, installed=InstalledTool("1", "d", "2", False))[0]["digest"],
        judge(
            AgentSpec(
                name="a",
                prompt="p",
                approval=ApprovalSpec(),
                tools=(_with_config(tool("a.write"), {"currency": "EUR"}),),
            ),
            call,
        )[0]["digest"],
    }

    assert len(digests) == 8


def _with_config(spec: Any, config: dict[str, Any]) -> Any:
    import dataclasses

    return dataclasses.replace(spec, config=config)
