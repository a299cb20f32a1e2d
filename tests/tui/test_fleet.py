"""Lists, inbox and link as the screens show them."""

from __future__ import annotations

import dataclasses

from capuchin_yaml.tui.gateway import Health, InboxRow, TalkRow
from capuchin_yaml.tui.model.fleet import Fleet
from capuchin_yaml.tui.model.outbox import Outbox, refusal


def talk_row(id: str, status: str, *, waiting: int = 0, at: str = "2026-11-30T12:00") -> TalkRow:
    return TalkRow(id, "billing", status, waiting, f"title of {id}", at, at)


def inbox_row(id: str, due: str | None, at: str = "2026-11-30T12:00") -> InboxRow:
    return InboxRow(id, "approval", "c", "billing", "refund", at, due, "deny")


def test_what_wants_a_person_comes_first_then_the_newest() -> None:
    fleet = Fleet()
    fleet.set_rows(
        [
            talk_row("closed", "closed"),
            talk_row("old", "idle", at="2026-11-29T12:00"),
            talk_row("new", "idle"),
            talk_row("busy", "thinking"),
            talk_row("broken", "failed"),
            talk_row("asks", "idle", waiting=1),
        ]
    )

    assert [r.id for r in fleet.ordered()] == ["asks", "broken", "busy", "new", "old", "closed"]


def test_the_filter_finds_words_anywhere() -> None:
    fleet = Fleet()
    fleet.set_rows([talk_row("a1", "idle"), talk_row("b2", "thinking")])

    assert [r.id for r in fleet.ordered("thinking billing")] == ["b2"]
    assert fleet.ordered("nothing") == []


def test_the_inbox_puts_the_nearest_deadline_first_then_the_longest_wait() -> None:
    fleet = Fleet()
    fleet.set_inbox(
        [
            inbox_row("late", None, "2026-11-30T11:00"),
            inbox_row("never", None, "2026-11-30T10:00"),
            inbox_row("tomorrow", "2026-12-01T12:00"),
            inbox_row("soon", "2026-11-30T12:30"),
        ]
    )

    assert [r.id for r in fleet.waiting()] == ["soon", "tomorrow", "never", "late"]


def test_the_same_list_again_is_no_change() -> None:
    fleet = Fleet()

    assert fleet.set_rows([talk_row("a", "idle")])
    assert not fleet.set_rows([talk_row("a", "idle")])


def test_the_link_counts_attempts_and_keeps_since_when_it_is_down() -> None:
    fleet = Fleet()
    fleet.note_health(Health(True, 1), "", 10.0)

    fleet.note_health(None, "refused", 11.0)
    fleet.note_health(Health(False, 0, "refused"), "", 12.0)

    assert (fleet.link.state, fleet.link.attempt, fleet.link.since) == ("down", 2, 11.0)
    assert fleet.hold == "the server is away"
    fleet.note_health(Health(True, 1), "", 13.0)
    assert (fleet.link.state, fleet.hold) == ("up", "")


def test_messages_wait_while_no_worker_runs() -> None:
    fleet = Fleet()

    fleet.note_health(Health(True, 0), "", 1.0)
    assert fleet.hold == "no worker is running"
    fleet.note_health(Health(True, None), "", 1.0)
    assert fleet.hold == ""
    fleet.workerless.add("c")

    assert fleet.hold == "no worker is running"


def test_a_message_is_sent_once_and_none_is_dropped() -> None:
    outbox = Outbox()
    outbox.add("1", "c", "one", hold="the server is away")
    outbox.add("2", "c", "two", hold="the server is away")
    outbox.add("3", "d", "three")

    assert [p.id for p in outbox.release()] == ["1", "2"]
    assert outbox.release() == []
    assert [p.state for p in outbox.of("c")] == ["sending", "sending"]
    outbox.seen("1")
    outbox.set("2", "unsent", "refused")

    assert [(p.text, p.state) for p in outbox.of("c")] == [("two", "unsent")]


def test_only_a_message_that_has_not_gone_out_can_be_taken_back() -> None:
    outbox = Outbox()
    outbox.add("1", "c", "gone")
    outbox.add("2", "c", "held", hold="the server is away")

    taken = outbox.take_back("c")

    assert taken is not None
    assert taken.text == "held"
    assert outbox.id_again("c", "held, but changed") is None
    assert outbox.id_again("c", "held") == "2"
    assert outbox.take_back("c") is None
    assert dataclasses.asdict(outbox.pending[0])["text"] == "gone"


def test_a_blank_or_too_long_message_is_refused_in_words() -> None:
    assert refusal(" \n\t") == "nothing to send"
    assert refusal("x" * (256 * 1024)) is None
    assert "256 KB" in (refusal("x" * (256 * 1024 + 1)) or "")
