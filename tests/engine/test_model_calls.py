"""Models at other addresses and models in another one's place, asked over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from capuchin_yaml.compiler.load import compile_bytes
from capuchin_yaml.compiler.operator_config import LiveOperatorConfig
from capuchin_yaml.engine.agents import AgentTable, ServedAgent
from capuchin_yaml.engine.model_calls import ModelCalls
from capuchin_yaml.engine.scrub import Scrubber
from capuchin_yaml.errors import CapuchinError, ModelRejected, ModelUnavailable
from capuchin_yaml.messages import ModelReply, ModelRequest, UserMessage
from capuchin_yaml.models.adapter import ModelAdapter
from capuchin_yaml.policy.needs import grant_of, needs_of
from capuchin_yaml.spec import AgentSpec, ModelChoice
from tests.engine.house import open_house
from tests.models.fake_anthropic import FakeAnthropic, error, says

HEADERS = "ANTHROPIC_CUSTOM_HEADERS"


@pytest.fixture
def first() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        yield server


@pytest.fixture
def second() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        yield server


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-providers-own-key")
    monkeypatch.setenv("OUR_KEY", "the-key-of-our-own-model")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def spec_of(model: str) -> AgentSpec:
    text = f"apiVersion: capuchin/v1\nname: a\nprompt: Answer.\nmodel: {model}\n"
    spec = compile_bytes(text.encode(), Path("a.yaml")).spec
    assert spec is not None
    return spec


def granted(spec: AgentSpec, folder: Path) -> LiveOperatorConfig:
    grant = grant_of(spec.name, needs_of(spec))
    file = folder / "capuchin" / "config.yaml"
    file.parent.mkdir()
    trust = {"agent": grant.agent, "hash": grant.hash, "needs": list(grant.needs)}
    file.write_text(f"trust: [{json.dumps(trust)}]\n")
    return LiveOperatorConfig(file)


async def reply(
    spec: AgentSpec, operator: LiveOperatorConfig, scrubber: Scrubber | None = None
) -> tuple[str, ModelReply]:
    calls = ModelCalls(AgentTable({spec.name: ServedAgent(spec)}), operator, scrubber or Scrubber())

    async def ask(adapter: ModelAdapter, choice: ModelChoice) -> ModelReply:
        said = (UserMessage("m", "hello", "ann", "2026-11-30T12:00:00+00:00"),)
        name = choice.name.partition(":")[2]
        return await adapter.reply(ModelRequest(name, "", said), lambda text: None)

    try:
        assert spec.model is not None
        return await calls.reply(spec, spec.model, ask)
    finally:
        await calls.stop()


def pair(first: FakeAnthropic, second: FakeAnthropic) -> AgentSpec:
    return spec_of(
        f"{{name: 'anthropic:one', base_url: '{first.url}', "
        f"fallback: [{{name: 'anthropic:two', base_url: '{second.url}'}}]}}"
    )


@pytest.mark.parametrize(
    "failure",
    [
        error(529, "overloaded_error", "busy"),
        error(429, "rate_limit_error", "slow down"),
        error(500, "api_error", "oh"),
    ],
    ids=lambda answer: str(answer.status),
)
async def test_while_a_model_cannot_answer_the_next_one_does(
    first: FakeAnthropic, second: FakeAnthropic, tmp_path: Path, failure: object
) -> None:
    spec = pair(first, second)
    first.answers.append(failure)  # type: ignore[arg-type]  # by the cases above
    second.answers.append(says("from the second"))

    name, answer = await reply(spec, granted(spec, tmp_path))

    assert name == "anthropic:two"
    assert [getattr(block, "text", "") for block in answer.blocks] == ["from the second"]
    assert [r.body["model"] for r in (*first.received, *second.received)] == ["one", "two"]


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_what_a_model_refuses_nobody_else_is_asked(
    first: FakeAnthropic, second: FakeAnthropic, tmp_path: Path, status: int
) -> None:
    spec = pair(first, second)
    first.answers.append(error(status, "invalid_request_error", "no"))

    with pytest.raises(ModelRejected, match="no"):
        await reply(spec, granted(spec, tmp_path))

    assert second.received == []


async def test_when_none_answers_the_first_one_says_why(
    first: FakeAnthropic, second: FakeAnthropic, tmp_path: Path
) -> None:
    spec = pair(first, second)
    first.answers.append(error(529, "overloaded_error", "the first is busy"))
    second.answers.append(error(401, "authentication_error", "no key of mine"))

    with pytest.raises(ModelUnavailable, match="the first is busy"):
        await reply(spec, granted(spec, tmp_path))


async def test_a_model_whose_server_is_gone_is_passed_over(
    second: FakeAnthropic, tmp_path: Path
) -> None:
    with FakeAnthropic() as gone:
        spec = pair(gone, second)
    second.answers.append(says("here"))

    name, _ = await reply(spec, granted(spec, tmp_path))

    assert name == "anthropic:two"


async def test_an_address_that_nobody_granted_is_never_asked(
    first: FakeAnthropic, second: FakeAnthropic, tmp_path: Path
) -> None:
    spec = pair(first, second)

    with pytest.raises(CapuchinError, match="has not granted address"):
        await reply(spec, LiveOperatorConfig(tmp_path / "none.yaml"))

    assert first.received == second.received == []


async def test_no_key_of_the_provider_goes_to_an_address_of_the_agents_own(
    first: FakeAnthropic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HEADERS, "X-Proxy-Key: the-proxy-key")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "the-providers-own-token")
    spec = spec_of(f"{{name: 'anthropic:one', base_url: '{first.url}'}}")

    await reply(spec, granted(spec, tmp_path))

    sent = json.dumps(dict(first.received[0].headers))
    assert "the-providers-own" not in sent
    assert "the-proxy-key" not in sent


async def test_the_key_that_the_file_names_goes_there_and_is_scrubbed(
    first: FakeAnthropic, tmp_path: Path
) -> None:
    model = f"{{name: 'anthropic:one', base_url: '{first.url}', api_key: {{env: OUR_KEY}}}}"
    spec, scrubber = spec_of(model), Scrubber()

    await reply(spec, granted(spec, tmp_path), scrubber)

    assert "the-key-of-our-own-model" in json.dumps(dict(first.received[0].headers))
    assert scrubber.scrub("it is the-key-of-our-own-model") == "it is [secret OUR_KEY]"


async def test_a_key_granted_for_one_address_does_not_go_to_another(
    first: FakeAnthropic, second: FakeAnthropic, tmp_path: Path
) -> None:
    keyed = "{{name: 'anthropic:one', base_url: '{}', api_key: {{env: OUR_KEY}}}}"
    operator = granted(spec_of(keyed.format(first.url)), tmp_path)

    with pytest.raises(ModelRejected, match="has not granted"):
        await reply(spec_of(keyed.format(second.url)), operator)

    assert second.received == []


async def test_what_a_model_says_of_a_wrong_key_names_the_variable(
    first: FakeAnthropic, tmp_path: Path
) -> None:
    model = f"{{name: 'anthropic:one', base_url: '{first.url}', api_key: {{env: OUR_KEY}}}}"
    spec = spec_of(model)
    first.answers.append(error(401, "authentication_error", "wrong"))

    with pytest.raises(ModelRejected, match="set OUR_KEY to a valid key") as failed:
        await reply(spec, granted(spec, tmp_path))

    assert "ANTHROPIC_API_KEY" not in str(failed.value)


async def test_a_conversation_goes_on_with_the_fallback_and_names_it(
    temporal: Client, first: FakeAnthropic, second: FakeAnthropic, tmp_path: Path
) -> None:
    spec = pair(first, second)
    granted(spec, tmp_path)
    first.answers.append(error(529, "overloaded_error", "busy"))
    second.answers.append(says("from the second"))
    async with open_house(temporal, tmp_path) as house:
        house.agents.put(ServedAgent(spec))
        talk = await house.talk("a")
        await talk.until(lambda state: state["status"] == "idle" and state["entries"] == 2)
        events = await talk.events()

    [used] = [e for e in events if e["kind"] == "usage_recorded"]
    assert used["model"] == "anthropic:two"
    assert [r.body["model"] for r in second.received] == ["two"]
