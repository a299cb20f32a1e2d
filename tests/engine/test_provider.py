"""Whole turns against a strict provider over HTTP: what goes out is what it takes.

The provider refuses a request in which a call has no result right behind it, or anything else
that the real one refuses; a talk that goes on has been proved valid.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from capuchin_yaml.client.fleet import Capuchin
from capuchin_yaml.spec import ApprovalSpec
from tests.engine.house import House, Talk, lab
from tests.models.fake_anthropic import (
    Answer,
    FakeAnthropic,
    Received,
    call_block,
    error,
    says,
    stream,
    text_block,
)

ALL = ApprovalSpec(policy="all")
MODEL = "anthropic:claude-test"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAnthropic]:
    """The provider that the worker's environment names."""
    with FakeAnthropic() as fake:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-for-tests")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        yield fake


def asks(*calls: tuple[str, str, str], text: str | None = None, stop: str = "tool_use") -> Answer:
    """A reply of calls, each a name, the JSON of its input, and the provider's id."""
    blocks = [] if text is None else [text_block(0, text)]
    first = len(blocks)
    blocks += [call_block(first + i, *call) for i, call in enumerate(calls)]
    return Answer(events=stream(blocks, stop))


def content(provider: FakeAnthropic, request: int, message: int) -> list[dict[str, Any]]:
    """The blocks of one message of one request that came in."""
    found: list[dict[str, Any]] = provider.received[request].body["messages"][message]["content"]
    return found


async def ending(talk: Talk) -> dict[str, Any]:
    """How the last turn ended."""
    return [e for e in await talk.events() if e["kind"] == "turn_ended"][-1]


async def goes_on(talk: Talk, provider: FakeAnthropic) -> None:
    """The next message is taken by the provider and answered."""
    provider.answers.append(says("still here"))
    await talk.send("hi")
    await talk.idle()
    assert (await ending(talk))["outcome"] == "answered"
    assert await talk.last_words() == "still here"


async def test_results_go_back_in_one_message_in_call_order_with_text_behind_them(
    house: House, provider: FakeAnthropic
) -> None:
    house.agent("wide", MODEL, "lab.wait", "lab.echo")
    provider.answers.append(
        asks(
            ("wait", '{"name": "wide1"}', "a"),
            ("wait", '{"name": "wide2"}', "b"),
            ("echo", '{"text": "third"}', "c"),
        )
    )
    talk = await house.talk("wide", "go")
    await asyncio.to_thread(lab.entered("wide1").wait, 20)
    await talk.send("and hello")
    lab.gate("wide2").set()
    await talk.until(lambda s: _results(talk, 2))
    lab.gate("wide1").set()
    provider.answers.append(says("done"))
    await talk.idle()

    results = content(provider, 1, 2)
    assert [b["content"] for b in results] == ["wide1 opened", "wide2 opened", "third"]
    assert [b["tool_use_id"] for b in results] == [b["id"] for b in content(provider, 1, 1)]
    assert [len(r.body["messages"]) for r in provider.received] == [1, 3, 5]


async def _results(talk: Talk, count: int) -> bool:
    return (await talk.kinds()).count("tool_ended") >= count


@pytest.mark.parametrize("moment", ["streaming", "streaming a call", "approval", "execution"])
async def test_after_a_cancel_every_call_has_its_result_and_the_talk_goes_on(
    house: House, provider: FakeAnthropic, moment: str
) -> None:
    """Case: a cancel leaves a call without result, and every later request is refused."""
    gated = ApprovalSpec(policy="denylist", tools=("lab.write",))
    house.agent("fickle", MODEL, "lab.write", "lab.wait", approval=gated)
    name = f"fickle-{moment}"
    match moment:
        case "streaming":
            half = stream([text_block(0, "Let me ")], None)
            provider.answers.append(Answer(events=half, ending="stall"))
        case "streaming a call":
            half = stream([call_block(0, "write", '{"line": "x"}', "a")[:-1]], None)
            provider.answers.append(Answer(events=half, ending="stall"))
        case "approval":
            provider.answers.append(asks(("write", '{"line": "x"}', "a"), text="Writing."))
        case _:
            provider.answers.append(
                asks(("wait", f'{{"name": "{name}"}}', "a"), ("write", '{"line": "x"}', "b"))
            )
    talk = await house.talk("fickle", "go")
    match moment:
        case "approval":
            await talk.item()
        case "execution":
            await asyncio.to_thread(lab.entered(name).wait, 20)
            await talk.item()
        case _:
            assert await asyncio.to_thread(provider.stalled.wait, 20)

    await talk.cancel()
    state = await talk.idle(timeout_s=10)

    assert (state["items"], (await ending(talk))["outcome"]) == ([], "cancelled")
    calls = [b for e in await talk.entries() for b in e.get("blocks", ()) if b["type"] == "call"]
    results = [e for e in await talk.entries() if e["kind"] == "result"]
    assert [r["call_id"] for r in results] == [c["call_id"] for c in calls]
    assert {r["status"] for r in results} <= {"cancelled"}
    await goes_on(talk, provider)
    assert house.effects() == []


@pytest.mark.parametrize("id", ["toolu_same", ""])
async def test_calls_with_one_id_or_none_have_each_their_approval_and_result(
    house: House, provider: FakeAnthropic, id: str
) -> None:
    """Case: an id that is repeated, or empty, makes one approval release both, or ends the talk."""
    house.agent("alike", MODEL, "lab.write", approval=ALL)
    both = asks(("write", '{"line": "one"}', id), ("write", '{"line": "two"}', id))
    provider.answers += [both, says("first")]
    talk = await house.talk("alike", "go")
    state = await talk.until(lambda s: len(s["items"]) == 2)
    one, two = sorted(state["items"], key=lambda i: i["arguments"])
    await talk.decide(one, "approve")
    await talk.until(lambda s: len(s["items"]) == 1 and _results(talk, 1))
    effects = house.effects()
    await talk.decide(two, "deny")
    await talk.idle()
    provider.answers.append(asks(("write", '{"line": "three"}', id)))
    await talk.send("again")  # an id that was used turns ago
    await talk.decide(await talk.item(), "approve")
    await talk.idle()

    assert effects == ["one"]
    assert house.effects() == ["one", "three"]
    sent = [
        b["id"] for m in provider.received[-1].body["messages"] for b in m["content"] if "id" in b
    ]
    assert len(sent) == len(set(sent)) == 3
    await goes_on(talk, provider)


async def test_blank_blocks_are_taken_and_never_sent_back(
    house: House, provider: FakeAnthropic
) -> None:
    house.agent("quiet", MODEL, "lab.odd")
    provider.answers += [
        asks(("odd", '{"kind": "blank"}', "a"), text=""),
        says("  \n"),
    ]
    talk = await house.talk("quiet", "go")
    await talk.idle()
    provider.answers.append(Answer(events=stream([])))
    await talk.send("say nothing")
    await talk.idle()

    assert (await ending(talk))["detail"] == "the model said nothing"
    await goes_on(talk, provider)


async def test_a_call_that_was_cut_off_is_neither_asked_about_nor_run(
    house: House, provider: FakeAnthropic
) -> None:
    house.agent("cut", MODEL, "lab.write", "lab.away", approval=ALL)
    whole = asks(("write", '{"line": "x"}', "a"), stop="max_tokens")
    empty = asks(("away", "", "a"), stop="max_tokens")
    provider.answers += [whole, empty, whole]
    talk = await house.talk("cut", "go")
    await talk.idle()

    end = await ending(talk)
    assert (end["outcome"], "cut off 3 times" in end["detail"]) == ("stopped", True)
    assert "item_opened" not in await talk.kinds()
    assert "token limit" in content(provider, 1, 2)[0]["content"]
    assert house.effects() == []
    await goes_on(talk, provider)


class TestProviderThatCannotAnswerNow:
    """Case: waits are not as told, retries multiply, a long wait freezes the talk."""

    async def test_the_pause_that_it_names_is_kept_each_time(
        self, house: House, provider: FakeAnthropic
    ) -> None:
        house.agent("busy", MODEL)
        at: list[float] = []
        self._note_times(provider, at)
        later = format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)
        provider.answers += [
            error(429, "rate_limit_error", "slow down", {"retry-after": "1.5"}),
            error(429, "rate_limit_error", "slow down", {"retry-after": later}),
            says("here"),
        ]
        talk = await house.talk("busy", "go")
        await talk.idle()

        assert await talk.last_words() == "here"
        assert len(at) == 3
        assert at[1] - at[0] >= 1.4
        assert at[2] - at[0] >= 2.5

    async def test_attempts_are_six_in_all_and_never_multiplied(
        self, house: House, provider: FakeAnthropic
    ) -> None:
        house.agent("busy", MODEL)
        overloaded = error(529, "overloaded_error", "overloaded", {"retry-after": "0.05"})
        provider.answers += [overloaded] * 40
        talk = await house.talk("busy", "go")
        await talk.idle()

        end = await ending(talk)
        assert len(provider.received) == 6
        assert (end["outcome"], "overloaded" in end["detail"]) == ("model_unavailable", True)
        provider.answers.clear()
        await goes_on(talk, provider)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (error(429, "rate_limit_error", "wait", {"retry-after": "400000"}), "5 days"),
            (error(402, "billing_error", "no credit left"), "no credit left"),
        ],
        ids=["a wait of days", "an account that cannot pay"],
    )
    async def test_what_waiting_does_not_help_ends_the_turn_at_once(
        self, house: House, provider: FakeAnthropic, answer: Answer, said: str
    ) -> None:
        house.agent("busy", MODEL)
        provider.answers += [answer] * 3
        talk = await house.talk("busy", "go")
        await talk.idle(timeout_s=10)

        assert len(provider.received) == 1
        assert said in (await ending(talk))["detail"]
        provider.answers.clear()
        await goes_on(talk, provider)

    async def test_a_long_wait_can_be_cancelled(
        self, house: House, provider: FakeAnthropic
    ) -> None:
        house.agent("busy", MODEL)
        provider.answers.append(error(429, "rate_limit_error", "slow down", {"retry-after": "600"}))
        talk = await house.talk("busy", "go")
        await talk.until(lambda s: _failed_once(talk))
        began = time.monotonic()
        await talk.cancel()
        await talk.idle(timeout_s=10)

        assert time.monotonic() - began < 5
        assert len(provider.received) == 1
        await goes_on(talk, provider)

    def _note_times(self, provider: FakeAnthropic, at: list[float]) -> None:
        answer_to = provider.answer_to

        def noted(received: Received, path: str) -> Answer:
            at.append(time.monotonic())
            return answer_to(received, path)

        provider.answer_to = noted  # type: ignore[method-assign]  # the clock of a stand-in


async def _failed_once(talk: Talk) -> bool:
    described = (await talk.handle.describe()).raw_description
    return any(a.HasField("last_failure") for a in described.pending_activities)


async def test_a_long_wait_is_shown_with_its_end_and_reason(
    house: House, provider: FakeAnthropic
) -> None:
    """Case: a talk that waits for its provider looks as if it were thinking."""
    house.agent("busy", MODEL)
    slow_down = error(429, "rate_limit_error", "slow down", {"retry-after": "300"})
    provider.answers.append(slow_down)
    talk = await house.talk("busy", "go")
    await talk.until(lambda s: _failed_once(talk))
    seen = Capuchin(house.client, project=house.project).conversation(talk.id)

    state, partial = await seen.state(), await seen.partial()
    await talk.cancel()
    await talk.idle()

    assert state.status == "thinking"
    assert re.fullmatch(
        r"tried again at ..:..:.. UTC \(attempt 2 of 6\): .*slow down.*", state.detail
    )
    assert partial is not None
    assert partial.held_up == state.detail
    assert (await seen.state()).detail == ""
    assert await seen.partial() is None
