"""Where a person has a key, only what is signed with it is theirs; else a name is a claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from capuchin_yaml.engine import contract
from capuchin_yaml.signed import statement_of
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk
from tests.engine.operator_file import make_key, sign, write_operator_config

Operator = Callable[..., Path]


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Writes the operator's config that the worker of this test reads."""
    folder = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return lambda **blocks: write_operator_config(folder, **blocks)


async def asked(house: House) -> Talk:
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [{"tool": "write", "args": {"line": "one"}}]}},
        default={"say": "done"},
    )
    house.agent("signed", model, "lab.write", approval=ApprovalSpec(policy="all"))
    return await house.talk("signed", "go")


def decision(talk: Talk, item: Any, **more: Any) -> contract.Decide:
    fields = talk.fields(item=item["id"], digest=item["digest"], choice="approve")
    return contract.Decide(**{**fields, **more})


async def refusal(talk: Talk, request: contract.Decide) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await talk.update(contract.DECIDE, request)
    return str(getattr(caught.value.cause, "message", ""))


async def test_a_signed_decision_is_proven(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    key, public = make_key(tmp_path, "ann")
    operator(people={"ann": {"keys": [public]}})
    talk = await asked(house)
    request = decision(talk, await talk.item())
    answer = await talk.update(
        contract.DECIDE, replace(request, signature=sign(statement_of(request), key))
    )
    await talk.idle()
    [decided] = [e for e in await talk.events() if e["kind"] == "item_decided"]

    assert (answer["accepted"], answer["proven"]) == (True, True)
    assert (decided["by"], decided["proven"], decided["client"]) == ("ann", True, "test")
    assert decided["waited_s"] > 0
    assert house.effects() == ["one"]


async def test_without_a_key_a_name_is_not_proven(house: House, operator: Operator) -> None:
    operator(people={"bob": {}})
    talk = await asked(house)
    answer = await talk.decide(await talk.item(), "approve", by="bob")

    assert (answer["accepted"], answer["proven"]) == (True, False)


async def test_an_unsigned_decision_of_who_has_a_key_is_refused(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    operator(people={"ann": {"keys": [make_key(tmp_path, "ann")[1]]}})
    talk = await asked(house)
    item = await talk.item()

    assert "decisions of ann must be signed" in await refusal(talk, decision(talk, item))
    assert "decisions of ann must be signed" in await refusal(
        talk, decision(talk, item, choice="deny")
    )
    assert (await talk.state())["items"] == [item]


async def test_another_persons_key_does_not_sign_for_her(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    key, public = make_key(tmp_path, "bob")
    operator(people={"ann": {"keys": [make_key(tmp_path, "ann")[1]]}, "bob": {"keys": [public]}})
    talk = await asked(house)
    request = decision(talk, await talk.item())
    forged = replace(request, signature=sign(statement_of(request), key))

    assert "the signature is not ann's over this decision" in await refusal(talk, forged)


@pytest.mark.parametrize(
    "changed",
    [
        {"choice": "deny"},
        {"reason": "because"},
        {"grant": {"scope": "tool", "times": 5}},
        {"choice": "edit", "arguments": '{"line":"other"}'},
    ],
    ids=["choice", "reason", "grant", "arguments"],
)
async def test_a_signature_covers_every_part(
    house: House, operator: Operator, tmp_path: Path, changed: dict[str, Any]
) -> None:
    key, public = make_key(tmp_path, "ann")
    operator(people={"ann": {"keys": [public]}})
    talk = await asked(house)
    item = await talk.item()
    request = decision(talk, item)
    signed = sign(statement_of(request), key)

    said = await refusal(talk, replace(request, signature=signed, **changed))

    assert "the signature is not ann's" in said
    assert (await talk.state())["items"] == [item]


async def test_a_signature_is_void_for_another_item_and_another_time(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    key, public = make_key(tmp_path, "ann")
    operator(people={"ann": {"keys": [public]}})
    first, second = await asked(house), await asked(house)
    request = decision(first, await first.item())
    signature = sign(statement_of(request), key)
    later = decision(first, await first.item(), signature=signature)
    other = decision(second, await second.item(), signature=signature)

    assert "the signature is not ann's" in await refusal(first, later)
    assert "the signature is not ann's" in await refusal(second, other)


async def test_a_signature_made_for_something_else_counts_for_nothing(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    key, public = make_key(tmp_path, "ann")
    operator(people={"ann": {"keys": [public]}})
    talk = await asked(house)
    request = decision(talk, await talk.item())
    signature = sign(statement_of(request), key, namespace="git")

    assert "not ann's" in await refusal(talk, replace(request, signature=signature))


@pytest.mark.parametrize("nonsense", ["x", "-----BEGIN SSH SIGNATURE-----\n", "\0", "y" * 9000])
async def test_a_signature_that_is_none_is_refused(
    house: House, operator: Operator, tmp_path: Path, nonsense: str
) -> None:
    operator(people={"ann": {"keys": [make_key(tmp_path, "ann")[1]]}})
    talk = await asked(house)
    item = await talk.item()

    assert await refusal(talk, decision(talk, item, signature=nonsense))
    assert (await talk.state())["items"] == [item]


async def test_a_key_that_was_taken_away_signs_no_more(
    house: House, operator: Operator, tmp_path: Path
) -> None:
    key, public = make_key(tmp_path, "ann")
    operator(people={"ann": {"keys": [public]}})
    talk = await asked(house)
    operator(people={"ann": {"keys": [make_key(tmp_path, "new")[1]]}})
    request = decision(talk, await talk.item())
    signed = replace(request, signature=sign(statement_of(request), key))

    assert "not ann's" in await refusal(talk, signed)
