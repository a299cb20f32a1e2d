"""A call that waits for certain people, for several of them, or for others when time is up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from capuchin_yaml.spec import ApprovalSpec, RuleSpec
from tests.engine.house import House, Talk
from tests.engine.operator_file import make_key, write_operator_config

FINANCE = {"finance": ["ann", "bob", "cleo"], "managers": ["mia"]}
TWO = ApprovalSpec(policy="all", approvers="finance", quorum=2)
Operator = Callable[..., Path]


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Writes the operator's config that the worker of this test reads."""
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return lambda **blocks: write_operator_config(folder, **blocks)


async def writing(
    house: House, approval: ApprovalSpec, text: str = "write one", **start: Any
) -> Talk:
    """A conversation whose model writes what it is told."""
    model = house.script(
        {
            "when": {"user": r"write (\w+)"},
            "reply": {"calls": [{"tool": "write", "args": {"line": "$1"}}]},
        },
        {
            "when": {"user": r"show (\w+)"},
            "reply": {"calls": [{"tool": "write_shown", "args": {"line": "$1"}}]},
        },
        default={"say": "done"},
    )
    house.agent("writing", model, "lab.write", "lab.write_shown", approval=approval)
    return await house.talk("writing", text, **start)


async def refusal(talk: Talk, item: Any, choice: str, **more: Any) -> str:
    """What a decision is refused with."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await talk.decide(item, choice, **more)
    return str(getattr(caught.value.cause, "message", ""))


async def test_a_call_runs_when_as_many_different_people_approved_as_the_file_says(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    first = await talk.decide(item, "approve", by="ann", reason="looks right")
    waiting = await talk.item()
    before = house.effects()
    second = await talk.decide(item, "approve", by="bob")
    await talk.idle()

    assert (first["accepted"], first["votes"], first["quorum"]) == (True, 1, 2)
    assert [(v["by"], v["proven"], v["reason"]) for v in waiting["votes"]] == [
        ("ann", False, "looks right")
    ]
    assert before == []
    assert (second["accepted"], second["choice"], second["by"]) == (True, "approve", "bob")
    assert house.effects() == ["one"]
    assert "item_voted" in await talk.kinds()


async def test_the_item_says_who_may_decide_and_how_many_must(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    item = await (await writing(house, TWO)).item()

    assert (item["approvers"], item["quorum"]) == (["finance"], 2)
    assert item["may_decide"] == ["ann", "bob", "cleo"]


async def test_nobody_approves_twice(house: House, operator: Operator) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    await talk.decide(item, "approve", by="ann")
    said = await refusal(talk, item, "approve", by="ann")

    assert said == "ann has approved this already; 1 more must approve"
    assert house.effects() == []


async def test_two_approvals_at_once_by_one_person_are_one(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    answers = await asyncio.gather(
        *(talk.decide(item, "approve", by="ann") for _ in range(6)), return_exceptions=True
    )
    state = await talk.state()

    assert sum(isinstance(a, dict) for a in answers) == 1
    assert [len(i["votes"]) for i in state["items"]] == [1]


@pytest.mark.parametrize("choice", ["approve", "deny", "edit"])
async def test_who_is_not_in_the_group_decides_nothing(
    house: House, operator: Operator, choice: str
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    more = {"arguments": '{"line":"x"}'} if choice == "edit" else {}
    said = await refusal(talk, item, choice, by="eve", **more)

    assert said == "eve is not in the group finance; who is: ann, bob, cleo"
    assert (await talk.state())["items"] == [item]


async def test_a_group_that_the_operator_does_not_know_lets_nobody_decide(
    house: House, operator: Operator
) -> None:
    operator(groups={"others": ["ann"]})
    talk = await writing(house, TWO)
    said = await refusal(talk, await talk.item(), "approve", by="ann")

    assert said == (
        "nobody can decide this: the operator's config of the worker has no group finance"
    )


async def test_a_config_that_cannot_be_read_lets_nobody_approve_and_anybody_refuse(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, ApprovalSpec(policy="all"))
    item = await talk.item()
    operator(groups="finance")
    said = await refusal(talk, item, "approve", by="ann")
    answer = await talk.decide(item, "deny", by="ann")

    assert said.startswith("nobody can approve: groups must be a map")
    assert answer["accepted"] is True


async def test_one_refusal_is_enough(house: House, operator: Operator) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    await talk.decide(item, "approve", by="ann")
    await talk.decide(item, "deny", by="bob", reason="Not today")
    await talk.idle()
    [result] = [e for e in await talk.entries() if e["kind"] == "result"]

    assert result["text"] == (
        "bob refused this call. It was not run. The reason given: Not today. "
        "Do not ask for the same call again; tell the user instead."
    )
    assert house.effects() == []


async def test_who_left_the_group_meanwhile_no_longer_counts(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    await talk.decide(item, "approve", by="ann")
    operator(groups={"finance": ["bob", "cleo"]})
    answer = await talk.decide(item, "approve", by="bob")
    between = house.effects()
    await talk.decide(item, "approve", by="cleo")
    await talk.idle()
    voted = [e for e in await talk.events() if e["kind"] == "item_voted"]

    assert (answer["votes"], answer["quorum"]) == (1, 2)
    assert [e["dropped"] for e in voted] == [[], ["ann"]]
    assert between == []
    assert house.effects() == ["one"]


async def test_who_was_given_a_key_meanwhile_has_to_sign(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    item = await talk.item()
    await talk.decide(item, "approve", by="ann")
    operator(groups=FINANCE, people={"ann": {"keys": [make_key(tmp_path, "ann")[1]]}})
    answer = await talk.decide(item, "approve", by="bob")

    assert (answer["votes"], answer["quorum"]) == (1, 2)
    assert house.effects() == []


async def test_who_asked_for_the_call_may_refuse_it_but_not_approve_it(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    approval = ApprovalSpec(policy="all", approvers="finance", exclude_requester=True)
    talk = await writing(house, approval)  # the message is ann's
    item = await talk.item()
    said = await refusal(talk, item, "approve", by="ann")
    await talk.decide(item, "deny", by="ann")
    await talk.idle()

    assert item["exclude"] == ["ann"]
    assert said == "ann asked for this call, so another person must approve it"
    assert house.effects() == []


async def test_an_edit_clears_what_was_decided_and_its_writer_asks(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(
        house, ApprovalSpec(policy="all", approvers="finance", quorum=2, exclude_requester=True)
    )
    first = await talk.item()
    await talk.decide(first, "approve", by="bob")
    await talk.decide(first, "edit", by="cleo", arguments=json.dumps({"line": "two"}))
    state = await talk.until(lambda s: any(i["revision"] == 2 for i in s["items"]))
    [second] = state["items"]
    said = await refusal(talk, second, "approve", by="cleo")

    assert second["votes"] == []
    assert second["requested_by"] == "cleo"
    assert second["exclude"] == ["ann", "cleo"]
    assert second["arguments"] == '{"line":"two"}'
    assert "cleo asked for this call" in said
    assert house.effects() == []


async def test_an_edit_counts_as_its_writers_approval_of_several(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    await talk.decide(await talk.item(), "edit", by="ann", arguments=json.dumps({"line": "two"}))
    state = await talk.until(lambda s: any(i["revision"] == 2 for i in s["items"]))
    [second] = state["items"]
    await talk.decide(second, "approve", by="bob")
    await talk.idle()

    assert [v["by"] for v in second["votes"]] == ["ann"]
    assert house.effects() == ["two"]


async def test_an_edit_into_what_others_decide_is_no_approval(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    rules = (RuleSpec("ask", when="args.line == 'big'", approvers="managers"),)
    talk = await writing(house, ApprovalSpec(policy="all", approvers="finance", rules=rules))
    await talk.decide(await talk.item(), "edit", by="ann", arguments=json.dumps({"line": "big"}))
    state = await talk.until(lambda s: any(i["revision"] == 2 for i in s["items"]))
    [second] = state["items"]
    said = await refusal(talk, second, "approve", by="ann")
    await talk.decide(second, "approve", by="mia")
    await talk.idle()

    assert second["votes"] == []
    assert said == "ann is not in the group managers; who is: mia"
    assert house.effects() == ["big"]


async def test_an_edited_call_is_shown_again_before_it_runs(
    house: House, operator: Operator
) -> None:
    operator()
    talk = await writing(house, ApprovalSpec(policy="all"), "show one")
    first = await talk.item()
    await talk.decide(first, "edit", arguments=json.dumps({"line": "two"}))
    state = await talk.until(lambda s: any(i["revision"] == 2 for i in s["items"]))
    [second] = state["items"]
    await talk.decide(second, "approve")
    await talk.idle()

    assert (first["preview"], second["preview"]) == ("would write 'one'", "would write 'two'")
    assert house.effects() == ["two shown"]


async def test_a_grant_is_not_given_for_what_several_people_look_at(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    talk = await writing(house, TWO)
    grant = {"scope": "tool", "times": 5}
    said = await refusal(talk, await talk.item(), "approve", by="ann", grant=grant)

    assert "cannot be allowed beforehand" in said


async def test_a_grant_of_one_group_does_not_answer_for_another(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    rules = (RuleSpec("ask", when="args.line == 'big'", approvers="managers"),)
    talk = await writing(house, ApprovalSpec(policy="all", approvers="finance", rules=rules))
    grant = {"scope": "tool", "times": 5}
    await talk.decide(await talk.item(), "approve", by="ann", grant=grant)
    await talk.idle()
    await talk.send("write two")
    await talk.idle()
    await talk.send("write big")
    item = await talk.item()

    assert house.effects() == ["one", "two"]
    assert item["approvers"] == ["managers"]


async def test_a_reminder_comes_at_its_time_and_again(house: House, operator: Operator) -> None:
    operator()
    talk = await writing(house, ApprovalSpec(policy="all", remind_s=0.3))
    item = await talk.item()

    async def reminded_twice(_: Any) -> bool:
        return (await talk.kinds()).count("item_reminded") >= 2

    await talk.until(reminded_twice)
    later = await talk.item()
    await talk.decide(item, "approve")
    await talk.idle()

    asked, first = (datetime.fromisoformat(item[k]) for k in ("requested_at", "remind_at"))
    assert (first - asked).total_seconds() == 0.3
    assert later["remind_at"] > item["remind_at"]
    assert house.effects() == ["one"]


async def test_when_time_is_up_another_group_may_decide_as_well(
    house: House, operator: Operator
) -> None:
    operator(groups=FINANCE)
    approval = ApprovalSpec(
        policy="all",
        approvers="finance",
        timeout_s=1.0,
        on_timeout="escalate",
        escalate_to="managers",
    )
    talk = await writing(house, approval)
    first = await talk.item()
    early = await refusal(talk, first, "approve", by="mia")
    state = await talk.until(lambda s: any(i["escalated"] for i in s["items"]), timeout_s=10)
    [item] = state["items"]
    await talk.decide(item, "approve", by="mia")
    await talk.idle()

    assert (first["then"], first["escalate_to"]) == ("escalate", "managers")
    assert early == "mia is not in the group finance; who is: ann, bob, cleo"
    assert item["approvers"] == ["finance", "managers"]
    assert item["may_decide"] == ["ann", "bob", "cleo", "mia"]
    assert (item["then"], item["due"] > first["due"]) == ("deny", True)
    assert house.effects() == ["one"]


async def test_what_was_escalated_in_vain_is_refused(house: House, operator: Operator) -> None:
    operator(groups=FINANCE)
    approval = ApprovalSpec(
        policy="all", timeout_s=0.3, on_timeout="escalate", escalate_to="managers"
    )
    talk = await writing(house, approval)
    await talk.idle()
    kinds = await talk.kinds()
    [result] = [e for e in await talk.entries() if e["kind"] == "result"]

    assert kinds.index("item_escalated") < kinds.index("item_decided")
    assert result["status"] == "expired"
    assert house.effects() == []


async def test_a_rule_has_terms_of_its_own(house: House, operator: Operator) -> None:
    operator(groups=FINANCE)
    rules = (
        RuleSpec("ask", when="args.line == 'big'", approvers="managers", timeout_s=60.0, quorum=1),
    )
    talk = await writing(house, ApprovalSpec(policy="all", quorum=2, rules=rules), "write big")
    item = await talk.item()
    await talk.decide(item, "approve", by="mia")
    await talk.idle()
    await talk.send("write small")
    other = await talk.item()

    assert (item["approvers"], item["quorum"], item["then"]) == (["managers"], 1, "deny")
    assert (other["approvers"], other["quorum"], other["due"]) == ([], 2, None)


async def test_votes_and_times_live_through_a_roll_over(
    temporal: Any, tmp_path: Path, operator: Operator
) -> None:
    from tests.engine.house import open_house

    operator(groups=FINANCE)
    async with open_house(temporal, tmp_path, roll_over_events=30) as house:
        approval = ApprovalSpec(
            policy="all", approvers="finance", quorum=2, timeout_s=300.0, remind_s=300.0
        )
        talk = await writing(house, approval)
        item = await talk.item()
        await talk.decide(item, "approve", by="ann")
        for n in range(12):
            await _insist(talk, f"note {n}")
        state = await talk.until(lambda s: s["run"] >= 2)
        [kept] = state["items"]
        await talk.decide(item, "approve", by="bob")
        await talk.idle()

        assert [v["by"] for v in kept["votes"]] == ["ann"]
        assert (kept["due"], kept["remind_at"]) == (item["due"], item["remind_at"])
        assert house.effects() == ["one"]


async def _insist(talk: Talk, text: str) -> None:
    while True:
        try:
            await talk.send(text)
            return
        except WorkflowUpdateFailedError:
            await asyncio.sleep(0.05)
