"""The rehearsal model plays any agent offline: sensibly, alike every time, never for ever."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from capuchin_yaml.messages import (
    ModelTool,
    ReplyCall,
    ResultStatus,
    ToolResult,
    TranscriptEntry,
)
from capuchin_yaml.models.rehearsal import MARK, RehearsalModel
from tests.models.contract import AdapterContract, ask
from tests.models.talk import CONVERSATION, SHOP, calls_of, kept, request, text_of, user

ORDER = json.dumps({"order_id": "A-1001", "amount_cents": 4999, "currency": "EUR"})
Ending = tuple[ResultStatus, str]


def tool(name: str, description: str = "", /, **properties: Any) -> ModelTool:
    """A tool whose arguments without a default are required."""
    return ModelTool(
        name,
        description,
        {
            "type": "object",
            "properties": properties,
            "required": [n for n, p in properties.items() if "default" not in p],
            "additionalProperties": False,
        },
    )


TEXT = {"type": "string"}
WEATHER = tool("get_weather", "The current weather of a city.", city=TEXT)
EMAIL = tool("send_email", "Send an email.", to={"type": "string", "format": "email"}, body=TEXT)
NOW = tool("now", "The current date and time.")


@dataclass
class Rehearsal:
    """A talk with the rehearsal model in which every call ends as `endings` says."""

    tools: Sequence[ModelTool] = SHOP
    endings: Mapping[str, Ending] = field(default_factory=lambda: {"lookup_order": ("ok", ORDER)})
    entries: list[TranscriptEntry] = field(default_factory=list)

    async def say(self, text: str) -> tuple[list[tuple[str, Any]], str]:
        """The calls that the message led to, and the last words."""
        self.entries.append(user(text))
        made: list[ReplyCall] = []
        for _ in range(10):
            reply = await ask(RehearsalModel(), request(*self.entries, tools=self.tools))
            assert text_of(reply).startswith(MARK)
            calls = calls_of(reply)
            n = len(self.entries)
            self.entries.append(kept(reply, n, model="rehearsal"))
            if not calls:
                return [(c.tool, c.input) for c in made], text_of(reply).removeprefix(MARK).strip()
            made += calls
            for i, call in enumerate(calls):
                status, answer = self.endings.get(call.tool, ("ok", "fine"))
                self.entries.append(
                    ToolResult(f"{CONVERSATION}:{n + i}", call.tool, status, answer)
                )
        raise AssertionError("the rehearsal does not end")


class TestContract(AdapterContract):
    """The rehearsal model does what every adapter does."""

    @pytest.fixture
    def adapter(self) -> RehearsalModel:
        """The one there is."""
        return RehearsalModel()


async def test_a_refund_is_looked_up_first_and_then_filled_from_the_result() -> None:
    calls, words = await Rehearsal().say("I need a refund for order A-1001")

    assert calls == [
        ("lookup_order", {"order_id": "A-1001"}),
        ("refund", {"order_id": "A-1001", "amount_cents": 4999, "currency": "EUR"}),
    ]
    assert words == "Done: I called lookup_order and then refund. refund answered: fine"


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        ("denied", "Denied by ana: too expensive.", "was not allowed: Denied by ana: too expen"),
        ("expired", "Nobody decided in 24h.", "was not decided in time: Nobody decided in 24h."),
        ("error", "The ledger is closed.", "failed: The ledger is closed."),
        ("cancelled", "Cancelled by ana.", "was cancelled: Cancelled by ana."),
        ("invalid", "amount_cents: too small", "could not be called: amount_cents: too small"),
        ("unknown", "Nobody knows.", "may or may not have happened: Nobody knows."),
        ("skipped", "A limit was reached.", "was not tried: A limit was reached."),
    ],
)
async def test_after_a_call_that_did_not_go_well_it_apologises_with_the_reason(
    status: ResultStatus, answer: str, words: str
) -> None:
    endings: dict[str, Ending] = {"lookup_order": ("ok", ORDER), "refund": (status, answer)}
    calls, last = await Rehearsal(endings=endings).say("I need a refund for order A-1001")

    assert len(calls) == 2
    assert last.startswith("I am sorry. refund ")
    assert words in last


async def test_a_look_up_that_fails_leads_to_no_act() -> None:
    talk = Rehearsal(endings={"lookup_order": ("error", "There is no order A-9.")})
    calls, words = await talk.say("please refund order A-9")

    assert calls == [("lookup_order", {"order_id": "A-9"})]
    assert words == "I am sorry. lookup_order failed: There is no order A-9."


async def test_what_a_look_up_did_not_give_is_not_made_up() -> None:
    talk = Rehearsal(endings={"lookup_order": ("ok", '{"found": false}')})
    calls, _ = await talk.say("please refund order A-9")

    assert calls == [("lookup_order", {"order_id": "A-9"})]


async def test_a_question_about_an_order_does_not_refund_it() -> None:
    calls, words = await Rehearsal().say("Where is my order A-1001?")

    assert calls == [("lookup_order", {"order_id": "A-1001"})]
    assert '"amount_cents": 4999' in words


async def test_it_is_what_was_talked_about_before() -> None:
    talk = Rehearsal()
    await talk.say("Where is my order A-1001?")
    calls, _ = await talk.say("refund it")

    assert calls == [("refund", {"order_id": "A-1001", "amount_cents": 4999, "currency": "EUR"})]


async def test_another_order_is_not_filled_with_what_was_known_of_the_first() -> None:
    talk = Rehearsal()
    await talk.say("Where is my order A-1001?")
    talk.endings = {"lookup_order": ("ok", '{"order_id": "B-2", "amount_cents": 700}')}
    calls, _ = await talk.say("refund B-2")

    assert calls[-1] == ("refund", {"order_id": "B-2", "amount_cents": 700})


async def test_a_look_up_that_the_message_does_not_name_is_found_by_what_is_lacking() -> None:
    find = tool("find_purchase", "Find a purchase.", order_id=TEXT)
    talk = Rehearsal((SHOP[1], find), {"find_purchase": ("ok", ORDER)})
    calls, _ = await talk.say("refund A-1001")

    assert [name for name, _ in calls] == ["find_purchase", "refund"]


async def test_what_the_message_says_outright_beats_the_result() -> None:
    calls, _ = await Rehearsal().say("refund $12.50 of order A-1001 because it broke")

    assert calls[-1] == (
        "refund",
        {"order_id": "A-1001", "amount_cents": 1250, "currency": "USD", "reason": "it broke"},
    )


async def test_each_tool_is_called_once_per_message_at_most() -> None:
    tools = [tool(f"check_{word}_order", "Check.", order_id=TEXT) for word in "abcdefgh"]
    talk = Rehearsal(tools, {})
    calls, _ = await talk.say("check order A-1")
    again, _ = await talk.say("check order A-1")

    names = [name for name, _ in calls]
    assert len(names) == len(set(names)) == 4
    assert [name for name, _ in again] == names


@pytest.mark.parametrize(
    "message", ["hello", "", "  ", "¿qué tal?", "你好", "😀", "!!!", "the the"]
)
async def test_when_no_tool_fits_it_says_what_it_is(message: str) -> None:
    calls, words = await Rehearsal().say(message)

    assert calls == []
    assert words == (
        "I am the rehearsal model: no language model answers for this agent. "
        "None of its tools fits your message: lookup_order, refund."
    )


async def test_an_agent_without_tools_and_a_talk_without_a_message_are_answered() -> None:
    _, words = await Rehearsal(()).say("hello")
    reply = await ask(RehearsalModel(), request())

    assert words.endswith("It has no tools.")
    assert text_of(reply) == f"{MARK} Say something, and I rehearse what this agent would do."


@pytest.mark.parametrize(
    ("message", "called"),
    [
        ("What's the weather in Paris?", [("get_weather", {"city": "Paris"})]),
        ("how is the weather in New York today", [("get_weather", {"city": "New York"})]),
        (
            'email bob@example.com "see you"',
            [("send_email", {"to": "bob@example.com", "body": "see you"})],
        ),
        ("what time is it?", [("now", {})]),
        ("mail ana@example.org", [("send_email", {"to": "ana@example.org", "body": "mail ana"})]),
        ("I like turtles", []),
    ],
)
async def test_tools_are_picked_by_the_words_of_name_and_description(
    message: str, called: list[tuple[str, Any]]
) -> None:
    calls, _ = await Rehearsal((WEATHER, EMAIL, NOW)).say(message)

    assert [name for name, _ in calls] == [name for name, _ in called]
    for (_, given), (_, wanted) in zip(calls, called, strict=True):
        assert {k: str(v)[: len(str(wanted[k]))] for k, v in given.items()} == {
            k: str(v) for k, v in wanted.items()
        }


async def test_a_long_result_is_told_in_short_and_on_one_line() -> None:
    talk = Rehearsal(endings={"lookup_order": ("ok", "line\n\x1b[31m" * 500)})
    _, words = await talk.say("where is order A-1")

    assert len(words) < 400
    assert "\n" not in words
    assert "\x1b" not in words
