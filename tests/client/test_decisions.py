"""Deciding with other arguments, allowing calls beforehand, and claiming, through the client."""

from __future__ import annotations

import pytest

from capuchin_yaml.client.claimant import has_ended, this_process
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.items import Item
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House


async def writing(fleet: Capuchin, house: House) -> tuple[Conversation, Item]:
    """A conversation whose call waits for approval."""
    rule = {
        "when": {"user": r"write (\w+)"},
        "reply": {"calls": [{"tool": "write", "args": {"line": "$1"}}]},
    }
    model = house.script(rule, default={"say": "done"})
    house.agent("writing", model, "lab.write", approval=ApprovalSpec(policy="all"))
    talk = await fleet.start("writing", "write one", by="ann")
    [item] = (await talk.settle()).items
    return talk, item


async def test_a_call_runs_with_the_arguments_that_a_person_wrote(
    fleet: Capuchin, house: House
) -> None:
    talk, item = await writing(fleet, house)

    answer = await talk.decide(
        item.id, digest=item.digest, choice="edit", by="bob", arguments='{"line":"other"}'
    )
    await talk.settle()

    assert (answer.accepted, answer.choice) == (True, "edit")
    assert house.effects() == ["other"]


async def test_a_grant_is_given_told_used_and_taken_back(fleet: Capuchin, house: House) -> None:
    talk, item = await writing(fleet, house)
    grant = {"scope": "tool", "times": 3, "until": None}

    await talk.decide(item.id, digest=item.digest, choice="approve", by="bob", grant=grant)
    [given] = (await talk.settle()).grants
    await talk.send("write two", by="ann")
    [used] = (await talk.settle()).grants
    taken = [await talk.revoke(used.id, by="bob"), await talk.revoke(used.id, by="bob")]
    await talk.send("write three", by="ann")
    asked = await talk.settle()

    assert (given.scope, given.tool, given.left, given.by) == ("tool", "lab.write", 3, "bob")
    assert used.left == 2
    assert taken == [True, False]
    assert [i.arguments for i in asked.items] == ['{"line":"three"}']


async def test_a_grant_without_an_end_is_refused(fleet: Capuchin, house: House) -> None:
    talk, item = await writing(fleet, house)

    with pytest.raises(RequestRefused, match="a grant ends"):
        await talk.decide(
            item.id, digest=item.digest, choice="approve", by="bob", grant={"scope": "tool"}
        )


async def test_a_claim_is_told_with_the_item(fleet: Capuchin, house: House) -> None:
    talk, item = await writing(fleet, house)

    claimed = await talk.claim(item.id, by="bob")
    [told] = (await talk.state()).items
    missing = await talk.claim(f"{talk.id}:a99", by="bob")

    assert (claimed, missing) == (True, False)
    assert told.claimed_by == "bob"
    assert told.claimed_process == this_process()
    assert not has_ended(told.claimed_process)


async def test_the_schemas_are_those_that_the_conversation_pinned(
    fleet: Capuchin, house: House
) -> None:
    talk, item = await writing(fleet, house)

    schemas = await talk.input_schemas()

    assert set(schemas[item.tool]["properties"]) == {"line"}
