"""A gateway that only looks: whatever would change something is refused before it is sent."""

from __future__ import annotations

from typing import Any, cast

from capuchin_yaml.errors import RequestRefused
from capuchin_yaml.tui.gateway import Gateway

READS = frozenset(
    {
        "project",
        "user",
        "agents",
        "list",
        "inbox",
        "rings",
        "state",
        "events",
        "schemas",
        "watch",
        "health",
        "aclose",
    }
)
"""What of a gateway only looks; whatever is not named here is refused."""


class ReadOnly:
    """The reading half of a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def __getattr__(self, name: str) -> Any:
        if name in READS:
            return getattr(self._gateway, name)
        if not callable(getattr(self._gateway, name)):
            raise AttributeError(name)
        return _refuse


def read_only(gateway: Gateway) -> Gateway:
    """The same conversations to look at; every change is refused with a sentence."""
    return cast("Gateway", ReadOnly(gateway))


async def _refuse(*_: object, **__: object) -> None:
    raise RequestRefused("this view is read-only: nothing was sent and nothing decided")
