"""What each way of failing means: never again, or later. No secret reaches the words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from capuchin_yaml.errors import ModelRejected, ModelUnavailable

if TYPE_CHECKING:
    import anthropic

KEY_VARIABLE = "ANTHROPIC_API_KEY"
ADDRESS_VARIABLE = "ANTHROPIC_BASE_URL"
_RETRYABLE_STATUSES = (408, 409, 429)
_FINAL_TYPES = (
    "authentication_error",
    "invalid_request_error",
    "not_found_error",
    "permission_error",
    "request_too_large",
)
# Whole phrases: a message about a tool named `billing` is no message about a bill.
_UNPAID = re.compile(
    r"credit balance|out of credits?|purchase credits|insufficient (credits?|funds|quota|balance)"
    r"|(and|your) billing\b|billing (details|settings)|(current|monthly) quota"
    r"|spend(ing)? limit|usage limits?",
    re.IGNORECASE,
)
_UNPAID_CODE = re.compile(r"spend_limit|billing_unavailable|billing_not_authorized|not_billable")
_RATE = re.compile(r"per[ -](second|minute|hour|day)|rate limit", re.IGNORECASE)
_ADVICE: Mapping[int, str] = {
    **dict.fromkeys((301, 302, 303, 307, 308), f"check {ADDRESS_VARIABLE}"),
    401: f"set {KEY_VARIABLE} to a valid key",
    403: f"the key in {KEY_VARIABLE} may not do this; set one that may",
    404: f"check the model's name in the agent file, and {ADDRESS_VARIABLE} if it is set",
    413: "the conversation has grown too long for the provider; start a new one",
}
_UNPAID_ADVICE = f"look at the plan and billing of the account behind {KEY_VARIABLE}"
_MOST_WORDS = 1000
_SHORTEST_SECRET = 4


def failure_of(
    error: BaseException,
    *,
    address: str,
    secrets: Sequence[str],
    key_variable: str = KEY_VARIABLE,
    address_name: str = ADDRESS_VARIABLE,
) -> ModelRejected | ModelUnavailable:
    """What an error of the SDK or its HTTP client means to us.

    The result holds neither the error nor its text unscrubbed: it may quote the request's headers.
    """
    import anthropic
    import httpx2

    kept = tuple(s for s in secrets if len(s) >= _SHORTEST_SECRET)
    words = _Words(address, kept, key_variable, address_name)
    match error:
        case anthropic.APIStatusError():
            return _of_status(error, words)
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return ModelUnavailable(words.say(f"no answer from {address} in time"))
        case anthropic.APIConnectionError():
            return _of_connection(error.__cause__ or error, words)
        case httpx2.InvalidURL() | httpx2.HTTPError():
            return _of_connection(error, words)
        case json.JSONDecodeError() | UnicodeDecodeError():
            return ModelUnavailable(words.say("the stream was garbled"))
        case UnicodeEncodeError():
            return ModelRejected(words.say("the request holds text that is not valid UTF-8"))
        case _:
            return ModelUnavailable(words.say(f"{type(error).__name__}: {error}"))


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """The pause the provider asks for: `retry-after-ms`, or `retry-after` as seconds or date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    until = _date(text)
    if until is None:
        return None
    # Why: the provider's date is by the provider's clock, which its own `date` header shows.
    return max(0.0, (until - (_date(headers.get("date")) or now)).total_seconds())


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """The text without any of the secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return text


class _Words:
    """Makes the sentences of failures."""

    def __init__(
        self, address: str, secrets: Sequence[str], key_variable: str, address_name: str
    ) -> None:
        self._address = address
        self._secrets = secrets
        self._key_variable = key_variable
        self._address_name = address_name

    def say(self, sentence: str, advice: str = "") -> str:
        text = scrubbed(f"anthropic: {sentence}", self._secrets)
        if len(text) > _MOST_WORDS:
            text = text[: _MOST_WORDS - 1] + "…"
        advice = advice.replace(ADDRESS_VARIABLE, self._address_name)
        advice = advice.replace(KEY_VARIABLE, self._key_variable or "the key of model.api_key")
        return f"{text}; {advice}" if advice else text

    @property
    def address(self) -> str:
        return self._address


def _of_status(error: anthropic.APIStatusError, words: _Words) -> ModelRejected | ModelUnavailable:
    # Something between us and the provider may answer in its place, in any shape.
    status, kind = error.status_code, error.type if isinstance(error.type, str) else ""
    told = error.api_message if isinstance(error.api_message, str) else _body_text(error.body)
    told = told.strip() or "no reason given"
    known_as = f" ({error.request_id})" if error.request_id else ""
    sentence = f"{status} {kind}".strip() + f": {told.rstrip('.')}{known_as}"
    if _unpaid(status, kind, error.error_code or "", told):
        return ModelRejected(words.say(sentence, _UNPAID_ADVICE))
    if _may_pass(status, kind):
        return ModelUnavailable(
            words.say(sentence), retry_after_s(error.response.headers, datetime.now(UTC))
        )
    return ModelRejected(words.say(sentence, _ADVICE.get(status, "")))


def _may_pass(status: int, kind: str) -> bool:
    if status < 300:
        # A failure in the middle of a stream: the status was sent before it, only its type speaks.
        return kind not in _FINAL_TYPES
    return status in _RETRYABLE_STATUSES or status >= 500


def _unpaid(status: int, kind: str, code: str, told: str) -> bool:
    if status == 402 or kind == "billing_error" or _UNPAID_CODE.search(code):
        return True
    if status >= 500 or kind in ("api_error", "overloaded_error"):
        return False
    return bool(_UNPAID.search(told)) and not _RATE.search(told)


def _of_connection(error: BaseException, words: _Words) -> ModelRejected | ModelUnavailable:
    import httpx2

    told = str(error) or type(error).__name__
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return ModelRejected(
            words.say(f"{words.address} is no address: {told}", f"check {ADDRESS_VARIABLE}")
        )
    if isinstance(error, httpx2.LocalProtocolError | UnicodeEncodeError):
        return ModelRejected(
            words.say("the request cannot be sent as HTTP", f"check {KEY_VARIABLE}")
        )
    return ModelUnavailable(words.say(f"the connection to {words.address} failed: {told}"))


def _body_text(body: object) -> str:
    if isinstance(body, str):
        return " ".join(re.sub(r"<[^>]*>", " ", body).split())[:200]
    return json.dumps(body, default=str)[:200] if body else ""


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    if value is None or not math.isfinite(value):
        return None
    return max(0.0, value)


def _date(text: str | None) -> datetime | None:
    try:
        value = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    if value is not None and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
