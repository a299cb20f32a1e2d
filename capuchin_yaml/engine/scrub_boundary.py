"""Where activities end: what they answer, raise and beat passes the scrubber, whoever wrote it."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.exceptions import ApplicationError, FailureError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from capuchin_yaml.engine import contract
from capuchin_yaml.engine.scrub import Scrubber

_FROM_HISTORY = frozenset({contract.PIN_DEFINITION, contract.JUDGE})
"""Activities that answer with what files and history hold already, bound by digests: their
answers stay as they are. Their errors are scrubbed like all others."""
_HOUSE = frozenset(
    {"kind", "type", "status", "stop_reason", "model", "call_id", "tool", "provider", "hash"}
)
_FOREIGN = frozenset({"input", "data", "receipt"})
MAX_CAUSES = 20


class ScrubBoundary(Interceptor):
    """Scrubs results, errors with their causes, and heartbeat details of every activity."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Put the scrubber between an activity and the SDK."""
        return _Inbound(next, self._scrubber)


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, scrubber: Scrubber) -> None:
        super().__init__(next)
        self._scrubber = scrubber

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self._scrubber))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        from temporalio import activity

        try:
            answer = await super().execute_activity(input)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            clean = scrubbed_error(error, self._scrubber)
            if clean is error:
                raise
            raise clean from clean.__cause__
        if activity.info().activity_type in _FROM_HISTORY:
            return answer
        return self._scrubber.scrub_json(answer, house=_HOUSE, foreign=_FOREIGN)


class _Outbound(ActivityOutboundInterceptor):
    def __init__(self, next: ActivityOutboundInterceptor, scrubber: Scrubber) -> None:
        super().__init__(next)
        self._scrubber = scrubber

    def heartbeat(self, *details: Any) -> None:
        super().heartbeat(*(self._scrubber.scrub_json(d) for d in details))


def scrubbed_error(error: BaseException, scrubber: Scrubber) -> BaseException:
    """Return the error itself when nothing in it or its causes is secret, else a clean copy."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and len(chain) < MAX_CAUSES:
        chain.append(cause)
    if cause is None and all(_is_clean(one, scrubber) for one in chain):
        return error
    clean: BaseException | None = None
    for one in reversed(chain):
        copy = _copy(one, scrubber)
        copy.__cause__ = clean
        copy.__suppress_context__ = True
        clean = copy
    assert clean is not None
    return clean


def _is_clean(error: BaseException, scrubber: Scrubber) -> bool:
    text = str(error)
    if scrubber.scrub(text) != text:
        return False
    if not isinstance(error, ApplicationError):
        return True
    details = list(error.details)
    return scrubber.scrub_json(details) is details


def _copy(error: BaseException, scrubber: Scrubber) -> BaseException:
    if isinstance(error, ApplicationError):
        copy = ApplicationError(
            scrubber.scrub(error.message),
            *(scrubber.scrub_json(d) for d in error.details),
            type=error.type,
            non_retryable=error.non_retryable,
            next_retry_delay=error.next_retry_delay,
            category=error.category,
        )
    elif isinstance(error, FailureError):
        copy = ApplicationError(scrubber.scrub(error.message), type=type(error).__name__)
    else:
        copy = ApplicationError(scrubber.scrub(str(error)), type=type(error).__name__)
    return copy.with_traceback(error.__traceback__)
