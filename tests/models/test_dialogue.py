"""Turns of a transcript obey the provider's rules, whatever happened meanwhile."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.messages import (
    AssistantMessage,
    Block,
    CallBlock,
    ModelRequest,
    Note,
    OpaqueBlock,
    ResultStatus,
    TextBlock,
    ToolResult,
    TranscriptEntry,
    UserMessage,
)
from capuchin_yaml.models.anthropic_wire import request_body
from capuchin_yaml.models.dialogue import (
    GO_ON,
    NO_OUTPUT,
    NO_RESULT,
    CallPart,
    OpaquePart,
    Part,
    ResultPart,
    TextPart,
    dialogue,
)
from capuchin_yaml.models.rules import check_request
from tests.models.talk import SHOP, assistant, call, request, result, user

CLAUDE = "anthropic:claude-test"


def said(*entries: TranscriptEntry) -> list[tuple[str, list[Part]]]:
    turns = dialogue(entries)
    check_request(request_body(request(*entries), provider="anthropic"))
    return [(t.role, list(t.parts)) for t in turns]


def test_results_come_in_call_order_however_the_tools_finished() -> None:
    turns = said(
        user("go"),
        assistant(call(1), call(2), call(3)),
        result(3, "third"),
        result(2, "second"),
        result(1, "first"),
    )

    assert turns[-1] == (
        "user",
        [
            ResultPart("call_1", "first", False),
            ResultPart("call_2", "second", False),
            ResultPart("call_3", "third", False),
        ],
    )


def test_a_message_sent_while_a_call_was_open_comes_after_its_result() -> None:
    turns = said(
        user("go"),
        assistant(call(1), call(2)),
        result(1),
        user("are you there?"),
        user("hello?"),
        result(2),
    )

    assert turns[-1][1] == [
        ResultPart("call_1", "fine", False),
        ResultPart("call_2", "fine", False),
        TextPart("are you there?"),
        TextPart("hello?"),
    ]


def test_messages_in_a_row_become_one_turn() -> None:
    assert said(user("one"), user("two"), Note("three")) == [
        ("user", [TextPart("one"), TextPart("two"), TextPart("three")])
    ]


def test_two_calls_with_one_id_keep_separate_ids_and_results() -> None:
    turns = said(
        user("go"),
        assistant(call(7, order_id="A"), call(7, order_id="B")),
        result(7, "for A"),
        result(7, "for B"),
    )

    assert turns[1][1] == [
        CallPart("call_7", "lookup_order", {"order_id": "A"}),
        CallPart("call_7_2", "lookup_order", {"order_id": "B"}),
    ]
    assert turns[2][1] == [
        ResultPart("call_7", "for A", False),
        ResultPart("call_7_2", "for B", False),
    ]


def test_an_id_used_in_an_earlier_turn_is_not_used_again() -> None:
    turns = said(
        user("go"),
        assistant(call(1)),
        result(1, "old"),
        assistant(call(1)),
        result(1, "new"),
    )

    assert turns[2][1] == [ResultPart("call_1", "old", False)]
    assert turns[4][1] == [ResultPart("call_1_2", "new", False)]


def test_an_id_that_no_provider_takes_is_replaced() -> None:
    block = CallBlock("", "lookup_order", {})
    turns = said(user("go"), assistant(block), ToolResult("", "lookup_order", "ok", "x"))

    assert turns[2][1] == [ResultPart("call_x", "x", False)]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    turns = said(user("go"), assistant(call(1), call(2)), result(2), user("hi"))

    assert turns[-1][1] == [
        ResultPart("call_1", NO_RESULT, True),
        ResultPart("call_2", "fine", False),
        TextPart("hi"),
    ]


def test_a_result_that_comes_too_late_or_twice_is_told_as_text() -> None:
    turns = said(
        user("go"),
        assistant(call(1)),
        result(1, "in time"),
        result(1, "again"),
        assistant("so far"),
        result(1, "much later"),
    )

    assert turns[2][1] == [
        ResultPart("call_1", "in time", False),
        TextPart("(result of an earlier call of lookup_order: again)"),
    ]
    assert turns[4][1] == [TextPart("(result of an earlier call of lookup_order: much later)")]


def test_every_status_but_ok_is_an_error_for_the_model() -> None:
    turns = said(user("go"), assistant(call(1)), result(1, "Denied by ana", status="denied"))

    assert turns[-1][1] == [ResultPart("call_1", "Denied by ana", True)]


def test_blank_text_is_never_said() -> None:
    turns = said(
        user("  \n"),
        user("go"),
        assistant("", call(1), "\t"),
        result(1, "   "),
        Note("\u00a0"),
        assistant("   "),
        assistant(),
        user("and?"),
    )

    assert turns == [
        ("user", [TextPart("go")]),
        ("assistant", [CallPart("call_1", "lookup_order", {})]),
        ("user", [ResultPart("call_1", NO_OUTPUT, False), TextPart("and?")]),
    ]


def test_where_the_user_said_nothing_the_user_says_go_on() -> None:
    assert said() == [("user", [TextPart(GO_ON)])]
    assert said(assistant("hello"), assistant("again")) == [
        ("user", [TextPart(GO_ON)]),
        ("assistant", [TextPart("hello")]),
        ("user", [TextPart(GO_ON)]),
        ("assistant", [TextPart("again")]),
        ("user", [TextPart(GO_ON)]),
    ]


def test_a_made_up_tool_name_goes_back_as_unknown_tool() -> None:
    names = ["", "my tool", "reed.file", "x" * 65, "naïve", "ok\n"]
    calls = [CallBlock(f"c:{i}", name, {}) for i, name in enumerate(names)]
    turns = said(user("go"), assistant(*calls))

    assert {p.tool for p in turns[1][1] if isinstance(p, CallPart)} == {"unknown_tool"}


def test_thinking_goes_back_verbatim_to_the_model_that_wrote_it_and_to_no_other() -> None:
    data = {"type": "thinking", "thinking": "hm", "signature": "s1", "extra": 1}
    entries = (
        user("go"),
        assistant(OpaqueBlock("anthropic", data), "yes", model=CLAUDE),
        user("and?"),
    )

    assert dialogue(entries, opaque_of=CLAUDE)[1].parts == (OpaquePart(data), TextPart("yes"))
    assert dialogue(entries, opaque_of="anthropic:other")[1].parts == (TextPart("yes"),)
    assert dialogue(entries)[1].parts == (TextPart("yes"),)


def test_a_reply_never_ends_with_thinking() -> None:
    thinking = OpaqueBlock("anthropic", {"type": "redacted_thinking", "data": "x"})
    entries = (user("go"), assistant("yes", thinking, "  ", model=CLAUDE), user("and?"))

    assert dialogue(entries, opaque_of=CLAUDE)[1].parts == (TextPart("yes"),)


def test_halves_of_characters_are_joined_or_replaced() -> None:
    turns = said(user("a\ud83d\ude00b \udc80"), assistant(call(1, name="\ud800")), result(1))

    assert turns[0][1] == [TextPart("a😀b \ufffd")]
    assert turns[1][1] == [CallPart("call_1", "lookup_order", {"name": "\ufffd"})]


def test_an_input_that_json_cannot_hold_is_written_as_text() -> None:
    turns = said(user("go"), assistant(call(1, a=float("nan"), b=[float("inf"), 1.5, (1,)])))

    assert turns[1][1] == [CallPart("call_1", "lookup_order", {"a": "nan", "b": ["inf", 1.5, [1]]})]


TEXTS = st.one_of(
    st.sampled_from(["", " ", "\n\t", "hello", "\ud83d", "\ude00x"]), st.text(max_size=8)
)
CALL_IDS = st.one_of(st.integers(0, 6).map(lambda n: f"demo:{n}"), TEXTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(
    CallBlock,
    CALL_IDS,
    st.sampled_from(["lookup_order", "refund", "", "no such tool"]),
    st.dictionaries(TEXTS, JSON, max_size=2),
)
OPAQUE = st.builds(
    OpaqueBlock,
    st.sampled_from(["anthropic", "other"]),
    st.sampled_from(
        [
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
        ]
    ),
)
STATUSES: st.SearchStrategy[ResultStatus] = st.sampled_from(get_args(ResultStatus))


@st.composite
def transcripts(draw: st.DrawFn) -> list[TranscriptEntry]:
    """Anything at all: results in any order, missing, late or twice, notes and texts between."""
    entries: list[TranscriptEntry] = []
    ids: list[str] = []
    for _ in range(draw(st.integers(0, 12))):
        match draw(st.integers(0, 3)):
            case 0:
                entries.append(UserMessage("m", draw(TEXTS), "ana", "t"))
            case 1:
                blocks: list[Block] = draw(
                    st.lists(st.one_of(st.builds(TextBlock, TEXTS), CALLS, OPAQUE), max_size=4)
                )
                entries.append(AssistantMessage(tuple(blocks), "tool_use", CLAUDE))
                ids += [b.call_id for b in blocks if isinstance(b, CallBlock)]
            case 2:
                id = draw(st.sampled_from(ids) if ids else CALL_IDS)
                entries.append(ToolResult(id, "lookup_order", draw(STATUSES), draw(TEXTS)))
            case _:
                entries.append(Note(draw(TEXTS)))
    return entries


@given(transcripts(), TEXTS)
@settings(max_examples=400, deadline=None)
def test_any_transcript_becomes_a_request_that_breaks_no_rule(
    entries: list[TranscriptEntry], system: str
) -> None:
    asked = ModelRequest("claude-test", system, tuple(entries), SHOP)

    check_request(request_body(asked, provider="anthropic"))


@given(transcripts())
@settings(max_examples=200, deadline=None)
def test_nothing_that_was_said_is_lost(entries: list[TranscriptEntry]) -> None:
    turns = dialogue(entries)
    texts = [p.text for t in turns for p in t.parts if isinstance(p, TextPart | ResultPart)]

    for entry in entries:
        if isinstance(entry, UserMessage) and entry.text.strip() and entry.text.isascii():
            assert entry.text in texts
        if isinstance(entry, ToolResult) and entry.text.strip() and entry.text.isascii():
            assert any(entry.text in t for t in texts)


@given(transcripts(), transcripts())
@settings(max_examples=100, deadline=None)
def test_what_was_sent_before_is_sent_again_word_for_word(
    earlier: list[TranscriptEntry], later: list[TranscriptEntry]
) -> None:
    """Otherwise the provider's prompt cache would miss."""
    first = dialogue(earlier, opaque_of=CLAUDE)
    reply = AssistantMessage((TextBlock("so"),), "end_turn", CLAUDE)
    second = dialogue([*earlier, reply, *later], opaque_of=CLAUDE)

    assert second[: len(first)] == first
