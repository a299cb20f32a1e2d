"""The operator's policy service is asked before every call, can only tighten, and decides late."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from capuchin_yaml.spec import ApprovalSpec, RuleSpec
from tests.engine.house import House, Talk
from tests.engine.operator_file import write_operator_config
from tests.engine.outside_server import Posted, Service, service

Operator = Callable[..., Path]


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Writes the operator's config that the worker of this test reads."""
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return lambda **blocks: write_operator_config(folder, **blocks)


@pytest.fixture
def gate(operator: Operator) -> Iterator[Service]:
    """A policy service that the operator's config names."""
    with service() as found:
        operator(gate={"url": found.url, "timeout": "2s"})
        yield found


def says(answer: Any, status: int = 200) -> Callable[[Posted], tuple[int, bytes]]:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return lambda _: (status, body)


async def writing(house: House, approval: ApprovalSpec | None = None) -> Talk:
    model = house.script(
        {
            "when": {"user": r"write (\w+)"},
            "reply": {"calls": [{"tool": "write", "args": {"line": "$1"}}]},
        },
        default={"say": "done"},
    )
    house.agent("gated", model, "lab.write", approval=approval)
    return await house.talk("gated", "write one")


async def results(talk: Talk) -> list[tuple[str, str]]:
    return [(e["status"], e["text"]) for e in await talk.entries() if e["kind"] == "result"]


async def test_a_call_that_the_gate_allows_runs(house: House, gate: Service) -> None:
    talk = await writing(house)
    await talk.idle()
    [asked] = gate.posted

    assert house.effects() == ["one"]
    assert asked.json["tool"] == "lab.write"
    assert asked.json["arguments"] == {"line": "one"}
    assert (asked.json["agent"], asked.json["conversation"]) == ("gated", talk.id)
    assert (asked.json["verdict"], asked.json["requested_by"]) == ("allow", "the model")
    assert asked.headers["Idempotency-Key"] == asked.json["key"]


async def test_a_call_that_the_gate_denies_does_not_run(house: House, gate: Service) -> None:
    gate.reply = says({"answer": "deny", "reason": "under review"})
    talk = await writing(house)
    await talk.idle()

    assert await results(talk) == [
        ("denied", "A rule refused this call; it was not run: under review")
    ]
    assert house.effects() == []


async def test_a_call_that_the_gate_asks_about_waits_for_a_person(
    house: House, gate: Service
) -> None:
    gate.reply = says({"answer": "ask", "reason": "large for a Monday"})
    talk = await writing(house)
    item = await talk.item()
    before = house.effects()
    await talk.decide(item, "approve")
    await talk.idle()

    assert item["reason"] == "large for a Monday"
    assert before == []
    assert house.effects() == ["one"]


async def test_the_gate_does_not_lift_an_ask(house: House, gate: Service) -> None:
    item = await (await writing(house, ApprovalSpec(policy="all"))).item()

    assert item["reason"] == "policy all"
    assert house.effects() == []


async def test_what_is_denied_already_is_not_asked(house: House, gate: Service) -> None:
    approval = ApprovalSpec(policy="auto", rules=(RuleSpec("deny", tool="lab.write"),))
    talk = await writing(house, approval)
    await talk.idle()

    assert gate.posted == []
    assert [status for status, _ in await results(talk)] == ["denied"]


async def test_an_approved_call_is_asked_once_more_before_it_runs(
    house: House, gate: Service
) -> None:
    talk = await writing(house, ApprovalSpec(policy="all"))
    item = await talk.item()
    gate.reply = says({"answer": "deny", "reason": "stopped meanwhile"})
    await talk.decide(item, "approve")
    await talk.idle()
    first, second = gate.posted

    assert house.effects() == []
    assert "stopped meanwhile" in (await results(talk))[0][1]
    assert first.json["key"] != second.json["key"]


@pytest.mark.parametrize(
    "reply",
    [
        says({"answer": "allow"}, status=500),
        says({"answer": "allow"}, status=201),
        says(b"", status=302),
        says(b"allow"),
        says(["allow"]),
        says({"answer": "yes"}),
        says({"answer": ["allow"]}),
        says({"allow": True}),
        says({"answer": "allow", "reason": 5}),
        says(b'{"answer": "allow", "reason": "\\ud800"}'),
        says(b'{"answer": "allow"' + b" " * 70_000 + b"}"),
        says(b"[" * 60_000),
    ],
    ids=["500", "201", "302", "text", "list", "word", "listed", "key", "reason", "half", "large",
         "deep"],
)  # fmt: skip
async def test_anything_but_a_well_formed_answer_asks(
    house: House, gate: Service, reply: Callable[[Posted], tuple[int, bytes]]
) -> None:
    gate.reply = reply
    item = await (await writing(house)).item()

    assert item["reason"].startswith("the operator's gate: ")
    assert house.effects() == []
    assert len(gate.posted) == 1


async def test_a_gate_that_is_not_there_asks(house: House, operator: Operator) -> None:
    with service() as gone:
        url = gone.url
    operator(gate={"url": url, "timeout": "1s"})
    item = await (await writing(house)).item()

    assert "no answer of 127.0.0.1" in item["reason"]
    assert house.effects() == []


async def test_a_gate_that_keeps_silent_asks_when_its_time_is_up(
    house: House, gate: Service
) -> None:
    silence = threading.Event()
    gate.reply = lambda _: (silence.wait(30), (200, b'{"answer": "allow"}'))[1]
    try:
        item = await (await writing(house)).item()
    finally:
        silence.set()

    assert "timed out" in item["reason"]
    assert house.effects() == []


async def test_a_turn_can_be_cancelled_while_the_gate_is_asked(house: House, gate: Service) -> None:
    silence = threading.Event()
    gate.reply = lambda _: (silence.wait(30), (200, b'{"answer": "allow"}'))[1]
    try:
        talk = await writing(house)
        await talk.until(lambda _: gate.arrived.is_set())
        await talk.cancel()
        state = await talk.idle(timeout_s=10)
    finally:
        silence.set()

    assert state["items"] == []
    assert [status for status, _ in await results(talk)] == ["cancelled"]
    assert house.effects() == []


async def test_the_tool_runs_with_the_recorded_arguments_only(house: House, gate: Service) -> None:
    gate.reply = says({"answer": "allow", "arguments": {"line": "other"}})
    talk = await writing(house)
    await talk.idle()

    assert house.effects() == ["one"]


async def test_the_answer_is_in_history_before_the_tool_starts(house: House, gate: Service) -> None:
    talk = await writing(house)
    await talk.idle()
    history = await talk.handle.fetch_history()
    names: dict[int, str] = {}
    order: list[str] = []
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            scheduled = event.activity_task_scheduled_event_attributes
            names[event.event_id] = scheduled.activity_type.name
            order.append(f"{scheduled.activity_type.name} asked")
        elif event.HasField("activity_task_completed_event_attributes"):
            done = event.activity_task_completed_event_attributes
            order.append(f"{names[done.scheduled_event_id]} answered")

    assert order.index("ask_gate answered") < order.index("call_tool asked")


async def test_a_grant_does_not_answer_what_the_gate_asks(house: House, gate: Service) -> None:
    talk = await writing(house, ApprovalSpec(policy="all"))
    await talk.decide(await talk.item(), "approve", grant={"scope": "tool", "times": 5})
    await talk.idle()
    gate.reply = says({"answer": "ask", "reason": "look at this one"})
    await talk.send("write two")
    item = await talk.item()

    assert item["reason"] == "look at this one"
    assert (await talk.state())["grants"][0]["left"] == 5


async def test_agents_that_the_gate_is_not_about_are_not_asked(
    house: House, operator: Operator
) -> None:
    with service() as found:
        operator(gate={"url": found.url, "agents": ["others"]})
        await (await writing(house)).idle()

        assert found.posted == []
    assert house.effects() == ["one"]


async def test_a_question_is_signed_with_the_secret(
    house: House, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_SECRET", "hush")
    with service() as found:
        operator(gate={"url": found.url, "secret": {"env": "GATE_SECRET"}})
        await (await writing(house)).idle()
    [asked] = found.posted
    text = asked.headers["X-Capuchin-Time"].encode() + b"." + asked.body
    signed = hmac.new(b"hush", text, hashlib.sha256).hexdigest()

    assert asked.headers["X-Capuchin-Signature"] == f"sha256={signed}"


async def test_a_secret_that_is_not_there_asks(house: House, operator: Operator) -> None:
    with service() as found:
        operator(gate={"url": found.url, "secret": {"env": "NO_SUCH_SECRET"}})
        item = await (await writing(house)).item()

        assert "NO_SUCH_SECRET is not set" in item["reason"]
        assert found.posted == []
