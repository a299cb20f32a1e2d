"""Words and numbers that verbs share: times, durations, values, models, events."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from capuchin_yaml.cli.agents_file import KnownAgent, read_agents, write_agents
from capuchin_yaml.cli.answering_model import answering_model
from capuchin_yaml.cli.clock import distance, local_time, span
from capuchin_yaml.cli.durations import DURATION
from capuchin_yaml.cli.output import Output
from capuchin_yaml.cli.talk_text import print_event, reply_text, usage_json
from capuchin_yaml.cli.watch_files import code_files, marks
from capuchin_yaml.client.home import Home
from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.events import EVENT_TYPES, AssistantSaid, Event, UsageRecorded, decode
from capuchin_yaml.spec import VariableSpec

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("iso", "words"),
    [
        ("2026-11-30T11:59:30+00:00", "30s ago"),
        ("2026-11-30T11:57:00+00:00", "3m ago"),
        ("2026-11-30T14:30:00+00:00", "in 2h"),
        ("2026-11-25T12:00:00", "5d ago"),
        ("not a time", ""),
    ],
)
def test_distances_are_short(iso: str, words: str) -> None:
    assert distance(iso, NOW) == words


def test_what_is_no_time_is_shown_as_it_is() -> None:
    assert local_time("soon") == "soon"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0s"), (59, "59s"), (60, "1m"), (86400, "1d")]
)
def test_spans_use_their_largest_unit(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("1.5s", 1.5), ("5m", 300.0), ("1h30m", 5400.0)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "30", "s", "-5s", "5 s", "1m1h"])
def test_what_is_no_duration_is_wrong_usage(text: str) -> None:
    with pytest.raises(click.BadParameter, match="not a duration"):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("own", "environ", "name", "key"),
    [
        (None, {}, "rehearsal", None),
        ("rehearsal", {}, "rehearsal", None),
        ("anthropic:x", {}, "rehearsal", "ANTHROPIC_API_KEY"),
        ("anthropic:x", {"ANTHROPIC_API_KEY": " "}, "rehearsal", "ANTHROPIC_API_KEY"),
        ("anthropic:x", {"ANTHROPIC_API_KEY": "k"}, "anthropic:x", None),
        ("anthropic:x", {"CAPUCHIN_MODEL": "scripted:f"}, "scripted:f", None),
        ("anthropic:x", {"CAPUCHIN_MODEL": ""}, "rehearsal", "ANTHROPIC_API_KEY"),
    ],
)
def test_the_model_that_answers_follows_keys_and_force(
    own: str | None, environ: dict[str, str], name: str, key: str | None
) -> None:
    found = answering_model(own, environ)

    assert (found.name, found.key) == (name, key)
    assert bool(found.notice) is (key is not None)


def test_a_forced_model_of_no_provider_is_refused() -> None:
    with pytest.raises(ModelRejected):
        answering_model(None, {"CAPUCHIN_MODEL": "nobody:x"})


def test_agents_cross_to_other_terminals_whole(tmp_path: Path) -> None:
    home = Home.find(tmp_path).open(create=True)
    agent = KnownAgent(
        name="a",
        version="1.0.0",
        variables={"who": VariableSpec(type="integer", default=3, enum=(1, 3))},
        injected=("tenant",),
        problem="x",
    )

    write_agents(home, [agent])

    assert read_agents(home) == (agent,)


def test_a_damaged_list_of_agents_is_an_empty_one(tmp_path: Path) -> None:
    home = Home.find(tmp_path).open(create=True)
    home.write(home.agents_file, "{")

    assert read_agents(home) == ()


def test_marks_change_with_content_and_replacement(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    before = marks([file])
    other = tmp_path / "b.py"
    other.write_text("2")
    other.replace(file)

    assert marks([file]) != before
    assert marks([tmp_path / "gone"]) == {}


def test_code_is_every_module_of_a_package_and_no_cache(tmp_path: Path) -> None:
    for name in ("p/a.py", "p/sub/b.py", "p/__pycache__/c.py", "p/data.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    names = {file.name for file in code_files([tmp_path / "p"])}

    assert names == {"a.py", "b.py"}


def test_the_reply_is_the_agents_last_words() -> None:
    said = [_said("Looking."), _said("Done."), _said("  ")]

    assert reply_text(said) == "Done."
    assert reply_text([]) == ""


def test_usage_is_summed_by_class() -> None:
    one = UsageRecorded(
        offset=0,
        time="",
        model="m",
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
    )

    assert usage_json([one, one]) == {
        "input_tokens": 2,
        "output_tokens": 4,
        "cache_read_tokens": 6,
        "cache_write_tokens": 8,
        "models": ["m"],
    }


@pytest.mark.parametrize("kind", [cls.kind for cls in EVENT_TYPES] + ["of_a_later_release"])
def test_every_kind_of_event_is_printed_visibly(kind: str) -> None:
    evil = "a\x1b[2J\u202eb"
    out = io.StringIO()
    fields = {
        "kind": kind,
        "offset": 0,
        "time": evil,
        "item": {"id": evil, "title": evil},
        **dict.fromkeys(
            ("agent", "version", "definition_hash", "model", "message_id", "text", "by"), evil
        ),
        **dict.fromkeys(
            ("call_id", "tool", "alias", "arguments", "reason", "item_id", "limit", "detail"), evil
        ),
        **dict.fromkeys(("verdict", "item_kind", "choice", "status", "outcome"), evil),
        **dict.fromkeys(
            ("turn", "step", "value", "duration_s", "input_tokens", "output_tokens"), 1
        ),
        "cache_read_tokens": 1,
        "cache_write_tokens": 1,
        "previous_run_id": evil,
    }

    print_event(Output(out, None), decode(fields))

    assert not {"\x1b", "\u202e"} & set(out.getvalue())


def _said(text: str) -> Event:
    return AssistantSaid(offset=0, time="", turn=1, step=1, text=text, model="m")
