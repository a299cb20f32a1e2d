"""Claude over real HTTP, with every way a network and a provider can fail."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from capuchin_yaml.errors import ModelRejected, ModelUnavailable
from capuchin_yaml.messages import OpaqueBlock, ReplyCall, StopReason, TextBlock, Usage
from capuchin_yaml.models.anthropic import ADDRESS, AnthropicModel
from capuchin_yaml.spec import JsonValue
from tests.models.contract import AdapterContract, ask
from tests.models.fake_anthropic import (
    Answer,
    Event,
    FakeAnthropic,
    block,
    call_block,
    calls,
    error,
    says,
    stream,
    text_block,
)
from tests.models.talk import kept, request, result, user

KEY = "sk-ant-secret-0123456789"
HELLO = request(user("hello"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAnthropic]:
    """A provider on loopback that the environment points to."""
    with FakeAnthropic() as fake:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        yield fake


@pytest.fixture
async def adapter(server: FakeAnthropic) -> AsyncIterator[AnthropicModel]:
    """The adapter, with its connections closed in the end."""
    model = AnthropicModel(read_timeout_s=5)
    yield model
    await model.aclose()


class TestContract(AdapterContract):
    """Claude does what every adapter does."""


async def test_a_request_is_a_stream_with_key_version_and_model(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    await ask(adapter, request(user("hello"), model="claude-opus-4-8"))

    received = server.received[0]
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body["model"] == "claude-opus-4-8"
    assert received.body["stream"] is True
    assert received.body["max_tokens"] == 1024


async def test_the_key_is_read_at_each_call(
    server: FakeAnthropic, adapter: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(adapter, HELLO)
    monkeypatch.setenv("ANTHROPIC_API_KEY", " another-key\n")
    await ask(adapter, HELLO)

    assert server.received[1].headers["authorization"] == "Bearer another-key"


@pytest.mark.parametrize("key", ["", "  \n"])
async def test_without_a_key_it_says_what_to_set(
    adapter: AnthropicModel, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)

    with pytest.raises(ModelRejected, match="set ANTHROPIC_API_KEY"):
        await ask(adapter, HELLO)


async def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(
    adapter: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-naïve-secret")

    with pytest.raises(ModelRejected) as refused:
        await ask(adapter, HELLO)

    assert "secret" not in str(refused.value)


def test_the_address_without_a_setting_is_the_sdk_s_own() -> None:
    from anthropic import AsyncAnthropic

    assert str(AsyncAnthropic(api_key="x").base_url).rstrip("/") == ADDRESS


async def test_parallel_calls_and_words_keep_their_order(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    server.answers.append(
        Answer(
            events=stream(
                [
                    text_block(0, "Both."),
                    call_block(1, "lookup_order", '{"order_id": "A"}', "same"),
                    call_block(2, "refund", '{"order_id": "B"}', "same"),
                ],
                "tool_use",
            )
        )
    )

    assert (await ask(adapter, HELLO)).blocks == (
        TextBlock("Both."),
        ReplyCall("lookup_order", {"order_id": "A"}),
        ReplyCall("refund", {"order_id": "B"}),
    )


@pytest.mark.parametrize(
    ("input_json", "given"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ('""', ""),
        ("[]", []),
        ("null", None),
        ("5", 5),
        ('{"a": ', '{"a": '),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"a": NaN}', '{"a": NaN}'),
        ("[" * 100_000, "[" * 100_000),
        ("1" * 5000, "1" * 5000),
    ],
)
async def test_an_input_is_passed_on_whatever_it_is(
    server: FakeAnthropic, adapter: AnthropicModel, input_json: str, given: JsonValue
) -> None:
    server.answers.append(calls(("lookup_order", input_json)))

    assert (await ask(adapter, HELLO)).blocks == (ReplyCall("lookup_order", given),)


@pytest.mark.parametrize("start", ["", "text", [], None, 5])
async def test_an_input_that_comes_at_once_is_passed_on_too(
    server: FakeAnthropic, adapter: AnthropicModel, start: JsonValue
) -> None:
    begin = {"type": "tool_use", "id": "", "name": "", "input": start}
    server.answers.append(Answer(events=stream([block(0, begin, [])], "tool_use")))

    assert (await ask(adapter, HELLO)).blocks == (ReplyCall("", start),)


@pytest.mark.parametrize(
    ("raw", "alone", "with_calls"),
    [
        ("end_turn", "end_turn", "tool_use"),
        ("tool_use", "end_turn", "tool_use"),
        ("stop_sequence", "end_turn", "tool_use"),
        ("pause_turn", "end_turn", "tool_use"),
        ("max_tokens", "max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens", "max_tokens"),
        ("refusal", "refusal", "refusal"),
        ("something_new", "end_turn", "max_tokens"),
    ],
)
async def test_stop_reasons_in_our_words(
    server: FakeAnthropic,
    adapter: AnthropicModel,
    raw: str,
    alone: StopReason,
    with_calls: StopReason,
) -> None:
    server.answers += [says("ok", stop=raw), calls(("refund", "{}"), stop=raw)]

    assert (await ask(adapter, HELLO)).stop_reason == alone
    assert (await ask(adapter, HELLO)).stop_reason == with_calls


async def test_a_call_cut_off_by_max_tokens_is_told_apart(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    cut = call_block(0, "refund", '{"order_id": "A-1001", "amo')[:-1]
    server.answers.append(Answer(events=stream([cut], "max_tokens")))
    reply = await ask(adapter, HELLO)

    assert reply.stop_reason == "max_tokens"
    assert reply.blocks == (ReplyCall("refund", '{"order_id": "A-1001", "amo'),)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage(20, 9)),
        (
            {"cache_read_input_tokens": None, "cache_creation_input_tokens": None},
            Usage(20, 9),
        ),
        (
            {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 30},
            Usage(20, 9, cache_read_tokens=700, cache_write_tokens=30),
        ),
    ],
)
async def test_tokens_are_counted_once_in_four_classes(
    server: FakeAnthropic,
    adapter: AnthropicModel,
    counts: dict[str, int | None],
    usage: Usage,
) -> None:
    server.answers.append(says("ok", usage=counts))

    assert (await ask(adapter, HELLO)).usage == usage


async def test_later_counts_replace_earlier_ones(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    events = list(says("ok").events)
    later = {"input_tokens": 25, "output_tokens": 11, "cache_read_input_tokens": 4}
    events[-2] = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": later}
    server.answers.append(Answer(events=tuple(events)))

    assert (await ask(adapter, HELLO)).usage == Usage(25, 11, cache_read_tokens=4)


async def test_thinking_is_kept_and_goes_back_verbatim(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        [
            {"type": "thinking_delta", "thinking": "Let me "},
            {"type": "thinking_delta", "thinking": "see."},
            {"type": "signature_delta", "signature": "EqQB=="},
        ],
    )
    redacted = block(1, {"type": "redacted_thinking", "data": "Ab+/="}, [])
    blocks = [thinking, redacted, call_block(2, "lookup_order", '{"order_id": "A"}')]
    server.answers.append(Answer(events=stream(blocks, "tool_use")))
    model = "claude-test"
    first = request(user("go"), model=model)
    reply = await ask(adapter, first)
    said = kept(reply, 1, model=f"anthropic:{model}")
    await ask(adapter, request(*first.entries, said, result(1), model=model))

    assert [b.data for b in reply.blocks if isinstance(b, OpaqueBlock)] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "EqQB=="},
        {"type": "redacted_thinking", "data": "Ab+/="},
    ]
    assert server.received[1].body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "EqQB=="},
        {"type": "redacted_thinking", "data": "Ab+/="},
        {"type": "tool_use", "id": "call_1", "name": "lookup_order", "input": {"order_id": "A"}},
    ]


async def test_empty_replies_are_passed_on(server: FakeAnthropic, adapter: AnthropicModel) -> None:
    server.answers += [Answer(events=stream([])), says(""), says("  ")]

    assert (await ask(adapter, HELLO)).blocks == ()
    assert (await ask(adapter, HELLO)).blocks == (TextBlock(""),)
    assert (await ask(adapter, HELLO)).blocks == (TextBlock("  "),)


async def test_a_character_cut_in_two_by_the_stream_is_whole_again(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    pieces = ["so \ud83d", "\ude00 ", "\ud83d"]
    deltas: list[Event] = [{"type": "text_delta", "text": piece} for piece in pieces]
    words = block(0, {"type": "text", "text": ""}, deltas)
    server.answers.append(Answer(events=stream([words])))
    heard: list[str] = []
    reply = await adapter.reply(HELLO, heard.append)

    assert reply.blocks == (TextBlock("so 😀 \ufffd"),)
    assert heard == ["so ", "😀 ", "\ufffd"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_provider_that_cannot_answer_now_is_unavailable(
    server: FakeAnthropic, adapter: AnthropicModel, status: int
) -> None:
    server.answers.append(error(status, "api_error", "try later"))

    with pytest.raises(ModelUnavailable, match=f"{status} .*try later") as failed:
        await ask(adapter, HELLO)

    assert failed.value.retry_after_s is None
    assert len(server.received) == 1


NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "400000"}, 400_000.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "1500", "retry-after": "30"}, 1.5),
        ({"retry-after": format_datetime(NOON + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOON - timedelta(days=1), usegmt=True)}, 0.0),
    ],
)
async def test_the_pause_the_provider_asks_for_is_passed_on(
    server: FakeAnthropic,
    adapter: AnthropicModel,
    headers: dict[str, str],
    pause_s: float | None,
) -> None:
    server.answers.append(error(429, "rate_limit_error", "slow down", headers))
    with pytest.raises(ModelUnavailable) as failed:
        await ask(adapter, HELLO)
    by_header = failed.value.retry_after_s

    if "GMT" in headers.get("retry-after", ""):
        from capuchin_yaml.models.anthropic_failures import retry_after_s

        by_header = retry_after_s(headers, NOON)
    assert by_header == pause_s
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "told why"),
        (401, "set ANTHROPIC_API_KEY to a valid key"),
        (403, "the key in ANTHROPIC_API_KEY may not do this"),
        (404, "check the model's name"),
        (413, "grown too long"),
        (422, "told why"),
    ],
)
async def test_a_refusal_says_what_the_provider_said_and_what_to_do(
    server: FakeAnthropic, adapter: AnthropicModel, status: int, advice: str
) -> None:
    server.answers.append(error(status, "invalid_request_error", "told why"))

    with pytest.raises(ModelRejected) as refused:
        await ask(adapter, HELLO)

    assert f"{status} invalid_request_error: told why (req_1)" in str(refused.value)
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        error(402, "billing_error", "pay first"),
        error(400, "invalid_request_error", "Your credit balance is too low to access the API."),
        error(400, "invalid_request_error", "You have reached your specified API usage limits."),
        error(429, "rate_limit_error", "You exceeded your current quota, check your billing."),
        error(
            429,
            "rate_limit_error",
            "limit reached",
            details={"error_code": "enforced_spend_limit_reached"},
        ),
    ],
)
async def test_an_account_that_cannot_pay_is_not_tried_again(
    server: FakeAnthropic, adapter: AnthropicModel, answer: Answer
) -> None:
    server.answers.append(answer)

    with pytest.raises(ModelRejected, match="plan and billing"):
        await ask(adapter, HELLO)


async def test_a_refusal_about_a_tool_named_billing_is_not_about_a_bill(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    told = "tools.0.name: 'billing.issue_refund' does not match"
    server.answers.append(error(400, "invalid_request_error", told))

    with pytest.raises(ModelRejected) as refused:
        await ask(adapter, HELLO)

    assert "account" not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "plain"}, '400: {"error": "plain"}'),
        ({"error": {"type": 5, "message": {"deep": 1}}}, '{"deep": 1}'),
        ([1, 2], "400: [1, 2]"),
        ("", "400: no reason given"),
        ("<html><h1>Blocked</h1> by proxy</html>", "400: Blocked by proxy"),
        (None, "400: no reason given"),
    ],
)
async def test_an_answer_of_something_in_between_is_told_too(
    server: FakeAnthropic, adapter: AnthropicModel, body: object, words: str
) -> None:
    server.answers.append(Answer(400, body=body))

    with pytest.raises(ModelRejected) as refused:
        await ask(adapter, HELLO)

    assert words in str(refused.value)


async def test_a_rate_limit_that_mentions_usage_is_tried_again(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    told = (
        "Number of tokens has exceeded your per-minute rate limit; see the response headers for "
        "current usage, or contact sales about billing."
    )
    server.answers.append(error(429, "rate_limit_error", told))

    with pytest.raises(ModelUnavailable):
        await ask(adapter, HELLO)


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("overloaded_error", ModelUnavailable),
        ("api_error", ModelUnavailable),
        ("something_new", ModelUnavailable),
        ("invalid_request_error", ModelRejected),
    ],
)
async def test_a_failure_in_the_middle_of_a_stream_is_what_its_type_says(
    server: FakeAnthropic, adapter: AnthropicModel, kind: str, failure: type[Exception]
) -> None:
    told: Event = {"type": "error", "error": {"type": kind, "message": "halfway"}}
    server.answers.append(Answer(events=(*says("par").events[:4], told)))

    with pytest.raises(failure, match="halfway"):
        await ask(adapter, HELLO)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(events=says("partly").events[:5]),
        says("whole", stop=None),
        Answer(events=says("whole").events[:-1]),
        Answer(events=says("partly").events[:5], ending="cut"),
        Answer(events=(*says("x").events[:3], "event: message_delta\ndata: {garbled\n\n")),
        Answer(events=(*says("x").events[:3], "event: message_delta\ndata: \xff\x00\n\n")),
        Answer(events=("event: message_start\ndata: []\n\n",)),
        Answer(events=({"type": "content_block_delta", "index": 3, "delta": {}},)),
        Answer(events=stream([call_block(0, "refund", "{}")[:-1]], "tool_use")),
        Answer(body="<html><b>Sign in</b></html>", headers={"content-type": "text/html"}),
        Answer(502, body="<html>Bad gateway</html>", headers={"content-type": "text/html"}),
    ],
)
async def test_a_stream_that_is_not_whole_is_unavailable(
    server: FakeAnthropic, adapter: AnthropicModel, answer: Answer
) -> None:
    server.answers.append(answer)

    with pytest.raises(ModelUnavailable, match="anthropic: "):
        await ask(adapter, HELLO)


async def test_a_provider_that_is_not_there_is_unavailable(
    adapter: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")

        with pytest.raises(ModelUnavailable, match=r"connection to http://127\.0\.0\.1:\d+ failed"):
            await ask(adapter, HELLO)


async def test_silence_in_a_stream_ends_in_time(server: FakeAnthropic) -> None:
    server.answers.append(Answer(events=says("x").events[:3], ending="stall"))
    model = AnthropicModel(read_timeout_s=0.2)

    with pytest.raises(ModelUnavailable, match="in time"):
        await ask(model, HELLO)
    await model.aclose()


async def test_a_reply_can_be_cancelled_and_the_next_one_works(
    server: FakeAnthropic, adapter: AnthropicModel
) -> None:
    server.answers.append(Answer(events=says("x").events[:3], ending="stall"))
    task = asyncio.create_task(ask(adapter, HELLO))
    await asyncio.to_thread(server.stalled.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await ask(adapter, HELLO)).stop_reason == "end_turn"


@pytest.mark.parametrize("address", ["ftp://x", "nonsense", "http://", "http://[::1"])
async def test_an_address_that_is_none_is_rejected(
    adapter: AnthropicModel, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)

    with pytest.raises(ModelRejected, match="ANTHROPIC_BASE_URL"):
        await ask(adapter, HELLO)


async def test_no_secret_is_in_any_failure_or_what_hangs_on_it(
    server: FakeAnthropic, adapter: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-gateway: gateway-secret\nx-b: b")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-secret")
    with_password = server.url.replace("http://", "http://me:password-secret@")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", with_password)
    told = f"bad {KEY}, gateway-secret, token-secret, password-secret"
    server.answers += [
        error(401, "authentication_error", told),
        error(500, "api_error", told),
        Answer(502, body=told),
        Answer(events=({"type": "error", "error": {"type": "api_error", "message": told}},)),
        Answer(body=told),
    ]

    while server.answers:
        with pytest.raises((ModelRejected, ModelUnavailable)) as failed:
            await ask(adapter, HELLO)
        assert "secret" not in str(failed.value).replace("[secret]", "")
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None


async def test_what_the_listener_raises_is_not_taken_for_a_failure_of_the_provider(
    adapter: AnthropicModel,
) -> None:
    def refuse(_: str) -> None:
        raise ValueError("no more room")

    with pytest.raises(ValueError, match="no more room"):
        await adapter.reply(HELLO, refuse)


def test_loading_the_adapter_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from capuchin_yaml.models.registry import open_model;"
        "open_model('anthropic:x'); open_model('rehearsal');"
        "print([m for m in ('anthropic', 'jsonschema', 'httpx2') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(out.stdout) == []
