"""One project on one server: what every call of this room needs, and its errors in our words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from capuchin_yaml.client.ids import short_id
from capuchin_yaml.engine.contract import task_queue
from capuchin_yaml.errors import CapuchinError, ConversationNotFound, ServerUnavailable
from capuchin_yaml.terminal_text import one_line

T = TypeVar("T")

READ_TIMEOUT = timedelta(seconds=10)
"""Longest wait for one answer of the server itself."""
TRANSIENT = frozenset(
    {
        RPCStatusCode.ABORTED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.UNKNOWN,
    }
)
"""Errors of a call that may go through when it is repeated."""
_BLIP_S = 0.2


@dataclass(frozen=True, slots=True)
class Link:
    """A connected, sealed client and the project it speaks for."""

    temporal: Client
    project: str
    client: str
    """Program and place, such as `cli@host`; recorded with every request."""

    @property
    def queue(self) -> str:
        """The project's task queue."""
        return task_queue(self.project)

    @property
    def namespace(self) -> str:
        """The server's namespace."""
        return self.temporal.namespace

    @property
    def address(self) -> str:
        """The server's host and port."""
        return self.temporal.service_client.config.target_host


async def read(link: Link, call: Callable[[], Awaitable[T]], conversation: str = "") -> T:
    """Return the server's answer; a dropped connection is tried once more.

    Raises:
        ConversationNotFound: the server does not know the conversation.
        ServerUnavailable: it does not answer, or refuses us.
    """
    try:
        return await call()
    except RPCError as error:
        if error.status is not RPCStatusCode.UNAVAILABLE:
            raise in_our_words(link, error, conversation) from error
    await asyncio.sleep(_BLIP_S)
    try:
        return await call()
    except RPCError as error:
        raise in_our_words(link, error, conversation) from error


def in_our_words(link: Link, error: RPCError, conversation: str = "") -> CapuchinError:
    """Return the error that says who must act on a failed call."""
    said = one_line(error.message, 200)
    match error.status:
        case RPCStatusCode.NOT_FOUND if conversation:
            return ConversationNotFound(
                f"no conversation {short_id(link.project, conversation)!r} in project"
                f" {link.project!r}; `capuchin list` shows them"
            )
        case RPCStatusCode.PERMISSION_DENIED | RPCStatusCode.UNAUTHENTICATED:
            return ServerUnavailable(
                f"the Temporal server at {link.address} refuses these credentials ({said});"
                " check TEMPORAL_API_KEY and the temporal.toml profile"
            )
        case status if status in TRANSIENT:
            return ServerUnavailable(
                f"the Temporal server at {link.address} does not answer ({said});"
                " start it with `capuchin up`, or check TEMPORAL_ADDRESS"
            )
        case _:
            return ServerUnavailable(
                f"the Temporal server at {link.address} refused a call ({said})"
            )
