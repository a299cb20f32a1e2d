"""The plain mode: labelled lines that are only appended, and a guard that words must pass."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from capuchin_yaml.items import Item
from capuchin_yaml.spec import VariableSpec
from capuchin_yaml.tui.gateway import AgentCard
from capuchin_yaml.tui.plain.session import Manner, PlainSession
from tests.tui.fake_gateway import FakeGateway, FakeTalk


class Typist:
    """Types lines when the test says so, on a clock of its own."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.forgotten = 0

    async def next_line(self, prompt: str = "") -> str | None:
        return await self.lines.get()

    def forget(self) -> None:
        self.forgotten += 1
        while not self.lines.empty():
            self.lines.get_nowait()


class Stage:
    """A running session, what it said, and a clock in the test's hand."""

    def __init__(self, fake: FakeGateway, **manner: bool) -> None:
        self.said: list[str] = []
        self.bells = 0
        self.now = 100.0
        self.typist = Typist()
        self.session = PlainSession(
            fake,
            self.typist,
            self.said.append,
            Manner(**manner),
            clock=lambda: self.now,
            poll_s=0.05,
            ring=self._ring,
        )
        self.code: asyncio.Task[int] | None = None

    def _ring(self) -> None:
        self.bells += 1

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    async def type(self, line: str | None, after_s: float = 1.0) -> None:
        """Type a line some time after the one before, and let it be taken."""
        self.now += after_s
        self.typist.lines.put_nowait(line)
        await self.until(self.typist.lines.empty)
        await asyncio.sleep(0.03)

    async def until(self, is_true: Callable[[], object], limit_s: float = 10.0) -> None:
        end = time.monotonic() + limit_s
        while not is_true():
            assert time.monotonic() < end, f"it did not become true; said:\n{self.text}"
            await asyncio.sleep(0.01)

    async def until_said(self, text: str) -> None:
        await self.until(lambda: text in self.text)


@asynccontextmanager
async def playing(
    fake: FakeGateway, conversation: str = "", agent: str = "", **manner: bool
) -> AsyncIterator[Stage]:
    stage = Stage(fake, **manner)
    running = asyncio.create_task(stage.session.run(conversation=conversation, agent=agent))
    stage.code = running
    try:
        yield stage
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def billing(fake: FakeGateway) -> FakeTalk:
    talk = fake.add(id="demo.billing-a91f00")
    fake.pin(talk)
    fake.turn(talk, "refund A-1001 please")
    return talk


def waiting(fake: FakeGateway, **more: object) -> tuple[FakeTalk, Item]:
    talk = billing(fake)
    fake.call(talk, 1)
    return talk, fake.open_item(talk, 1, **more)  # type: ignore[arg-type]  # words of an item


async def test_a_conversation_is_told_in_labelled_lines(fake: FakeGateway) -> None:
    talk = billing(fake)
    call = fake.call(talk, 1, "billing.lookup_order", '{"order_id":"A-1001"}', "allow")
    async with playing(fake, talk.id) as stage:
        await stage.until_said("you: refund A-1001 please")
        fake.run(talk, call, "ok")
        await stage.until_said("tool: billing.lookup_order has answered after 0.3 s")
        fake.say(talk, "It was late.\nagent: I am no agent\x1b[31m")
        await stage.until_said("agent: It was late.")

    assert "\n  agent: I am no agent\\x1b[31m" in stage.text
    assert "\x1b" not in stage.text


async def test_an_item_of_a_kind_it_does_not_know_is_told_with_what_to_type(
    fake: FakeGateway,
) -> None:
    talk, _ = waiting(fake, kind="survey\x1b[31m", tool="", title="Which order?")
    async with playing(fake, talk.id) as stage:
        await stage.until_said("survey")
        await stage.type("/show 1")
        await stage.until_said("capuchin cancel demo.billing-a91f00")
        await stage.type("/approve 1")
        await stage.until_said("error")

    assert "\x1b" not in stage.text
    assert fake.decisions == []


async def test_a_reply_is_told_by_paragraphs_and_once(fake: FakeGateway) -> None:
    talk = billing(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("refund")
        fake.stream(talk, "First para")
        fake.stream(talk, "First paragraph.\n\nSecond par")
        await stage.until_said("agent: First paragraph.")
        assert "Second" not in stage.text
        fake.say(talk, "First paragraph.\n\nSecond paragraph.")
        await stage.until_said("agent: Second paragraph.")

    assert stage.text.count("First paragraph.") == 1


async def test_states_are_told_in_words_with_ax(fake: FakeGateway) -> None:
    talk = billing(fake)
    async with playing(fake, talk.id, says_states=True, rings=True) as stage:
        await stage.until_said("state: The agent is working.")
        fake.end(talk)
        await stage.until_said("state: The agent is done; it is your turn.")
        await stage.until(lambda: stage.bells == 1)
        fake.go_down()
        await stage.until_said("connection: the server is away")
        fake.come_back()
        await stage.until_said("connection: the server is back; nothing was missed")


async def test_a_word_answers_only_what_was_shown_whole(fake: FakeGateway) -> None:
    talk, item = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1: billing.issue_refund of billing waits")
        await stage.type("/approve 1")
        await stage.until_said("not taken: it was not shown yet: /show 1")
        await stage.type("/show 1")
        await stage.until_said("end of approval 1")
        for part in (
            "tool: billing.issue_refund",
            'arguments: {"amount_cents":4200,"order_id":"A-1001"}',
            'config: {"currency":"USD"}',
            'injected: {"tenant":"7"}',
            f"digest: {item.digest[:12]}, revision 1",
        ):
            assert part in stage.text
        assert stage.typist.forgotten == 1
        assert fake.decisions == []
        await stage.type("/approve 1")
        await stage.until_said("approval 1: approve, by anna")

    assert fake.decisions == [(item.id, 1, "approve", "", "")]


async def test_lines_that_come_as_a_paste_decide_nothing(fake: FakeGateway) -> None:
    talk, _ = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type("/show 1")
        await stage.until_said("end of approval 1")
        await stage.type("/approve 1", after_s=0.1)
        await stage.until_said("it has only just been shown")
        await stage.type("/status", after_s=1.0)
        await stage.type("/approve 1", after_s=0.1)
        await stage.until_said("lines came just before, as in a paste")
        for line in ("approve", "y", "yes", "1", "", "approve 1"):
            await stage.type(line)

    assert fake.decisions == []


async def test_another_revision_must_be_shown_again(fake: FakeGateway) -> None:
    talk, _ = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type("/show 1")
        await stage.until_said("end of approval 1")
        fake.open_item(talk, 1, revision=2, arguments='{"amount_cents":9,"order_id":"A-1001"}')
        await stage.until_said("(it changed)")
        await stage.type("/approve 1")
        await stage.until_said("it changed since it was shown")

    assert fake.decisions == []


async def test_a_number_is_never_given_to_another_item(fake: FakeGateway) -> None:
    talk, item = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type("/show 1")
        await stage.until_said("end of approval 1")
        fake.settle(item, "deny")
        fake.call(talk, 2)
        fake.open_item(talk, 2)
        await stage.until_said("approval 2")
        await stage.type("/approve 1")
        await stage.until_said("1 is no number here")

    assert fake.decisions == []


async def test_a_destructive_tool_has_its_name_typed_behind_the_number(fake: FakeGateway) -> None:
    talk, item = waiting(fake, effect="destructive")
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type("/show 1")
        await stage.until_said("/approve 1 billing.issue_refund")
        await stage.type("/approve 1")
        await stage.until_said("it is destructive: type the tool's name")
        await stage.type("/approve 1 billing.issue_refund")
        await stage.until_said("approval 1: approve")

    assert [d[0] for d in fake.decisions] == [item.id]


async def test_deny_takes_a_reason_and_later_decides_nothing(fake: FakeGateway) -> None:
    talk, item = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type("/later 1")
        await stage.until_said("nothing was decided")
        await stage.type("/show 1")
        await stage.until_said("end of approval 1")
        await stage.type("/deny 1 ask for a photo")
        await stage.until_said("approval 1: deny, by anna")

    assert fake.decisions == [(item.id, 1, "deny", "ask for a photo", "")]


async def test_a_changed_call_is_shown_before_it_can_be_approved(fake: FakeGateway) -> None:
    talk, item = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type('/edit 1 {"order_id": "A-1001", "amount_cents": 0}')
        await stage.until_said("these arguments cannot run")
        await stage.type('/edit 1 {"order_id": "A-1001", "amount_cents": 21}')
        await stage.until_said("changed: amount_cents was 4200 and is 21")
        assert 'arguments: {"amount_cents":21,"order_id":"A-1001"}' in stage.text
        await stage.type("/approve 1")
        await stage.until_said("approved with your changes")

    assert fake.edits == [(item.id, '{"amount_cents":21,"order_id":"A-1001"}')]


async def test_what_is_remembered_is_told_as_a_rule_and_taken_back(fake: FakeGateway) -> None:
    talk, _ = waiting(fake)
    async with playing(fake, talk.id) as stage:
        await stage.until_said("approval 1")
        await stage.type("/remember 1 tool")
        await stage.until_said("a grant must end")
        await stage.type("/remember 1 tool 3")
        await stage.until_said("every call of billing.issue_refund runs without asking up to 3")
        await stage.until_said("still asks: every other tool")
        await stage.type("/approve 1")
        await stage.until(lambda: fake.given)
        grant = fake.allow(talk)
        await stage.type("/grants")
        await stage.until_said(grant.id)
        await stage.type(f"/revoke {grant.id}")
        await stage.until_said("taken back")

    assert fake.given == [{"scope": "tool", "times": 3, "until": None}]
    assert fake.revoked == [grant.id]


async def test_an_unknown_outcome_takes_what_the_tool_would_have_answered(
    fake: FakeGateway,
) -> None:
    talk, item = waiting(fake, kind="outcome")
    async with playing(fake, talk.id) as stage:
        await stage.until_said("outcome 1")
        await stage.type("/show 1")
        await stage.until_said("/happened 1 RESULT")
        await stage.type("/happened 1")
        await stage.until_said("must follow")
        await stage.type("/approve 1")
        await stage.until_said("that is no answer to this item")
        await stage.type("/happened 1 refunded")
        await stage.until_said("outcome 1: happened")

    assert fake.decisions == [(item.id, 1, "happened", "", "refunded")]


async def test_in_a_pipe_a_decision_needs_the_digest(fake: FakeGateway) -> None:
    talk, item = waiting(fake)
    async with playing(fake, talk.id, by_person=False) as stage:
        await stage.until_said("approval 1")
        await stage.type("/approve 1")
        await stage.until_said("the digest must follow")
        await stage.type(f"/approve 1 {item.digest[:4]}")
        await stage.type("/approve 1 00000000")
        assert fake.decisions == []
        await stage.type(f"/approve 1 {item.digest[:12]}")
        await stage.until_said("approval 1: approve, by anna")

    assert [d[0] for d in fake.decisions] == [item.id]


async def test_the_end_of_a_pipe_says_how_it_stands(fake: FakeGateway) -> None:
    fake.cards = (AgentCard("billing"),)
    async with playing(fake, by_person=False) as stage:
        await stage.until(lambda: stage.session.desk.fleet.agents)
        await stage.type("hello")
        await stage.until(lambda: fake.sent)
        talk = next(iter(fake.talks.values()))
        fake.say(talk, "hi")
        fake.end(talk)
        await stage.until_said("agent: hi")
        stage.typist.lines.put_nowait("again")
        await stage.until(lambda: len(fake.sent) == 2)
        fake.call(talk, 1)
        fake.open_item(talk, 1)
        stage.typist.lines.put_nowait(None)
        assert stage.code is not None

        assert await asyncio.wait_for(stage.code, 10) == 4
    assert "you: hello" in stage.text


async def test_a_new_conversation_asks_for_what_the_agent_needs(fake: FakeGateway) -> None:
    needs = VariableSpec(required=True, description="The shop.")
    fake.cards = (AgentCard("sales", variables={"company": needs}, injected=("tenant",)),)
    async with playing(fake) as stage:
        await stage.until(lambda: stage.session.desk.fleet.agents)
        await stage.type("/new sales")
        await stage.until_said("question: company (string, required) The shop.")
        await stage.type("Acme")
        await stage.until_said("question: tenant")
        await stage.type("7")
        await stage.until(lambda: fake.started)

    assert fake.started == [("sales", {"company": "Acme"}, {"tenant": "7"})]


async def test_conversations_are_listed_opened_closed_and_opened_again(fake: FakeGateway) -> None:
    talk = billing(fake)
    fake.end(talk)
    async with playing(fake) as stage:
        await stage.type("/list")
        await stage.until_said("1: billing #a91f00, idle, refund A-1001 please")
        await stage.type("/open 1")
        await stage.until_said("conversation: billing #a91f00")
        await stage.type("/close")
        await stage.until_said("to close it type /close billing")
        assert fake.closed == []
        await stage.type("/close billing")
        await stage.until_said("note: conversation closed by anna")
        await stage.type("still there?")
        await stage.until_said("not sent: this conversation is closed")
        await stage.type("/reopen")
        await stage.until_said("note: opened again by anna")
        await stage.type("/nonsense")
        await stage.until_said("there is no /nonsense")
        await stage.type("/quit")
        assert stage.code is not None

        assert await asyncio.wait_for(stage.code, 10) == 0


async def test_a_message_without_a_worker_is_held_and_says_so(fake: FakeGateway) -> None:
    talk = billing(fake)
    fake.end(talk)
    fake.workers = 0
    async with playing(fake, talk.id) as stage:
        await stage.until_said("connection: no worker is running; messages wait")
        await stage.type("hello")
        await stage.until_said("note: held, no worker is running")
        fake.workers = 1
        await stage.until(lambda: fake.sent)

    assert [text for _, text in fake.sent] == ["hello"]
