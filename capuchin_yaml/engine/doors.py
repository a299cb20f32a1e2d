"""What the doors of a conversation refuse, before anything is accepted.

Pure checks; each raises `ApplicationError` of type `Refused` (or `RollingOver`), which the
server turns into a clean rejection that leaves no trace in history.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

from temporalio.exceptions import ApplicationError

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.state import size_bytes
from capuchin_yaml.items import CHOICES

R = TypeVar("R", bound=contract.Request)

MAX_NAME_BYTES = 256
MAX_ID_BYTES = 128


def refuse(message: str, kind: str = contract.REFUSED) -> NoReturn:
    """Reject with a sentence for a person."""
    raise ApplicationError(message, type=kind, non_retryable=True)


def read_start(given: tuple[Any, ...]) -> contract.StartConversation:
    """Return the start, or `NO_START` for whatever is not exactly one; never raises."""
    if len(given) != 1 or not isinstance(given[0], dict):
        return contract.NO_START
    known = {f.name for f in dataclasses.fields(contract.StartConversation)}
    value = {k: v for k, v in given[0].items() if k in known}
    texts = (
        "conversation",
        "id",
        "by",
        "client",
        "sent_at",
        "agent",
        "project",
        "first_run_id",
        "reopens",
    )
    maps = ("variables", "injected")
    try:
        start = contract.StartConversation(**value)
    except TypeError:
        return contract.NO_START
    if all(isinstance(getattr(start, n), str) for n in texts) and all(
        isinstance(getattr(start, n), dict) for n in maps
    ):
        return start
    return contract.NO_START


def check_start(
    start: contract.StartConversation, workflow_id: str, first_run_id: str, started: datetime
) -> None:
    """Refuse a start that is not sealed, not for this id and chain, or too old.

    Raises:
        ApplicationError: type `Refused`; the workflow fails with it.
    """
    if start is contract.NO_START:
        refuse("this conversation was started by somebody without the project's key")
    if start.conversation != workflow_id:
        refuse(f"the start belongs to {start.conversation!r}, not to {workflow_id!r}")
    if start.carried is None:
        if start.first_run_id:
            refuse("a first run names no earlier run")
        _check_age(start, started)
        for name in ("id", "by", "client", "agent", "project", "reopens"):
            blank = name in ("by", "client", "reopens")
            _check_text(name, getattr(start, name), MAX_NAME_BYTES, blank=blank)
        for name in ("variables", "injected"):
            _check_start_values(name, getattr(start, name))
    elif start.first_run_id != first_run_id:
        refuse("the carried state belongs to another chain of runs")


def check_request(request: Any, expected: type[R], workflow_id: str, now: datetime) -> R:
    """Return the request when it is sealed, whole, for this conversation and fresh.

    Raises:
        ApplicationError: type `Refused`.
    """
    if isinstance(request, contract.Unsealed):
        refuse("the request does not carry the project's seal")
    if not isinstance(request, expected):
        refuse(f"expected one {expected.__name__}, got {type(request).__name__}")
    for name in ("conversation", "id", "by", "client", "sent_at"):
        _check_text(name, getattr(request, name), MAX_NAME_BYTES, blank=name in ("by", "client"))
    if len(request.id.encode()) > MAX_ID_BYTES:
        refuse(f"the request's id is over {MAX_ID_BYTES} bytes")
    if request.conversation != workflow_id:
        refuse(f"the request is for {request.conversation!r}, not for {workflow_id!r}")
    _check_age(request, now)
    return request


def check_message(request: contract.SendMessage) -> None:
    """Refuse a blank, oversized or broken message."""
    _check_text("text", request.text, contract.MAX_MESSAGE_BYTES)


def check_decision(
    request: contract.Decide,
    item: dict[str, Any] | None,
    decided: dict[str, Any] | None,
    now: datetime,
) -> None:
    """Refuse a decision about no item, about another revision, or that the item does not offer."""
    for name in ("item", "digest", "choice"):
        _check_text(name, getattr(request, name), MAX_NAME_BYTES)
    _check_text("reason", request.reason, contract.MAX_REASON_BYTES, blank=True)
    _check_text("result", request.result, contract.MAX_RESULT_BYTES, blank=True)
    _check_text("signature", request.signature, contract.MAX_SIGNATURE_BYTES, blank=True)
    if item is None:
        if decided is None:
            refuse(f"no item {request.item!r} waits in this conversation")
        return
    offered = CHOICES[item["kind"]]
    if request.choice not in offered:
        refuse(f"{request.choice!r} is no answer to this item; choose {' or '.join(offered)}")
    if request.digest != item["digest"]:
        refuse(
            f"{request.item} is not what was shown: it is now revision {item['revision']} "
            f"with digest {item['digest'][:12]}; look at it again"
        )
    _check_edit(request)
    _check_grant(request, item, now)


def check_name(name: str, value: Any) -> None:
    """Refuse a name of something that is blank, broken or too long."""
    _check_text(name, value, MAX_NAME_BYTES)


def _check_edit(request: contract.Decide) -> None:
    if request.choice != "edit":
        if request.arguments:
            refuse("only the choice edit takes arguments")
        return
    _check_text("arguments", request.arguments, contract.MAX_EDIT_BYTES)
    try:
        value = json.loads(request.arguments)
    except (ValueError, RecursionError) as error:
        refuse(f"the arguments are no JSON: {error}")
    if not isinstance(value, dict):
        refuse("the arguments must be a JSON object")


def _check_grant(request: contract.Decide, item: dict[str, Any], now: datetime) -> None:
    grant: Any = request.grant
    if grant is None:
        return
    if item.get("quorum", 1) > 1 or item.get("exclude"):
        refuse("a call that several people look at cannot be allowed beforehand; approve it once")
    if request.choice != "approve" or item["kind"] != "approval":
        refuse("only an approve of a call may allow more than this once")
    if not isinstance(grant, dict) or grant.get("scope") not in ("call", "tool"):
        refuse("a grant has the scope call or tool")
    if set(grant) - {"scope", "times", "until"}:
        refuse("a grant has no other keys than scope, times and until")
    times, until = grant.get("times"), grant.get("until")
    if times is None and until is None:
        refuse("a grant ends after a number of times or at a time; give one of them")
    if times is not None and not (
        isinstance(times, int)
        and not isinstance(times, bool)
        and 1 <= times <= contract.MAX_GRANT_TIMES
    ):
        refuse(f"a grant is for 1 to {contract.MAX_GRANT_TIMES} times")
    if until is not None:
        try:
            later = datetime.fromisoformat(until) > now
        except (ValueError, TypeError):
            refuse("a grant ends at a time with a zone")
        if not later:
            refuse("a grant must end later than now")


def check_process(process: Any) -> None:
    """Refuse what names no process; none at all is fine."""
    _check_text("process", process, MAX_NAME_BYTES, blank=True)


def check_title(title: str) -> None:
    """Refuse a title that is blank, too long, or more than one line of text."""
    _check_text("the title", title, contract.MAX_TITLE_BYTES)
    if not title.isprintable() or title != title.strip():
        refuse("a title is one line of text, without control characters or blanks around it")


def check_reason(reason: str) -> None:
    """Refuse an oversized or broken reason; a blank one is fine."""
    _check_text("reason", reason, contract.MAX_REASON_BYTES, blank=True)


def check_late(request: contract.LateResult) -> None:
    """Refuse a late result that is not whole."""
    for name in ("call_id", "digest", "status"):
        _check_text(name, getattr(request, name), MAX_NAME_BYTES)
    _check_text("text", request.text, contract.MAX_RESULT_BYTES + 4096, blank=True)
    for name in ("artifacts", "receipt"):
        value = getattr(request, name)
        if value is not None and not isinstance(value, dict):
            refuse(f"{name} must be an object")
        if size_bytes(value) > contract.MAX_RECEIPT_BYTES:
            refuse(f"{name} is over {contract.MAX_RECEIPT_BYTES // 1024} KB")
    if request.status not in ("ok", "error", "ended"):
        refuse(f"status {request.status!r} is neither ok, error nor ended")


def _check_start_values(name: str, values: Any) -> None:
    try:
        size = size_bytes(values)
    except (ValueError, RecursionError) as error:
        refuse(f"{name} are no JSON: {error}")
    if size > contract.MAX_START_BYTES:
        refuse(f"{name} are over {contract.MAX_START_BYTES // 1024} KB")


def _check_age(request: contract.Request, now: datetime) -> None:
    try:
        sent = datetime.fromisoformat(request.sent_at)
        age = now - sent
    except (ValueError, TypeError):
        refuse(f"sent_at {str(request.sent_at)[:40]!r} is not a time with a zone")
    if abs(age) > timedelta(seconds=contract.REQUEST_AGE_S):
        refuse(
            f"the request was made at {request.sent_at}, and it is {now.isoformat()} here; "
            "set the clock of the machine that sent it"
        )


def _check_text(name: str, value: Any, limit: int, *, blank: bool = False) -> None:
    if not isinstance(value, str):
        refuse(f"{name} must be text, not {type(value).__name__}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        refuse(f"{name} holds half of a surrogate pair")
    if size > limit:
        refuse(f"{name} has {size} bytes; the most is {limit}")
    if not blank and not value.strip():
        refuse(f"{name} is blank")
