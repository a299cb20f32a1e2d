"""What every model adapter does; each one's tests inherit these."""

from __future__ import annotations

import asyncio
import copy

import pytest

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.messages import ModelReply, ModelRequest, ModelTool, Note
from capuchin_yaml.models.adapter import ModelAdapter
from tests.models.talk import assistant, call, calls_of, kept, request, result, text_of, user

ORDER = '{"order_id": "A-1001", "status": "paid"}'


class AdapterContract:
    """Give a fixture `adapter` whose model looks up the order it is asked about (`A-<digits>`
    in the message), answers in words after the result, and answers `hello` in words.
    """

    async def test_words_come_while_they_are_said_and_add_up(self, adapter: ModelAdapter) -> None:
        heard: list[str] = []
        reply = await adapter.reply(request(user("hello there my friend")), heard.append)

        assert len(heard) > 1
        assert "".join(heard) == text_of(reply) != ""
        assert reply.stop_reason == "end_turn"

    async def test_a_call_names_a_tool_and_gives_an_object(self, adapter: ModelAdapter) -> None:
        reply = await ask(adapter, request(user("where is order A-1001?")))

        assert [(c.tool, c.input) for c in calls_of(reply)] == [
            ("lookup_order", {"order_id": "A-1001"})
        ]
        assert reply.stop_reason == "tool_use"

    async def test_after_the_result_the_talk_goes_on(self, adapter: ModelAdapter) -> None:
        first = request(user("where is order A-1001?"))
        asked = kept(await ask(adapter, first), 1)
        answer = await ask(adapter, request(*first.entries, asked, result(1, ORDER)))
        thanks = request(*first.entries, asked, result(1, ORDER), kept(answer, 2), user("hello"))
        last = await ask(adapter, thanks)

        assert text_of(answer)
        assert answer.stop_reason == last.stop_reason == "end_turn"

    async def test_a_transcript_in_disorder_is_taken(self, adapter: ModelAdapter) -> None:
        entries = (
            user("  "),
            assistant(call(1), "", call(1), call(2, "no such tool")),
            user("hello?"),
            result(2, " ", status="invalid"),
            Note("a note"),
            result(1),
            assistant(),
            user("hello"),
        )

        assert (await ask(adapter, request(*entries, system=""))).stop_reason == "end_turn"

    async def test_usage_is_counted(self, adapter: ModelAdapter) -> None:
        usage = (await ask(adapter, request(user("hello")))).usage

        assert usage.input_tokens > 0
        assert usage.output_tokens > 0

    async def test_the_same_request_gets_the_same_reply(self, adapter: ModelAdapter) -> None:
        asked = request(user("where is order A-1001?"))
        before = copy.deepcopy(asked)

        assert await ask(adapter, asked) == await ask(adapter, asked)
        assert asked == before

    async def test_many_at_once_do_not_mix(self, adapter: ModelAdapter) -> None:
        orders = [f"A-{n}" for n in range(100, 112)]
        replies = await asyncio.gather(
            *(ask(adapter, request(user(f"where is order {order}?"))) for order in orders)
        )

        assert [c.input for r in replies for c in calls_of(r)] == [{"order_id": o} for o in orders]

    async def test_what_breaks_a_rule_is_rejected(self, adapter: ModelAdapter) -> None:
        bad_tool = ModelTool("get.order", "x", {"type": "object"})

        with pytest.raises(ModelRejected, match="max_tokens"):
            await ask(adapter, request(user("hello"), max_tokens=0))
        with pytest.raises(ModelRejected, match=r"get\.order"):
            await ask(adapter, request(user("hello"), tools=[bad_tool]))


async def ask(adapter: ModelAdapter, asked: ModelRequest) -> ModelReply:
    """The reply, with the words left to themselves."""
    return await adapter.reply(asked, lambda _: None)
