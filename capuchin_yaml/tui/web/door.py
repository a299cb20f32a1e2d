"""Who may come in: tokens of people, tickets for one visit, and requests of our own pages only.

Nothing rests on cookies: a browser sends those by itself, also to other ports of this machine.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from time import monotonic

TICKET_S = 10.0
"""A ticket that is not used by then is worth nothing."""


class Door:
    """Lets the people in whose tokens it made; every refusal is a sentence."""

    def __init__(
        self, port: int, people: Sequence[str], clock: Callable[[], float] = monotonic
    ) -> None:
        """Make one token for each of `people`; pages come from loopback and `port` alone."""
        self.tokens = {name: secrets.token_urlsafe(32) for name in people}
        """The token of each person, to be handed to that person only."""
        self._names = {_digest(token): name for name, token in self.tokens.items()}
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._tickets: dict[str, tuple[str, float]] = {}
        self._clock = clock

    def refusal(self, host: str, origin: str | None, *, needs_origin: bool) -> str | None:
        """Why a request is not answered; None when its Host and Origin are ours.

        A foreign Host is a name that somebody pointed at this machine; a foreign Origin is
        another page's request.
        """
        if host not in self._hosts:
            return "this address is not served here"
        if origin is None:
            return "the request does not say which page it comes from" if needs_origin else None
        if origin != f"http://{host}":
            return "requests of other pages are not answered"
        return None

    def enter(self, token: str) -> tuple[str, str] | None:
        """A person's name and a new ticket for one visit; None when the token is nobody's."""
        # Why by its digest: how long a look-up takes then tells nothing of a token.
        name = self._names.get(_digest(token))
        if name is None:
            return None
        ticket, now = secrets.token_urlsafe(32), self._clock()
        self._tickets = {t: kept for t, kept in self._tickets.items() if kept[1] > now}
        self._tickets[_digest(ticket)] = (name, now + TICKET_S)
        return name, ticket

    def admit(self, ticket: str) -> str | None:
        """The person of a ticket, once; None when it is unknown, used or too old."""
        name, until = self._tickets.pop(_digest(ticket), ("", 0.0))
        return name if name and self._clock() < until else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
