"""All conversations of a project: found, listed and waiting, also while no worker runs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client import inbox, listing, start
from capuchin_yaml.client.answers import ConversationRow, InboxRow
from capuchin_yaml.client.connection import sdk_runtime
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.diagnosis import Probe, probe
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.ids import new_conversation_id
from capuchin_yaml.client.link import Link
from capuchin_yaml.client.visibility import quoted
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import ConversationNotFound, RequestRefused
from capuchin_yaml.events import TurnStarted
from capuchin_yaml.spec import ApprovalSpec
from tests.client.test_conversation import call, serve_plain, serve_writer
from tests.engine.house import House, lab

T = TypeVar("T")


async def caught_up(ask: Callable[[], Awaitable[T]], fits: Callable[[T], bool]) -> T:
    """Return what the server's lists, which lag, tell once they have caught up."""
    async with asyncio.timeout(15):
        while True:
            found = await ask()
            if fits(found):
                return found
            await asyncio.sleep(0.1)


async def listed(
    fleet: Capuchin, fits: Callable[[list[ConversationRow]], bool]
) -> list[ConversationRow]:
    """Wait for rows that fit."""
    return await caught_up(fleet.list, fits)


async def waiting(fleet: Capuchin, items: int) -> list[InboxRow]:
    """Wait until so many items are in the inbox."""
    return await caught_up(fleet.inbox, lambda rows: len(rows) == items)


@dataclass(frozen=True)
class Forged:
    """A workflow that somebody started under our search attributes."""

    id: str
    end: Callable[[], Awaitable[None]]


async def forge(temporal: Client, project: str, memo: Mapping[str, Any]) -> Forged:
    id = f"{project}.forged-{secrets.token_hex(3)}"
    values = {
        contract.SA_PROJECT: project,
        contract.SA_AGENT: "forged",
        contract.SA_STATUS: contract.STATUS_WAITING,
    }
    handle = await temporal.start_workflow(
        contract.WORKFLOW,
        {"forged": True},
        id=id,
        task_queue="nobody-listens",
        memo=memo,
        search_attributes=TypedSearchAttributes(
            [SearchAttributePair(SearchAttributeKey.for_keyword(k), v) for k, v in values.items()]
        ),
    )
    return Forged(id, lambda: handle.terminate())


# start


@pytest.mark.parametrize("agent", ["", "a.b", "it's", "x y", "ünï", "-x"])
async def test_what_cannot_be_an_agent_is_not_started(fleet: Capuchin, agent: str) -> None:
    with pytest.raises(RequestRefused, match="is not the name of an agent"):
        await fleet.start(agent, "hello", by="ann")


@pytest.mark.parametrize("text", ["", "  ", "half \ud83d", "x" * (contract.MAX_MESSAGE_BYTES + 1)])
async def test_a_message_that_cannot_be_sent_starts_nothing(fleet: Capuchin, text: str) -> None:
    with pytest.raises(RequestRefused):
        await fleet.start("plain", text, by="ann")

    assert await fleet.list() == []


def test_a_project_with_a_name_that_no_query_can_hold_is_refused(temporal: Client) -> None:
    with pytest.raises(ValueError, match="visibility query"):
        Capuchin(temporal, project="it's")


@pytest.mark.parametrize("value", ["it's", 'a"b', "a b", "a\\b", "a%b", "a\nb", "ünï"])
def test_nothing_unusual_is_put_into_a_query(value: str) -> None:
    with pytest.raises(ValueError, match="visibility query"):
        quoted(value)


async def test_start_values_reach_the_conversation(fleet: Capuchin, house: House) -> None:
    house.agent("tenant", house.script(default={"say": "ok"}), injected=["tenant"])

    talk = await fleet.start("tenant", "hello", by="ann", injected={"tenant": 7})

    assert (await talk.settle()).status == "idle"


async def test_an_id_that_is_taken_is_drawn_again(
    fleet: Capuchin, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_plain(house)
    first = await fleet.start("plain", "hello", by="ann")
    fresh = new_conversation_id(house.project, "plain")
    draws = [first.id, first.id, fresh]
    monkeypatch.setattr(start, "new_conversation_id", lambda *_: draws.pop(0))

    second = await fleet.start("plain", "other", by="bob")
    silent = await first.settle()

    assert second.id == fresh
    assert silent.entries == 2
    assert [e.text for e in await second.events() if isinstance(e, TurnStarted)] == ["other"]


@pytest.mark.parametrize("text", ["hello", None])
async def test_a_start_whose_answer_was_lost_starts_once(
    fleet: Capuchin, house: House, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    serve_plain(house)
    name = "_start_silently" if text is None else "_start_with"
    really, losses = getattr(start, name), [1]

    async def lossy(*args: Any) -> Any:
        answer = await really(*args)
        if losses:
            losses.pop()
            raise RPCError("connection lost", RPCStatusCode.UNAVAILABLE, b"")
        return answer

    monkeypatch.setattr(start, name, lossy)
    talk = await fleet.start("plain", text, by="ann")
    state = await talk.settle()

    assert losses == []
    assert state.entries == (2 if text else 0)
    await listed(fleet, lambda rows: [r.id for r in rows] == [talk.id])


# find


async def test_a_whole_id_is_found_at_once(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")

    for address in (talk.id, talk.short_id):
        assert (await fleet.find(address)).id == talk.id


async def test_a_beginning_is_enough_when_only_one_has_it(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")
    await listed(fleet, lambda rows: len(rows) == 1)

    for address in ("pl", "plain", talk.short_id[:-1], talk.id[:-3]):
        assert (await fleet.find(address)).id == talk.id


async def test_a_beginning_that_several_have_names_them(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    talks = [await fleet.start("plain", "hello", by="ann") for _ in range(2)]
    await listed(fleet, lambda rows: len(rows) == 2)

    with pytest.raises(ConversationNotFound) as caught:
        await fleet.find("plain")

    assert all(talk.short_id in str(caught.value) for talk in talks)


async def test_the_end_that_screens_show_is_enough(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    talk, _ = [await fleet.start("plain", "hello", by="ann") for _ in range(2)]
    await listed(fleet, lambda rows: len(rows) == 2)
    end = talk.id.rpartition("-")[2]

    for address in (end, f"#{end}"):
        assert (await fleet.find(address)).id == talk.id


@pytest.mark.parametrize(
    "address", ["nobody", "#000000", "#", "plain-000000", "a' OR ''='", "x y", "", "\x1b[0m"]
)
async def test_what_nobody_has_is_not_found(fleet: Capuchin, address: str) -> None:
    with pytest.raises(ConversationNotFound):
        await fleet.find(address)


# list


async def test_a_list_tells_how_each_conversation_stands(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    serve_writer(house)
    model = house.script(
        {"when": {"user": "go"}, "reply": {"calls": [call("wait", name="listed")]}},
        default={"say": "done"},
    )
    house.agent("slow", model, "lab.wait")
    idle = await fleet.start("plain", "an idle one", by="ann")
    closed = await fleet.start("plain", "a closed one", by="ann")
    waits = await fleet.start("writer", "go", by="ann")
    busy = await fleet.start("slow", "go", by="ann")
    for talk in (idle, closed, waits):
        await talk.settle()
    await closed.close(by="ann")
    await asyncio.to_thread(lab.entered("listed").wait)

    def as_expected(rows: list[ConversationRow]) -> bool:
        return {r.id: (r.status, r.waiting) for r in rows} == {
            idle.id: ("idle", 0),
            closed.id: ("closed", 0),
            waits.id: ("waiting", 1),
            busy.id: ("thinking", 0),
        }

    rows = {row.id: row for row in await listed(fleet, as_expected)}
    assert rows[idle.id].title == "an idle one"
    assert rows[idle.id].agent == "plain"
    assert all(row.verified and row.created_at <= row.updated_at for row in rows.values())
    assert [r.id for r in await fleet.list(agent="slow")] == [busy.id]
    for status, talk in (("waiting", waits), ("closed", closed), ("idle", idle)):
        assert [r.id for r in await fleet.list(status=status)] == [talk.id]  # type: ignore[arg-type]
    assert len(await fleet.list(limit=2)) == 2
    assert await fleet.list(agent="it's") == []
    lab.gate("listed").set()
    await busy.settle()


async def test_list_and_inbox_are_true_without_a_worker(fleet: Capuchin, house: House) -> None:
    serve_plain(house)
    serve_writer(house)
    idle = await fleet.start("plain", "an idle one", by="ann")
    waits = await fleet.start("writer", "go", by="ann")
    await idle.settle()
    [item] = (await waits.settle()).items
    await listed(fleet, lambda rows: sum(r.waiting for r in rows) == 1)

    await house.stop_worker()

    assert {r.id: r.status for r in await fleet.list()} == {idle.id: "idle", waits.id: "waiting"}
    [row] = await fleet.inbox()
    assert (row.id, row.digest, row.revision) == (item.id, item.digest, item.revision)
    assert (row.conversation, row.agent, row.tool) == (waits.id, "writer", "lab.write")
    assert (row.args, row.args_cut, row.more, row.verified) == ('{"line":"one"}', False, 0, True)


async def test_a_list_that_is_drawn_often_asks_little(
    fleet: Capuchin, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", "hello", by="ann")
    await talk.settle()
    asked: list[str] = []

    async def counted(link: Link, conversation: str, known: Probe | None = None) -> Probe:
        asked.append(conversation)
        return await probe(link, conversation, known)

    await listed(fleet, lambda rows: [r.status for r in rows] == ["idle"])
    monkeypatch.setattr(listing, "probe", counted)
    [remembered] = await fleet.list(max_age_s=60)
    assert asked == []
    await talk.send("again", by="ann")
    await talk.settle()
    [fresh] = await fleet.list(max_age_s=0)

    assert asked == [talk.id]
    assert remembered.updated_at < fresh.updated_at


async def test_the_title_is_one_visible_line(fleet: Capuchin, house: House) -> None:
    serve_plain(house)

    await fleet.start("plain", "two\nlines \x1b[31mred\u202e " + "x" * 100, by="ann")

    [row] = await listed(fleet, lambda rows: len(rows) == 1)
    assert row.title.startswith("two lines \\x1b[31mred\\u{202e} xxx")
    assert len(row.title) == 60
    assert row.title.isprintable()


async def test_a_conversation_opened_without_words_is_titled_by_its_first_message(
    fleet: Capuchin, house: House
) -> None:
    serve_plain(house)
    talk = await fleet.start("plain", None, by="ann")
    await talk.settle()
    before = [row.title for row in await fleet.list()]

    await talk.send("what is\nthe time?", by="ann")
    await talk.send("and the date?", by="ann")
    await talk.settle()

    assert before == [""]
    rows = await listed(fleet, lambda rows: rows[0].title != "")
    assert [row.title for row in rows] == ["what is the time?"]


async def test_a_roll_over_leaves_one_row(temporal: Client, tmp_path: Any) -> None:
    from tests.engine.house import open_house

    async with open_house(temporal, tmp_path, roll_over_events=60) as house:
        serve_plain(house)
        fleet = Capuchin(temporal, project=house.project)
        talk = await fleet.start("plain", "1", by="ann")
        await talk.settle()
        [first] = await listed(fleet, lambda rows: [r.status for r in rows] == ["idle"])
        for turn in range(2, 12):
            await talk.send(str(turn), by="ann")
        assert (await talk.settle()).run > 1

        [row] = await listed(fleet, lambda rows: [r.status for r in rows] == ["idle"])

        assert row.title == "1"
        assert row.created_at == first.created_at
        assert (await fleet.find("plain")).id == talk.id


# inbox


async def test_the_nearest_deadline_comes_first(
    fleet: Capuchin, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, timeout_s in (("later", 90_000.0), ("never", None), ("soon", 600.0), ("day", 9000.0)):
        model = house.script(
            {"when": {"user": "go"}, "reply": {"calls": [call("write", line=name)]}}
        )
        approval = ApprovalSpec(policy="all", timeout_s=timeout_s)
        house.agent(name, model, "lab.write", approval=approval)
        await (await fleet.start(name, "go", by="ann")).settle()
    await waiting(fleet, 4)

    in_one_call = await fleet.inbox()
    monkeypatch.setattr(inbox, "PAGE_ROWS", 1)
    by_windows = await fleet.inbox()

    assert [r.agent for r in in_one_call] == ["soon", "day", "later", "never"]
    assert by_windows == in_one_call
    assert [r.agent for r in await fleet.inbox(limit=2)] == ["soon", "day"]


async def test_a_decided_item_leaves_the_inbox(fleet: Capuchin, house: House) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    await talk.settle()
    [row] = await waiting(fleet, 1)

    await talk.decide(row.id, digest=row.digest, choice="approve", by="bob")

    assert await waiting(fleet, 0) == []


async def test_more_items_than_the_list_holds_are_counted(fleet: Capuchin, house: House) -> None:
    calls = [call("write", line=f"line {n}") for n in range(contract.MEMO_ITEMS + 3)]
    calls[0] = call("write", line="long " * 100)
    model = house.script({"when": {"user": "go"}, "reply": {"calls": calls}}, default={"say": "ok"})
    limits_free = ApprovalSpec(policy="all")
    house.agent("many", model, "lab.write", approval=limits_free)
    talk = await fleet.start("many", "go", by="ann")
    await talk.settle()

    rows = await waiting(fleet, contract.MEMO_ITEMS)

    assert {row.more for row in rows} == {3}
    assert sum(row.args_cut for row in rows) == 1
    [row] = await fleet.list()
    assert row.waiting == contract.MEMO_ITEMS + 3


# what is not ours


async def test_a_memo_without_the_seal_is_shown_as_not_verified(
    fleet: Capuchin, house: House, temporal: Client
) -> None:
    config = temporal.config()
    config["data_converter"] = DataConverter.default
    item = {"id": "x:a1", "kind": "approval", "title": "approve me", "digest": "0" * 64}
    memo = {
        contract.MEMO_TITLE: "trust me",
        contract.MEMO_INBOX: {"items": [item], "more": 0, "definition_version": "1"},
    }
    forged = await forge(Client(**config), house.project, memo)

    [row] = await waiting(fleet, 1)
    [listing_row] = await listed(fleet, lambda rows: len(rows) == 1)

    assert (row.kind, row.verified, row.conversation) == ("unverified", False, forged.id)
    assert "approve me" not in repr(row)
    assert (listing_row.verified, listing_row.title, listing_row.waiting) == (False, "", 0)
    await forged.end()


async def test_the_sealed_memo_of_another_conversation_is_not_believed(
    fleet: Capuchin, house: House, temporal: Client
) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    await talk.settle()
    await waiting(fleet, 1)
    description = await temporal.get_workflow_handle(talk.id).describe()
    forged = await forge(temporal, house.project, dict(description.raw_info.memo.fields))

    rows = {row.conversation: row for row in await waiting(fleet, 2)}

    assert rows[talk.id].verified
    assert not rows[forged.id].verified
    await forged.end()


async def test_another_project_sees_nothing_of_ours(
    fleet: Capuchin, house: House, temporal: Client
) -> None:
    serve_writer(house)
    talk = await fleet.start("writer", "go", by="ann")
    await talk.settle()
    await waiting(fleet, 1)

    other = Capuchin(temporal, project=house.project[:-1])

    assert await other.list() == []
    assert await other.inbox() == []
    with pytest.raises(ConversationNotFound):
        await other.find("writer")


# health


async def test_health_counts_the_workers(fleet: Capuchin, house: House) -> None:
    health = await caught_up(fleet.check, lambda health: health.workers > 0)

    assert (health.server_up, health.workers, health.detail) == (True, 1, "")


async def test_health_without_a_worker_says_what_to_type(temporal: Client) -> None:
    health = await Capuchin(temporal, project="nobody-here").check()

    assert (health.server_up, health.workers) == (True, 0)
    assert "capuchin up" in health.detail


async def test_health_without_a_server_answers_at_once() -> None:
    nowhere = await Client.connect("127.0.0.1:1", lazy=True, runtime=sdk_runtime())

    async with asyncio.timeout(4):
        health = await Capuchin(nowhere, project="shop").check()

    assert (health.server_up, health.workers) == (False, 0)
    assert "127.0.0.1:1" in health.detail


async def test_leaving_lets_go_once(temporal: Client) -> None:
    closed: list[str] = []

    async def on_close() -> None:
        closed.append("closed")

    async with Capuchin(temporal, project="shop", on_close=on_close) as fleet:
        pass
    await fleet.close()

    assert closed == ["closed"]


async def test_a_handle_costs_nothing(fleet: Capuchin) -> None:
    talk = fleet.conversation("billing-7k2m9q")

    assert isinstance(talk, Conversation)
    assert talk.id == f"{fleet.project}.billing-7k2m9q"
    assert (talk.short_id, talk.agent) == ("billing-7k2m9q", "billing")
