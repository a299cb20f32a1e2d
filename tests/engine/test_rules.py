"""Rules and the operator's floor, in conversations that run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from capuchin_yaml.engine.agents import ServedAgent
from capuchin_yaml.engine.state import Call, Conversation, Turn
from capuchin_yaml.spec import ApprovalSpec, RuleSpec
from tests.engine.house import House, Talk, open_house

CAP = RuleSpec(
    "deny",
    when="conversation.total.cents + args.cents > 100",
    reason="The talk may pay 100 in all.",
)


def payer(house: House, *rules: RuleSpec, policy: Any = "auto") -> str:
    """An agent that pays what it is told, one call for each number."""
    model = house.script(
        {
            "when": {"user": r"pay (\d+) (\d+)"},
            "reply": {
                "calls": [
                    {"tool": "pay", "args": {"cents": 70}},
                    {"tool": "pay", "args": {"cents": 50}},
                ]
            },
        },
        {"when": {"user": "pay"}, "reply": {"calls": [{"tool": "pay", "args": {"cents": 70}}]}},
        default={"say": "ok"},
    )
    house.agent("payer", model, "lab.pay", approval=ApprovalSpec(policy, rules=rules))
    return "payer"


async def results(talk: Talk) -> list[tuple[str, str]]:
    return [(e["status"], e["text"]) for e in await talk.entries() if e["kind"] == "result"]


class Operator:
    """The operator's config of this test."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "capuchin" / "config.yaml"
        self._path.parent.mkdir(parents=True)

    def says(self, text: str | None) -> None:
        if text is None:
            self._path.unlink()
        else:
            self._path.write_text(text)


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Operator(tmp_path / "config")


async def test_a_total_counts_what_earlier_turns_did(house: House) -> None:
    talk = await house.talk(payer(house, CAP), "pay")
    await talk.idle()

    await talk.send("pay")
    await talk.idle()

    [first, second] = await results(talk)
    assert first == ("ok", "paid 70")
    assert second[0] == "denied"
    assert "The talk may pay 100 in all." in second[1]
    assert house.effects() == ["paid 70"]


async def test_a_total_counts_earlier_calls_of_the_same_reply_that_still_wait(
    house: House,
) -> None:
    talk = await house.talk(payer(house, CAP, policy="all"), "pay 70 50")
    item = await talk.item()

    await talk.decide(item, "approve")
    await talk.idle()

    assert [status for status, _ in await results(talk)] == ["ok", "denied"]
    assert house.effects() == ["paid 70"]


async def test_an_edited_call_counts_a_later_one_that_ran_while_it_waited(house: House) -> None:
    runs_alone = RuleSpec("allow", when="args.cents == 50")
    model = house.script(
        {
            "when": {"user": "pay"},
            "reply": {
                "calls": [
                    {"tool": "pay", "args": {"cents": 40}},
                    {"tool": "pay", "args": {"cents": 50}},
                ]
            },
        },
        default={"say": "ok"},
    )
    approval = ApprovalSpec("all", rules=(CAP, runs_alone))
    house.agent("payer", model, "lab.pay", approval=approval)
    talk = await house.talk("payer", "pay")
    item = await talk.item()
    await talk.until(lambda _state: house.effects() == ["paid 50"])

    await talk.decide(item, "edit", arguments='{"cents": 80}')
    await talk.idle()

    assert [status for status, _ in await results(talk)] == ["denied", "ok"]
    assert house.effects() == ["paid 50"]


async def test_a_call_that_was_refused_does_not_count(house: House) -> None:
    talk = await house.talk(payer(house, CAP, policy="all"), "pay")
    await talk.decide(await talk.item(), "deny")
    await talk.idle()

    await talk.send("pay")
    await talk.decide(await talk.item(), "approve")
    await talk.idle()

    assert [status for status, _ in await results(talk)] == ["denied", "ok"]


@pytest.fixture
async def short_runs(temporal: Client, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(temporal, tmp_path, roll_over_events=20) as house:
        yield house


async def test_a_total_is_carried_over_a_roll_over(short_runs: House) -> None:
    talk = await short_runs.talk(payer(short_runs, CAP), "pay")
    await talk.idle()
    while (await talk.state())["run"] < 2:
        await talk.send("hello")
        await talk.idle()

    await talk.send("pay")
    await talk.until(lambda s: s["status"] == "idle")

    assert short_runs.effects() == ["paid 70"]


async def test_the_floor_reaches_a_conversation_that_is_open(
    house: House, operator: Operator
) -> None:
    talk = await house.talk(payer(house), "pay")
    await talk.idle()

    operator.says('floor: [{tool: "*", then: deny, reason: Stop everything.}]')
    await talk.send("pay")
    await talk.idle()

    [first, second] = await results(talk)
    assert first[0] == "ok"
    assert second == (
        "denied",
        "A rule refused this call; it was not run: Stop everything.",
    )


async def test_an_item_that_the_floor_denies_by_now_does_not_run_when_it_is_approved(
    house: House, operator: Operator
) -> None:
    talk = await house.talk(payer(house, policy="all"), "pay")
    item = await talk.item()

    operator.says("floor: [{tool: lab.pay, then: deny, reason: Stop paying.}]")
    await talk.decide(item, "approve")
    await talk.idle()

    assert [status for status, _ in await results(talk)] == ["denied"]
    assert house.effects() == []


async def test_a_floor_that_cannot_be_read_makes_every_call_ask(
    house: House, operator: Operator
) -> None:
    operator.says("floor: [")

    talk = await house.talk(payer(house), "pay")
    item = await talk.item()

    assert "the operator's rules" in item["reason"]


async def test_lifting_the_floor_lets_calls_run_again(house: House, operator: Operator) -> None:
    operator.says("floor: [{then: ask}]")
    talk = await house.talk(payer(house), "pay")
    await talk.decide(await talk.item(), "deny")
    await talk.idle()

    operator.says(None)
    await talk.send("pay")
    await talk.idle()

    assert house.effects() == ["paid 70"]


def test_a_state_without_tallies_still_loads() -> None:
    carried = Conversation(id="c", agent="a", created_at="t").carry("r")
    del carried["tallies"], carried["untrusted"]

    again = Conversation.resume(carried)

    assert (again.tallies, again.untrusted) == ({}, False)


def test_tallies_are_carried() -> None:
    conversation = Conversation(id="c", agent="a", created_at="t", turn=Turn(1, "m"))
    conversation.tallies = {"lab.pay": {"calls": 1, "total": {"cents": 70}}}
    conversation.untrusted = True

    again = Conversation.resume(conversation.carry("r"))

    assert again.tallies == {"lab.pay": {"calls": 1, "total": {"cents": 70}}}
    assert again.untrusted is True


@pytest.mark.parametrize(("entries", "unavailable", "started"), [(0, 0, 0), (1, 0, 1), (2, 2, 0)])
def test_a_call_was_started_once_a_tool_was_or_may_have_been_entered(
    entries: int, unavailable: int, started: int
) -> None:
    call = Call(1, "c:1", "pay", {}, entries=entries, unavailable=unavailable)

    assert call.was_started is bool(started)


ASKS = RuleSpec("ask", tool="lab.pay", when="args.cents > 9", reason="Much.")
WRITTEN = "tool: lab.pay · when: args.cents > 9 · then: ask · reason: Much."


async def test_an_item_tells_the_rule_that_asks_as_written_and_where_it_stands(
    house: House,
) -> None:
    payer(house, RuleSpec("ask", when="args.cents > 900"), ASKS)
    served = house.agents.get("payer")
    assert served is not None
    house.agents.put(replace(served, rule_places=("agents/a.yaml:9", "agents/a.yaml:11")))
    item = await (await house.talk("payer", "pay")).item()

    assert item["rule"] == f"rule 2 (agents/a.yaml:11): {WRITTEN}"


async def test_a_rule_of_a_file_that_changed_since_is_told_without_a_place(house: House) -> None:
    talk = await house.talk(payer(house, ASKS), "hello")
    await talk.idle()
    served = house.agents.get("payer")
    assert served is not None
    changed = replace(served.spec, prompt="Other.")
    house.agents.put(ServedAgent(changed, rule_places=("agents/a.yaml:11",)))
    await talk.send("pay")

    assert (await talk.item())["rule"] == f"rule 1: {WRITTEN}"


async def test_the_policy_and_its_list_are_no_rule(house: House) -> None:
    item = await (await house.talk(payer(house, policy="all"), "pay")).item()

    assert (item["rule"], item["reason"]) == ("", "policy all")
