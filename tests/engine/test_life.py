"""A conversation between its turns: idle, closed when idle, waiting, and costing nothing."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType

from capuchin_yaml.engine import contract
from capuchin_yaml.spec import ApprovalSpec, Limits
from tests.engine.house import House, Talk, lab

_TIMER = EventType.EVENT_TYPE_TIMER_STARTED


def serve(house: House, idle_close_s: float | None, *tools: str) -> None:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]}},
        {
            "when": {"user": "slow"},
            "reply": {"calls": [{"tool": "wait", "args": {"name": f"{house.project}-slow"}}]},
        },
        default={"say": "done"},
    )
    house.agent(
        "idler",
        model,
        *tools,
        limits=Limits(idle_close_s=idle_close_s),
        approval=ApprovalSpec(policy="denylist", tools=("lab.write",)),
    )


async def closed(talk: Talk) -> dict[str, object]:
    """Wait for the end and return the summary."""
    result: dict[str, object] = await talk.handle.result()
    return result


async def timers(talk: Talk) -> int:
    history = await talk.handle.fetch_history()
    return sum(e.event_type == _TIMER for e in history.events)


async def test_an_idle_conversation_closes_with_its_reason(house: House) -> None:
    serve(house, 1.0)
    talk = await house.talk("idler", "hello")

    summary = await closed(talk)

    assert summary["status"] == "closed"
    assert summary["reason"] == "it was idle for 1s"
    [ended] = [e for e in await talk.events() if e["kind"] == "conversation_closed"]
    assert (ended["by"], ended["detail"]) == ("", "it was idle for 1s")


async def test_one_that_never_said_a_word_closes_too(house: House) -> None:
    serve(house, 1.0)
    talk = await house.talk("idler", None)

    assert (await closed(talk))["turns"] == 0


async def test_a_message_starts_the_clock_anew(house: House) -> None:
    serve(house, 2.0)
    talk = await house.talk("idler", "hello")
    for i in range(4):
        await talk.idle()
        await talk.send(f"more {i}")

    summary = await closed(talk)

    assert summary["turns"] == 5
    assert [e["kind"] for e in await talk.events()].count("conversation_closed") == 1


async def test_a_turn_that_runs_is_never_closed(house: House) -> None:
    serve(house, 1.0, "lab.wait")
    talk = await house.talk("idler", "slow")
    await talk.until(lambda s: lab.entered(f"{house.project}-slow").is_set())
    other = await house.talk("idler", "hello")
    await closed(other)  # its clock ran from the same moment, and longer

    assert (await talk.state())["status"] == "thinking"
    lab.gate(f"{house.project}-slow").set()
    assert (await closed(talk))["turns"] == 1


async def test_what_waits_for_a_person_is_never_closed(house: House) -> None:
    serve(house, 1.0, "lab.write")
    talk = await house.talk("idler", "go")
    item = await talk.item()
    other = await house.talk("idler", "hello")
    await closed(other)

    assert (await talk.state())["status"] == "waiting"
    await talk.decide(item, "approve")
    assert (await closed(talk))["turns"] == 1
    assert house.effects() == ["x"]


async def test_an_idle_conversation_without_the_limit_costs_no_timer_and_no_task(
    house: House,
) -> None:
    serve(house, None)
    talk = await house.talk("idler", "hello")
    await talk.idle()

    described = await talk.handle.describe()
    assert await timers(talk) == 0
    assert not described.raw_description.pending_activities
    assert not described.raw_description.HasField("pending_workflow_task")


async def test_a_closed_conversation_says_why_it_cannot_be_talked_to(house: House) -> None:
    serve(house, 1.0)
    talk = await house.talk("idler", "hello")
    await closed(talk)

    state = await talk.ask(contract.STATE)
    assert (state["status"], state["detail"]) == ("closed", "it was idle for 1s")
