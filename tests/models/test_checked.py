"""What a talk has passed is not checked again, and nobody can tell by the outcome."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.messages import (
    AssistantMessage,
    Block,
    CallBlock,
    ModelRequest,
    ToolResult,
    TranscriptEntry,
)
from capuchin_yaml.models import checked
from capuchin_yaml.models.anthropic_wire import request_body
from capuchin_yaml.models.checked import CheckedRequests
from tests.models.talk import SHOP, assistant, call, request, result, user
from tests.models.test_dialogue import transcripts


def whole_size(asked: ModelRequest) -> int:
    """The size of the body that is sent."""
    return len(json.dumps(request_body(asked, provider="scripted"), default=str))


def numbered(entries: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """The same with calls numbered as the engine does it, each once."""
    out: list[TranscriptEntry] = []
    ids: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, AssistantMessage):
            blocks: list[Block] = []
            for block in entry.blocks:
                if isinstance(block, CallBlock):
                    ids[block.call_id] = f"demo:{len(out)}{len(blocks)}"
                    block = replace(block, call_id=ids[block.call_id])
                blocks.append(block)
            entry = replace(entry, blocks=tuple(blocks))
        elif isinstance(entry, ToolResult):
            entry = replace(entry, call_id=ids.get(entry.call_id, entry.call_id))
        out.append(entry)
    return out


@given(st.lists(transcripts(), min_size=1, max_size=4), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_a_talk_that_grows_is_measured_as_if_it_were_whole(
    parts: list[list[TranscriptEntry]], step: int
) -> None:
    entries = numbered([e for part in parts for e in part])
    requests = CheckedRequests("scripted")

    for end in range(0, len(entries) + 1, step):
        asked = ModelRequest("m", "Be kind.", tuple(entries[:end]), SHOP, conversation="talk")
        assert requests.size(asked) == whole_size(asked)


def test_only_what_is_new_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(asked: ModelRequest, *, provider: str) -> object:
        seen.append(len(asked.entries))
        return request_body(asked, provider=provider)

    monkeypatch.setattr(checked, "request_body", counting)
    requests = CheckedRequests("scripted")
    entries: list[TranscriptEntry] = []
    for n in range(200):
        entries += [user(f"message {n}")]
        requests.size(replace(request(*entries), conversation="talk"))
        entries += [assistant(call(n)), result(n), assistant("done")]

    assert max(seen) <= 5


def test_what_breaks_a_rule_is_refused_however_much_was_passed_before() -> None:
    requests = CheckedRequests("scripted")
    fine = replace(request(user("hello"), assistant("hi"), user("and?")), conversation="talk")
    requests.size(fine)

    with pytest.raises(ModelRejected, match="max_tokens"):
        requests.size(replace(fine, max_tokens=0))
    requests.size(fine)


def test_another_talk_under_the_same_name_is_looked_at_from_its_beginning() -> None:
    requests = CheckedRequests("scripted")
    first: list[TranscriptEntry] = [user("hello"), assistant("hi"), user("and?")]
    other: list[TranscriptEntry] = [user("a longer hello"), assistant("hi"), user("and?")]
    requests.size(replace(request(*first), conversation="talk"))
    asked = replace(request(*other), conversation="talk")

    assert requests.size(asked) == whole_size(asked)
