"""Requests: checked before they leave, repeated until they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client import requests
from capuchin_yaml.client.link import Link
from capuchin_yaml.client.requests import (
    checked_message,
    checked_text,
    checked_values,
    deliver,
    envelope,
    insist,
    sealed,
)
from capuchin_yaml.engine import contract
from capuchin_yaml.errors import (
    ConversationNotFound,
    NotSent,
    RequestRefused,
    ServerUnavailable,
    UnsafeState,
)


@pytest.fixture
def link(temporal: Client) -> Link:
    return Link(temporal, "shop", "test@here")


def message(link: Link) -> contract.SendMessage:
    return contract.SendMessage(**envelope(link, "shop.billing-000000", "m", "ann"), text="hello")


class Attempts:
    """Raises what it is given, one after the other, and then answers."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.made = 0

    async def __call__(self, timeout: timedelta) -> Any:
        self.made += 1
        if self._errors:
            raise self._errors.pop(0)
        return {"accepted": True}


def rpc(status: RPCStatusCode) -> RPCError:
    return RPCError("no luck", status, b"")


def rejection(kind: str, text: str = "no") -> WorkflowUpdateFailedError:
    return WorkflowUpdateFailedError(ApplicationError(text, type=kind, non_retryable=True))


# checks before sending


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u3000"])
def test_a_blank_message_is_not_sent(text: str) -> None:
    with pytest.raises(RequestRefused, match="the message is blank"):
        checked_message(text)


def test_a_message_is_measured_in_bytes() -> None:
    assert checked_message("é" * (contract.MAX_MESSAGE_BYTES // 2))
    with pytest.raises(RequestRefused, match=r"262,146 bytes; the most is 262,144"):
        checked_message("é" * (contract.MAX_MESSAGE_BYTES // 2 + 1))


def test_half_a_character_is_refused_where_it_stands() -> None:
    with pytest.raises(RequestRefused, match=r"lone surrogate.* position 3"):
        checked_message("abc\ud83d")


def test_a_reason_may_be_blank() -> None:
    assert checked_text("the reason", "", 10, may_be_blank=True) == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", object(), {1, 2}])
def test_start_values_that_are_no_json_are_refused(value: object) -> None:
    with pytest.raises(RequestRefused, match="the variables cannot be written as JSON"):
        checked_values("the variables", {"x": value})


def test_start_values_are_bounded() -> None:
    with pytest.raises(RequestRefused, match="the most is 65,536"):
        checked_values("the variables", {"x": "y" * 70_000})


def test_a_request_says_who_when_and_from_where(link: Link) -> None:
    fields = envelope(link, "shop.billing-000000", "m", "ann")

    assert fields["by"] == "ann"
    assert fields["client"] == "test@here"
    assert fields["id"].startswith("m-")
    age = datetime.now(UTC) - datetime.fromisoformat(fields["sent_at"])
    assert timedelta() <= age < timedelta(seconds=5)


@pytest.mark.parametrize("request_id", ["", " ", "x" * 129])
def test_an_own_id_must_be_usable(link: Link, request_id: str) -> None:
    with pytest.raises(RequestRefused, match="the message id"):
        envelope(link, "shop.billing-000000", "m", "ann", request_id)


# repeating


@pytest.mark.parametrize(
    "error",
    [
        lambda: rpc(RPCStatusCode.UNAVAILABLE),
        lambda: rpc(RPCStatusCode.DEADLINE_EXCEEDED),
        lambda: rpc(RPCStatusCode.RESOURCE_EXHAUSTED),
        lambda: rpc(RPCStatusCode.UNKNOWN),
        lambda: rejection(contract.ROLLING_OVER),
        WorkflowUpdateRPCTimeoutOrCancelledError,
    ],
)
async def test_what_may_pass_is_repeated(link: Link, error: Callable[[], BaseException]) -> None:
    attempt = Attempts(error(), error(), error())

    answer = await insist(link, message(link), attempt)

    assert answer == {"accepted": True}
    assert attempt.made == 4


async def test_a_refusal_is_not_repeated(link: Link) -> None:
    attempt = Attempts(rejection(contract.REFUSED, "text is blank"))

    with pytest.raises(RequestRefused, match="text is blank"):
        await insist(link, message(link), attempt)

    assert attempt.made == 1


async def test_bad_credentials_are_not_repeated(link: Link) -> None:
    attempt = Attempts(rpc(RPCStatusCode.UNAUTHENTICATED))

    with pytest.raises(ServerUnavailable, match="refuses these credentials"):
        await insist(link, message(link), attempt)

    assert attempt.made == 1


async def test_what_nobody_confirms_is_said_to_be_not_sent(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "PATIENCE_S", 0.2)
    attempt = Attempts(*[rpc(RPCStatusCode.UNAVAILABLE)] * 50)
    sent = message(link)

    with pytest.raises(NotSent, match=f"not sent: .*no luck.*{sent.id}"):
        await insist(link, sent, attempt)

    assert 2 < attempt.made < 10


async def test_a_cancelled_caller_is_cancelled_at_once(link: Link) -> None:
    async def attempt(timeout: timedelta) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            # As the SDK does for updates.
            raise WorkflowUpdateRPCTimeoutOrCancelledError from error

    task = asyncio.create_task(insist(link, message(link), attempt))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)


async def test_a_conversation_that_does_not_exist_is_named(link: Link) -> None:
    with pytest.raises(ConversationNotFound, match="'billing-000000' in project 'shop'"):
        await deliver(link, contract.SEND_MESSAGE, message(link))


def test_an_answer_without_the_seal_is_not_believed() -> None:
    with pytest.raises(UnsafeState, match="CAPUCHIN_KEY_FILE"):
        sealed(contract.Unsealed())
