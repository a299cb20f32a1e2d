"""Pausing, migrating, opening again and deleting through the public client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.client import Client

from capuchin_yaml.client.answers import ConversationRow
from capuchin_yaml.client.connection import connect_temporal
from capuchin_yaml.client.conversation import Conversation
from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.client.server import Server
from capuchin_yaml.engine.agents import ServedAgent
from capuchin_yaml.engine.storage import FolderStore
from capuchin_yaml.errors import ConversationNotFound, RequestRefused
from capuchin_yaml.events import (
    AssistantSaid,
    ConversationClosed,
    ConversationRenamed,
    ConversationReopened,
    DefinitionPinned,
    TurnEnded,
    TurnStarted,
)
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, open_house


def serve_plain(house: House, name: str = "plain") -> None:
    """Serve an agent that counts what it was told."""
    rules = [{"when": {"replies": n}, "reply": {"say": f"reply {n}"}} for n in range(6)]
    house.agent(name, house.script(*rules))


@pytest.fixture
async def stored(
    dev_server: Server, key: bytes, tmp_path: Path
) -> AsyncIterator[tuple[House, Capuchin, FolderStore]]:
    """A project whose large values lie in a folder."""
    store = FolderStore(tmp_path / "store")
    client = await connect_temporal(dev_server.target, key=key, store=store)
    async with open_house(client, tmp_path, store=store) as house:
        yield house, Capuchin(client, project=house.project), store


class TestPause:
    async def test_a_paused_agent_begins_no_turn_and_answers_once_it_is_resumed(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        open_talk = await fleet.start("plain", "one", by="ann")
        await open_talk.settle()

        pause = await fleet.pause("plain", by="ann", reason="deploy")
        await open_talk.send("two", by="ann")
        new_talk = await fleet.start("plain", "hello", by="ann")
        held = [await t.settle() for t in (open_talk, new_talk)]
        rows = await fleet.list()
        said = [e for t in (open_talk, new_talk) for e in await t.events()]
        resumed = await fleet.resume("plain")
        after = [await self.answered(t) for t in (open_talk, new_talk)]

        assert pause.reason == "deploy"
        assert [s.status for s in held] == ["waiting", "waiting"]
        assert held[0].paused == pause
        assert held[0].detail == "plain is paused by ann: deploy"
        assert {r.status for r in rows} == {"waiting"}
        assert sum(isinstance(e, AssistantSaid) for e in said) == 1
        assert resumed == pause
        assert after == ["reply 1", "reply 0"]

    async def answered(self, talk: Conversation) -> str:
        """Wait until a held turn has ended, and return the reply."""
        async with aclosing(talk.watch()) as pulses:
            async for pulse in pulses:
                if isinstance(pulse, AssistantSaid):
                    last = pulse.text
                if isinstance(pulse, TurnEnded) and (await talk.state()).status == "idle":
                    break
        return last

    async def test_a_turn_that_began_goes_on_and_other_agents_do_too(
        self, house: House, fleet: Capuchin
    ) -> None:
        model = house.script(
            {
                "when": {"user": "go"},
                "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]},
            },
            default={"say": "done"},
        )
        house.agent("writer", model, "lab.write", approval=ApprovalSpec(policy="all"))
        serve_plain(house)
        talk = await fleet.start("writer", "go", by="ann")
        [item] = (await talk.settle()).items

        await fleet.pause("writer", by="ann")
        await talk.decide(item.id, digest=item.digest, choice="approve", by="ann")
        ended = await talk.settle()
        other = await (await fleet.start("plain", "hello", by="ann")).settle()
        await fleet.resume("writer")

        assert ended.status == other.status == "idle"
        assert house.effects() == ["x"]

    async def test_pauses_are_listed_and_end_once(self, house: House, fleet: Capuchin) -> None:
        first = await fleet.pause("plain", by="ann")
        second = await fleet.pause("plain", by="bob")
        async with asyncio.timeout(10):
            while True:
                listed = await fleet.pauses()
                if listed:
                    break
                await asyncio.sleep(0.05)
        ended = [await fleet.resume("plain"), await fleet.resume("plain")]

        assert first == second
        assert listed == (first,)
        assert ended == [first, None]

    async def test_a_held_turn_can_be_cancelled_and_the_talk_goes_on(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        await fleet.pause("plain", by="ann")
        talk = await fleet.start("plain", "one", by="ann")
        await talk.settle()

        answer = await talk.cancel_turn(by="ann")
        state = await talk.settle()
        await fleet.resume("plain")

        assert answer.accepted is True
        assert (state.status, state.detail) == ("idle", "")
        [ended] = [e for e in await talk.events() if isinstance(e, TurnEnded)]
        assert ended.outcome == "cancelled"


class TestMigrate:
    async def test_the_next_turn_runs_the_definition_on_disk(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        before = (await talk.settle()).definition
        new = house.agent("plain", house.script(default={"say": "new"}))

        await talk.send("two", by="ann")
        kept = (await talk.settle()).definition
        answer = await talk.migrate(by="ann")
        waiting = await talk.state()
        await talk.send("three", by="ann")
        after = await talk.settle()

        pinned = [e for e in await talk.events() if isinstance(e, DefinitionPinned)]
        assert before == kept
        assert before is not None
        assert answer.hash == before.hash
        assert (waiting.migrates, after.migrates) == (True, False)
        assert [e.definition_hash for e in pinned] == [before.hash, new.definition_hash]
        assert (await talk.events())[-2].kind == "usage_recorded"
        assert [e.text for e in await talk.events() if isinstance(e, AssistantSaid)][-1] == "new"

    async def test_a_definition_that_cannot_be_pinned_leaves_the_old_one_in_force(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        await talk.settle()
        served = house.agents.get("plain")
        assert served is not None
        house.agents.drop("plain")

        await talk.migrate(by="ann")
        await talk.send("two", by="ann")
        await talk.settle()

        pinned = [e for e in await talk.events() if isinstance(e, DefinitionPinned)]
        assert pinned[-1].definition_hash == pinned[0].definition_hash
        assert "no agent named 'plain'" in pinned[-1].problem
        assert [e.text for e in await talk.events() if isinstance(e, AssistantSaid)] == [
            "reply 0",
            "reply 1",
        ]

    async def test_a_tool_that_is_now_denied_or_gone_never_runs(
        self, house: House, fleet: Capuchin
    ) -> None:
        model = house.script(
            {
                "when": {"user": "go"},
                "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]},
            },
            default={"say": "done"},
        )
        spec = house.agent("writer", model, "lab.write")
        talk = await fleet.start("writer", "hello", by="ann")
        await talk.settle()
        house.agents.put(ServedAgent(replace(spec, tools=())))

        await talk.migrate(by="ann")
        await talk.send("go", by="ann")
        state = await talk.settle()

        assert state.status == "idle"
        assert house.effects() == []


class TestReopen:
    async def test_a_closed_conversation_goes_on_under_its_id_with_its_history(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        await talk.settle()
        await talk.close(by="ann", reason="enough")
        await talk.settle()

        await talk.reopen(by="bob")
        idle = await talk.state()
        await talk.send("two", by="bob")
        state = await talk.settle()
        events = await talk.events()
        rows = await self.one_row(fleet)

        assert (idle.status, idle.detail) == ("idle", "")
        assert [e.offset for e in events] == list(range(len(events)))
        assert [e.text for e in events if isinstance(e, AssistantSaid)] == ["reply 0", "reply 1"]
        assert [e.turn for e in events if isinstance(e, TurnStarted)] == [1, 2]
        assert [type(e) for e in events if isinstance(e, ConversationClosed | ConversationReopened)]
        assert len(await talk.transcript()) == 4
        assert state.title == "one"
        assert [(r.id, r.status, r.title) for r in rows] == [(talk.id, "idle", "one")]
        assert await fleet.list(status="closed") == []

    async def test_a_title_that_a_person_gave_outlives_closing_and_opening_again(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        await talk.settle()
        kept = await talk.rename("  Refund of\tA-1001 ", by="bob")
        await talk.send("two", by="ann")
        await talk.settle()
        await talk.close(by="ann")
        await talk.settle()
        with pytest.raises(RequestRefused):
            await talk.rename("late", by="bob")
        await talk.reopen(by="ann")
        state = await talk.state()
        rows = await self.one_row(fleet)
        named = [e for e in await talk.events() if isinstance(e, ConversationRenamed)]

        assert kept == state.title == "Refund of A-1001"
        assert [r.title for r in rows] == ["Refund of A-1001"]
        assert [(e.title, e.by) for e in named] == [("Refund of A-1001", "bob")]

    @pytest.mark.parametrize("title", ["", "  ", "x" * 241, "a\x1b[31mb", "a\u202eb"])
    async def test_a_title_that_is_no_line_of_text_is_refused(
        self, house: House, fleet: Capuchin, title: str
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        await talk.settle()

        with pytest.raises(RequestRefused):
            await talk.rename(title, by="bob")
        assert (await talk.state()).title == "one"

    async def one_row(self, fleet: Capuchin) -> list[ConversationRow]:
        async with asyncio.timeout(10):
            while True:
                rows = await fleet.list(max_age_s=0)
                if [r.status for r in rows] == ["idle"]:
                    return rows
                await asyncio.sleep(0.05)

    async def test_it_can_be_closed_and_opened_again_and_again(
        self, house: House, fleet: Capuchin
    ) -> None:
        model = house.script(
            {
                "when": {"user": "go"},
                "reply": {"calls": [{"tool": "write", "args": {"line": "x"}}]},
            },
            default={"say": "done"},
        )
        house.agent("writer", model, "lab.write")
        talk = await fleet.start("writer", "go", by="ann")
        await talk.settle()
        for _ in range(2):
            await talk.close(by="ann")
            await talk.settle()
            await talk.reopen(by="ann")
            await talk.send("go", by="ann")
            await talk.settle()

        events = await talk.events()
        assert [e.offset for e in events] == list(range(len(events)))
        assert house.effects() == ["x"] * 3
        assert len(set(house.keys())) == 3

    async def test_an_open_or_a_failed_conversation_is_not_opened_again(
        self, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        with pytest.raises(RequestRefused, match="is open"):
            await talk.reopen(by="ann")

        failed = await fleet.start("nobody", "one", by="ann")
        await failed.settle()
        with pytest.raises(RequestRefused, match="did not end by being closed"):
            await failed.reopen(by="ann")


class TestDelete:
    async def test_nothing_of_it_is_left_and_what_others_need_stays(
        self, stored: tuple[House, Capuchin, FolderStore]
    ) -> None:
        house, fleet, store = stored
        model = house.script(
            {
                "when": {"user": "go"},
                "reply": {"calls": [{"tool": "big", "args": {"kilobytes": 99}}]},
            },
            default={"say": "done"},
        )
        house.agent("reader", model, "lab.big")
        talks = [await fleet.start("reader", "go", by="ann") for _ in range(2)]
        for talk in talks:
            await talk.settle()
            await talk.send("z" * 100_000, by="ann")
            await talk.settle()
        before = {p.name for p in store.folder.rglob("*") if p.is_file()}

        with pytest.raises(RequestRefused, match="is open"):
            await talks[0].delete()
        await talks[0].close(by="ann")
        await talks[0].settle()
        deleted = await talks[0].delete()

        left = {p.name for p in store.folder.rglob("*") if p.is_file()}
        assert deleted.runs == 1
        assert deleted.values == len(before - left) > 0
        with pytest.raises(ConversationNotFound):
            await talks[0].state()
        assert len(await talks[1].transcript()) == 6
        async with asyncio.timeout(10):
            while True:
                rows = await fleet.list(max_age_s=0)
                if [r.id for r in rows] == [talks[1].id]:
                    break
                await asyncio.sleep(0.05)

    async def test_every_run_goes_also_those_before_it_was_opened_again(
        self, temporal: Client, house: House, fleet: Capuchin
    ) -> None:
        serve_plain(house)
        talk = await fleet.start("plain", "one", by="ann")
        await talk.settle()
        await talk.close(by="ann")
        await talk.settle()
        await talk.reopen(by="ann")
        await talk.close(by="ann")
        await talk.settle()
        runs = [r.run_id async for r in temporal.list_workflows(f"WorkflowId = '{talk.id}'")]

        deleted = await talk.delete()

        assert deleted.runs == 2
        with pytest.raises(ConversationNotFound):
            await talk.events()
        assert len(runs) <= 2
