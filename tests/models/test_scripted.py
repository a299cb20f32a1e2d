"""The scripted model: a stateless choice by the rules of a YAML file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from capuchin_yaml.errors import ModelRejected, ModelUnavailable
from capuchin_yaml.messages import Note, ReplyCall, TextBlock, Usage
from capuchin_yaml.models.registry import open_model
from capuchin_yaml.models.scripted import ScriptedModel
from tests.models.contract import AdapterContract, ask
from tests.models.talk import assistant, call, calls_of, request, result, text_of, user

CONTRACT = """
rules:
  - when: {user: 'order (A-\\d+)'}
    reply: {say: Looking., calls: [{tool: lookup_order, args: {order_id: $1}}]}
  - when: {tool: lookup_order}
    reply: {say: There it is.}
default: {say: 'You said to me: $user'}
"""


def scripted(tmp_path: Path, text: str) -> ScriptedModel:
    """A model of this script."""
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return ScriptedModel.open(str(path))


class TestContract(AdapterContract):
    """The scripted model does what every adapter does."""

    @pytest.fixture
    def adapter(self, tmp_path: Path) -> ScriptedModel:
        """A script that fits the contract."""
        return scripted(tmp_path, CONTRACT)


async def test_the_first_rule_that_fits_answers(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - {when: {user: HELLO}, reply: {say: one}}
          - {when: {user: hello}, reply: {say: two}}
        """,
    )

    assert text_of(await ask(model, request(user("well, hello")))) == "one"


async def test_a_user_rule_fits_only_while_nothing_newer_was_answered(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - {when: {user: go}, reply: {say: started}}
        default: {say: default}
        """,
    )
    after_result = request(user("go"), assistant(call(1)), result(1))
    after_note = request(user("go"), Note("the time is short"))

    assert text_of(await ask(model, after_result)) == "default"
    assert text_of(await ask(model, after_note)) == "started"


async def test_a_result_rule_fits_any_of_the_newest_results(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - {when: {tool: refund, result: 'too (\\w+)'}, reply: {say: 'It was too $1.'}}
          - {when: {status: denied}, reply: {say: denied}}
          - {when: {result: paid}, reply: {say: paid}}
        default: {say: default}
        """,
    )
    two = (user("go"), assistant(call(1), call(2, "refund")))
    expensive = result(2, "Denied: too expensive", "refund", "denied")

    async def says(*entries: object) -> str:
        return text_of(await ask(model, request(*entries)))  # type: ignore[arg-type]  # entries

    assert await says(*two, expensive, result(1, "paid")) == "It was too expensive."
    assert await says(*two, result(2, "No.", "refund", "denied"), result(1, "x")) == "denied"
    assert await says(*two, result(2, "fine", "refund"), result(1, "was PAID")) == "paid"
    assert await says(*two, expensive, result(1, "paid"), user("hello")) == "default"


async def test_notes_and_the_count_of_replies_can_choose_too(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - {when: {note: 'cut (off)'}, reply: {say: 'I was cut $1.'}}
          - {when: {replies: 2, user: hi}, reply: {say: third}}
        default: {say: default}
        """,
    )
    two = (user("hi"), assistant("1"), user("hi"), assistant("2"))

    assert text_of(await ask(model, request(user("hi"), Note("cut off")))) == "I was cut off."
    assert text_of(await ask(model, request(*two, user("hi")))) == "third"
    assert text_of(await ask(model, request(user("hi")))) == "default"


async def test_texts_and_arguments_are_filled_from_the_match(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        default: {say: '$user costs $$5, $1$x'}
        rules:
          - when: {user: '(\\w+)-(\\d+)(!)?'}
            reply:
              calls:
                - {tool: t, args: {all: ['$1/$2/$3', {deep: $user}], n: 5, $1: kept}}
        """,
    )

    assert text_of(await ask(model, request(user("it")))) == "it costs $5, $x"
    assert calls_of(await ask(model, request(user("A-7")))) == [
        ReplyCall("t", {"all": ["A/7/", {"deep": "A-7"}], "n": 5, "$1": "kept"})
    ]


async def test_calls_may_be_as_hostile_as_a_model(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        default:
          say: ''
          calls:
            - {tool: '', args: ''}
            - {tool: no such tool, args: '{"a": 1}'}
            - {tool: refund, args: []}
            - {tool: refund, args: null}
            - {tool: refund, args: 5}
            - {tool: refund}
          stop_reason: max_tokens
        """,
    )
    reply = await ask(model, request(user("go")))

    assert reply.blocks == (
        TextBlock(""),
        ReplyCall("", ""),
        ReplyCall("no such tool", '{"a": 1}'),
        ReplyCall("refund", []),
        ReplyCall("refund", None),
        ReplyCall("refund", 5),
        ReplyCall("refund", {}),
    )
    assert reply.stop_reason == "max_tokens"


async def test_a_reply_may_be_empty_or_blank_or_a_refusal(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - {when: {user: empty}, reply: {}}
          - {when: {user: blank}, reply: {say: ' '}}
          - {when: {user: refuse}, reply: {refuse: I will not.}}
        """,
    )
    empty = await ask(model, request(user("empty")))
    refusal = await ask(model, request(user("refuse")))

    assert (empty.blocks, empty.stop_reason) == ((), "end_turn")
    assert (await ask(model, request(user("blank")))).blocks == (TextBlock(" "),)
    assert (refusal.blocks, refusal.stop_reason) == ((TextBlock("I will not."),), "refusal")


async def test_a_script_without_a_fitting_rule_says_what_is_missing(tmp_path: Path) -> None:
    model = scripted(tmp_path, "rules: [{when: {user: x}, reply: {}}]")

    with pytest.raises(ModelRejected, match=r"the script has no reply for 'hello' after 0 replies"):
        await ask(model, request(user("hello")))


async def test_usage_is_what_the_script_says_or_an_estimate(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - when: {user: told}
            reply: {say: x, usage: {input_tokens: 3, cache_read_tokens: 4}}
        default: {say: twelve chars}
        """,
    )
    short = await ask(model, request(user("hi")))
    long = await ask(model, request(user("hi" * 400)))

    assert (await ask(model, request(user("told")))).usage == Usage(3, 0, 4, 0)
    assert short.usage.output_tokens == 3
    assert long.usage.input_tokens - short.usage.input_tokens == 200


async def test_failures_are_counted_and_then_the_rule_replies(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        """
        rules:
          - when: {user: busy}
            reply: {say: now, fail: {status: 429, retry_after_s: 2, times: 2}}
          - {when: {user: bad}, reply: {fail: {status: 400}}}
          - {when: {user: down}, reply: {fail: {}}}
        """,
    )
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="status 429") as failed:
            await ask(model, request(user("busy")))
        assert failed.value.retry_after_s == 2.0

    assert text_of(await ask(model, request(user("busy")))) == "now"
    for _ in range(3):
        with pytest.raises(ModelRejected, match="status 400"):
            await ask(model, request(user("bad")))
        with pytest.raises(ModelUnavailable, match="status 529"):
            await ask(model, request(user("down")))


async def test_a_slow_reply_can_be_cancelled(tmp_path: Path) -> None:
    model = scripted(tmp_path, "default: {say: one two three four five, stream_chunk_s: 3600}")
    heard = asyncio.Event()
    task = asyncio.create_task(model.reply(request(user("hi")), lambda _: heard.set()))
    await heard.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_delay_comes_before_the_first_word(tmp_path: Path) -> None:
    model = scripted(tmp_path, "default: {say: late, delay_s: 3600}")
    heard: list[str] = []
    task = asyncio.create_task(model.reply(request(user("hi")), heard.append))
    await asyncio.wait([task], timeout=0.02)
    task.cancel()

    assert heard == []


async def test_a_changed_script_is_read_again(tmp_path: Path) -> None:
    model = scripted(tmp_path, "default: {say: one, fail: {status: 500, times: 1}}")
    with pytest.raises(ModelUnavailable):
        await ask(model, request(user("hi")))
    path = tmp_path / "script.yaml"
    path.write_text("default: {say: two, fail: {status: 500, times: 1}}", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    with pytest.raises(ModelUnavailable):
        await ask(model, request(user("hi")))

    assert text_of(await ask(model, request(user("hi")))) == "two"
    path.unlink()
    with pytest.raises(ModelRejected, match="cannot read the script"):
        await ask(model, request(user("hi")))


def test_a_script_is_found_beside_the_agent_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    scripted(tmp_path / "in", "default: {}")

    for name, folder in (("in/script.yaml", tmp_path), ("script.yaml", tmp_path / "in")):
        assert isinstance(open_model(f"scripted:{name}", base_dir=folder), ScriptedModel)


@pytest.mark.parametrize("name", ["../script.yaml", "link.yaml", "{outside}"])
def test_an_agent_s_script_cannot_lie_outside_its_folder(tmp_path: Path, name: str) -> None:
    scripted(tmp_path, "default: {}")
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "script.yaml")
    name = name.replace("{outside}", str(tmp_path / "script.yaml"))

    with pytest.raises(ModelRejected, match="outside the agent's folder"):
        open_model(f"scripted:{name}", base_dir=folder)


def test_an_operator_s_script_may_be_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(tmp_path, "default: {}")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")

    for name in ("../script.yaml", str(tmp_path / "script.yaml")):
        assert isinstance(open_model(f"scripted:{name}"), ScriptedModel)
