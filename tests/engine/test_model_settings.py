"""What an agent's file says of its model reaches the model, and only that one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from capuchin_yaml.engine import activities
from capuchin_yaml.engine.agents import AgentTable
from capuchin_yaml.engine.model_calls import choices
from capuchin_yaml.engine.pauses import PauseBook
from capuchin_yaml.errors import ModelUnavailable
from capuchin_yaml.messages import ModelReply, ModelRequest, UserMessage
from capuchin_yaml.models.anthropic_wire import request_body
from capuchin_yaml.models.rules import check_request
from capuchin_yaml.spec import AgentSpec, ModelSettings
from capuchin_yaml.tools.registry import Registry

SETTINGS = ModelSettings(max_tokens=8000, thinking_tokens=2000, timeout_s=0.05)
SPEC = AgentSpec(name="a", prompt="p", model="anthropic:x", model_settings=SETTINGS)


def question(**settings: object) -> ModelRequest:
    said = (UserMessage("m", "hello", "ann", "2026-11-30T12:00:00+00:00"),)
    return ModelRequest("x", "", said, **settings)  # type: ignore[arg-type]  # by the cases below


@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 0.5}, {"max_tokens": 8000, "thinking_tokens": 2000}, {"temperature": 0.0}],
)
def test_the_provider_accepts_what_the_settings_become(settings: dict[str, object]) -> None:
    body = request_body(question(**settings), provider="anthropic")

    check_request(body)

    assert body.get("temperature") == settings.get("temperature")
    assert ("thinking" in body) is ("thinking_tokens" in settings)


def test_another_model_is_asked_without_them() -> None:
    assert [c.settings for c in choices(SPEC, "anthropic:x")] == [SETTINGS]
    assert [c.settings for c in choices(SPEC, "rehearsal")] == [ModelSettings()]


def test_a_spec_without_settings_keeps_its_form() -> None:
    plain = AgentSpec(name="a", prompt="p")

    assert "model_settings" not in plain.to_json()
    assert AgentSpec.from_json(SPEC.to_json()) == SPEC


class Slow:
    """A model that never ends."""

    async def reply(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_reply_that_takes_too_long_is_given_up_and_may_be_asked_for_again(
    temporal: Client, tmp_path: Path
) -> None:
    room = activities.Activities(
        temporal,
        AgentTable(),
        Registry.installed(),
        activities.ModelSettings(),
        PauseBook(temporal),
    )

    with pytest.raises(ModelUnavailable, match="no whole answer within"):
        await ActivityEnvironment().run(room._in_time, Slow(), question(), SETTINGS.timeout_s)
