"""The reducer: events in, entries out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capuchin_yaml.events import Event, decode
from capuchin_yaml.tui.gateway import Partial, TalkState
from capuchin_yaml.tui.model.changes import (
    Added,
    HeadChanged,
    ItemsChanged,
    Replaced,
    ReplyGrew,
)
from capuchin_yaml.tui.model.entries import AgentSaid, Mark, ToolCard, UserSaid
from capuchin_yaml.tui.model.talk import EventsMissing, Talk

ID = "demo.billing-a91f00"


def event(offset: int, kind: str, **fields: Any) -> Event:
    return decode(
        {"kind": kind, "offset": offset, "time": f"2026-11-30T12:00:{offset:02}+00:00", **fields}
    )


def item(n: int = 1, kind: str = "approval", revision: int = 1) -> dict[str, Any]:
    return {
        "id": f"{ID}:a{n}",
        "kind": kind,
        "conversation": ID,
        "digest": f"d{revision}",
        "revision": revision,
        "title": "Refund 4200 cents",
        "requested_at": "2026-11-30T12:00:04+00:00",
        "due": None,
        "then": "wait",
        "call_id": f"{ID}:{n}",
        "tool": "billing.issue_refund",
        "alias": "refund",
        "reason": "denylist",
    }


def turn(offset: int = 1, text: str = "refund A-1001", message_id: str = "m1") -> Event:
    return event(offset, "turn_started", turn=1, message_id=message_id, text=text, by="anna")


def asked(offset: int, n: int = 1, verdict: str = "ask") -> Event:
    return event(
        offset,
        "tool_requested",
        call_id=f"{ID}:{n}",
        tool="billing.issue_refund",
        alias="refund",
        arguments='{"amount_cents":4200}',
        verdict=verdict,
        reason="finance only" if verdict == "deny" else "",
    )


PINNED = event(
    0,
    "definition_pinned",
    agent="billing",
    version="1.2.0",
    definition_hash="3f2a91bc",
    model="m:x",
)
WHOLE_TURN = [
    PINNED,
    turn(),
    event(2, "usage_recorded", model="m:x", input_tokens=100, output_tokens=20,
          cache_read_tokens=5, cache_write_tokens=6),
    asked(3),
    event(4, "item_opened", item=item()),
    event(5, "item_decided", item_id=f"{ID}:a1", item_kind="approval", choice="approve", by="bert"),
    event(6, "tool_started", call_id=f"{ID}:1", tool="billing.issue_refund", alias="refund",
          arguments='{"amount_cents":4200}'),
    event(7, "tool_ended", call_id=f"{ID}:1", tool="billing.issue_refund", alias="refund",
          status="ok", text="refunded", duration_s=0.3),
    event(8, "assistant_message", turn=1, step=2, text="Done.", model="m:x"),
    event(9, "turn_ended", turn=1, outcome="answered"),
]  # fmt: skip


def applied(events: list[Event]) -> Talk:
    talk = Talk(ID)
    for each in events:
        talk.apply(each)
    return talk


def test_a_whole_turn_becomes_message_card_and_reply() -> None:
    talk = applied(WHOLE_TURN)

    assert [type(e) for e in talk.entries] == [Mark, UserSaid, ToolCard, AgentSaid]
    card = talk.entries[2]
    assert isinstance(card, ToolCard)
    assert (card.state, card.result, card.decided_by, card.duration_s) == (
        "ok", "refunded", "bert", 0.3,
    )  # fmt: skip
    assert (talk.status, talk.items, talk.usage.total) == ("idle", {}, 131)


def test_a_card_goes_through_every_state_on_its_way() -> None:
    talk = Talk(ID)
    states: list[str] = []

    for each in WHOLE_TURN:
        talk.apply(each)
        card = talk.card(f"{ID}:1")
        if card is not None and (not states or states[-1] != card.state):
            states.append(card.state)

    assert states == ["requested", "waiting", "approved", "running", "ok"]


def test_repeated_events_change_nothing() -> None:
    talk = applied(WHOLE_TURN)
    before = list(talk.entries)

    assert [c for e in WHOLE_TURN for c in talk.apply(e)] == []
    assert talk.entries == before
    assert talk.usage.total == 131


def test_a_hole_in_the_log_is_found_by_its_number() -> None:
    talk = applied(WHOLE_TURN[:3])

    with pytest.raises(EventsMissing) as missing:
        talk.apply(WHOLE_TURN[5])

    assert (missing.value.since, missing.value.got) == (3, 5)
    assert talk.next_offset == 3


def test_events_no_longer_kept_leave_a_mark_and_the_talk_goes_on() -> None:
    talk = Talk(ID)

    talk.skip_to(8)
    talk.apply(WHOLE_TURN[8])

    assert isinstance(talk.entries[0], Mark)
    assert "8 earlier events" in talk.entries[0].text
    assert isinstance(talk.entries[1], AgentSaid)


def test_a_roll_over_is_one_more_event_and_offsets_go_on() -> None:
    talk = applied([*WHOLE_TURN, event(10, "rolled_over", previous_run_id="r1")])

    talk.apply(turn(11, "next", "m2"))

    assert [type(e) for e in talk.entries[-2:]] == [Mark, UserSaid]


def test_every_prefix_replayed_twice_ends_the_same() -> None:
    whole = applied(WHOLE_TURN)

    for cut in range(len(WHOLE_TURN) + 1):
        again = applied([*WHOLE_TURN[:cut], *WHOLE_TURN])
        assert again.entries == whole.entries
        assert again.status == whole.status


def test_changes_name_what_to_draw_again() -> None:
    talk = Talk(ID)

    assert talk.apply(PINNED) == [HeadChanged(), Added(0)]
    assert talk.apply(turn()) == [HeadChanged(), Added(1)]
    talk.apply(WHOLE_TURN[2])
    assert talk.apply(asked(3)) == [Added(2)]
    assert talk.apply(event(4, "item_opened", item=item())) == [
        ItemsChanged(), HeadChanged(), Replaced(2),
    ]  # fmt: skip


def test_a_new_revision_replaces_the_item() -> None:
    talk = applied([PINNED, turn(), event(2, "item_opened", item=item())])

    talk.apply(event(3, "item_opened", item=item(revision=2)))

    assert [(i.digest, i.revision) for i in talk.items.values()] == [("d2", 2)]


def test_a_decision_keeps_who_and_why() -> None:
    talk = applied([PINNED, turn(), asked(2), event(3, "item_opened", item=item())])

    talk.apply(
        event(4, "item_decided", item_id=f"{ID}:a1", item_kind="approval", choice="deny",
              by="bert", reason="too late")
    )  # fmt: skip

    card = talk.card(f"{ID}:1")
    assert card is not None
    assert (card.state, card.decided_by, card.reason) == ("denied", "bert", "too late")
    assert talk.decided[f"{ID}:a1"].by == "bert"
    assert talk.items == {}


@pytest.mark.parametrize(
    ("choice", "state"), [("expired", "expired"), ("withdrawn", "cancelled"), ("deny", "denied")]
)
def test_an_item_that_nobody_approved_says_how_it_ended(choice: str, state: str) -> None:
    talk = applied([PINNED, turn(), asked(2), event(3, "item_opened", item=item())])

    talk.apply(event(4, "item_decided", item_id=f"{ID}:a1", item_kind="approval",
                     choice=choice, by=""))  # fmt: skip

    card = talk.card(f"{ID}:1")
    assert card is not None
    assert card.state == state


def test_a_denied_and_an_invalid_call_say_so_from_the_start() -> None:
    talk = applied([PINNED, turn(), asked(2, 1, "deny"), asked(3, 2, "invalid")])

    states = [e.state for e in talk.entries if isinstance(e, ToolCard)]
    assert states == ["denied", "invalid"]


@pytest.mark.parametrize(
    "end",
    [
        event(4, "turn_ended", turn=1, outcome="cancelled"),
        event(4, "conversation_closed", status="closed", by="bert"),
    ],
)
def test_a_call_without_a_result_is_cancelled_with_its_turn(end: Event) -> None:
    talk = applied([PINNED, turn(), asked(2), event(3, "item_opened", item=item())])

    talk.apply(end)

    card = talk.card(f"{ID}:1")
    assert card is not None
    assert card.state == "cancelled"
    assert talk.items == {}


def test_queued_messages_leave_the_queue_when_their_turn_starts() -> None:
    talk = applied([PINNED, turn()])
    queued = event(2, "message_queued", message_id="m2", text="and A-2", by="anna")

    talk.apply(queued)
    assert [q.text for q in talk.queued] == ["and A-2"]
    talk.apply(turn(3, "and A-2", "m2"))

    assert talk.queued == []


def test_an_unknown_event_is_shown_and_not_fatal() -> None:
    talk = applied([PINNED, event(1, "tea_was_made", sugar=2)])

    assert isinstance(talk.entries[-1], Mark)
    assert "tea_was_made" in talk.entries[-1].text


def test_an_item_of_another_release_is_a_mark_and_not_fatal() -> None:
    talk = applied([PINNED, event(1, "item_opened", item={"id": "x"})])

    assert isinstance(talk.entries[-1], Mark)
    assert talk.items == {}


def test_a_failed_turn_tells_its_reason() -> None:
    talk = applied([PINNED, turn()])

    talk.apply(event(2, "turn_ended", turn=1, outcome="model_rejected", detail="401"))

    assert isinstance(talk.entries[-1], Mark)
    assert talk.entries[-1].text == "the model refused the request: 401"
    assert talk.entries[-1].tone == "bad"


def test_a_closed_conversation_is_over() -> None:
    talk = applied([PINNED, event(1, "conversation_closed", status="failed", by="", detail="no")])

    assert (talk.is_over, talk.status) == (True, "failed")


def test_what_holds_a_reply_up_is_shown_until_it_goes_on() -> None:
    talk = applied([PINNED, turn()])

    assert talk.grow(Partial(2, 0, "", "tried again at 10:00:00 UTC")) == [HeadChanged()]
    assert talk.detail == "tried again at 10:00:00 UTC"
    assert talk.open_reply is None
    assert talk.grow(Partial(2, 0, "Here")) == [HeadChanged(), ReplyGrew()]
    assert talk.detail == ""


def test_the_open_reply_grows_and_is_replaced_by_what_was_said() -> None:
    talk = applied([PINNED, turn()])

    assert talk.grow(Partial(1, 0, "Look")) == [ReplyGrew()]
    assert talk.grow(Partial(1, 0, "Looking")) == [ReplyGrew()]
    assert talk.grow(Partial(1, 4, "ing")) == []
    assert talk.open_reply is not None
    assert talk.open_reply.text == "Looking"
    changes = talk.apply(
        event(2, "assistant_message", turn=1, step=1, text="Looking up.", model="m:x")
    )

    assert changes == [ReplyGrew(), Added(2)]
    assert isinstance(talk.entries[2], AgentSaid)
    assert talk.entries[2].text == "Looking up."
    assert not any(e.is_open for e in talk.entries if isinstance(e, AgentSaid))


def test_a_tail_that_begins_later_is_put_in_its_place() -> None:
    talk = applied([PINNED, turn()])

    talk.grow(Partial(1, 0, "abcdef"))
    talk.grow(Partial(1, 4, "efgh"))

    assert talk.open_reply is not None
    assert talk.open_reply.text == "abcdefgh"


def test_a_tail_after_a_hole_says_that_something_is_missing() -> None:
    talk = applied([PINNED, turn()])

    talk.grow(Partial(1, 100, "end"))

    assert talk.open_reply is not None
    assert talk.open_reply.text == "…end"


def test_another_attempt_starts_the_reply_anew_and_an_old_one_is_ignored() -> None:
    talk = applied([PINNED, turn()])
    talk.grow(Partial(1, 0, "first try, long"))

    talk.grow(Partial(2, 0, "second"))
    talk.grow(Partial(1, 0, "first try, longer"))

    assert talk.open_reply is not None
    assert talk.open_reply.text == "second"


def test_a_reply_cut_off_by_a_cancel_keeps_what_had_come() -> None:
    talk = applied([PINNED, turn()])
    talk.grow(Partial(1, 0, "half a sen"))

    talk.apply(event(2, "turn_ended", turn=1, outcome="cancelled"))

    said = [e for e in talk.entries if isinstance(e, AgentSaid)]
    assert [(s.text, s.is_cut, s.is_open) for s in said] == [("half a sen", True, False)]


def test_a_state_older_than_the_events_does_not_turn_the_picture_back() -> None:
    talk = applied(WHOLE_TURN)

    talk.learn(TalkState(ID, "billing", "waiting", events=5, model="m:x"))

    assert (talk.status, talk.items) == ("idle", {})


def test_a_talk_is_current_only_when_all_known_events_are_applied() -> None:
    talk = Talk(ID)

    talk.learn(TalkState(ID, "billing", "idle", events=10))
    talk.apply(WHOLE_TURN[0])
    was_current = talk.is_current
    for each in WHOLE_TURN[1:]:
        talk.apply(each)

    assert (was_current, talk.is_current) == (False, True)


def test_ten_thousand_events_are_applied_in_a_moment() -> None:
    import time

    talk = Talk(ID)
    events = [PINNED]
    for n in range(5000):
        events.append(turn(2 * n + 1, f"message {n}", f"m{n}"))
        events.append(event(2 * n + 2, "assistant_message", turn=n, step=1, text="x", model="m"))
    start = time.perf_counter()

    for each in events:
        talk.apply(each)

    assert len(talk.entries) == 10001
    # A wide margin: it takes 0.05 s; quadratic work would take minutes.
    assert time.perf_counter() - start < 5


def test_arguments_are_kept_byte_for_byte() -> None:
    odd = json.dumps({"a": 1.0, "b": "\u202e\x1b[31m"}, ensure_ascii=False)
    talk = applied([PINNED])

    talk.apply(event(1, "tool_requested", call_id="c", tool="t.x", alias="x", arguments=odd,
                     verdict="ask", reason=""))  # fmt: skip

    card = talk.card("c")
    assert card is not None
    assert card.arguments == odd
