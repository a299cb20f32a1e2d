"""Which Temporal server a client talks to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from capuchin_yaml.errors import ServerUnavailable
from capuchin_yaml.terminal_text import visible

if TYPE_CHECKING:
    from temporalio.service import TLSConfig

NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server and namespace, and what it takes to get in."""

    address: str
    namespace: str = NAMESPACE
    tls: bool | TLSConfig | None = None
    """None leaves the choice to the SDK: on where there is an API key."""
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: Literal["environment", "own"] = "own"
    """Named by Temporal's own settings, or our own server of this project."""

    @property
    def what_to_type(self) -> str:
        """What helps when this server does not answer."""
        if self.origin == "own":
            return "start it with `capuchin up`"
        return (
            "start it, or check TEMPORAL_ADDRESS and the temporal.toml profile"
            " (`temporal config list`)"
        )


def environment_target() -> Target | None:
    """Return the server that TEMPORAL_ADDRESS or a temporal.toml profile names, None without one.

    Raises:
        ServerUnavailable: the settings cannot be read, or a profile is named that has no address.
    """
    from temporalio.envconfig import ClientConfig

    try:
        config = ClientConfig.load_client_connect_config(override_env_vars=_readable_environment())
    except (RuntimeError, OSError, ValueError) as error:
        raise ServerUnavailable(
            f"Temporal's own settings cannot be read ({visible(str(error))}); mend temporal.toml"
            " and the TEMPORAL_* variables (`temporal config list`)"
        ) from error
    address = config.get("target_host")
    if not address:
        return None
    return Target(
        address=address,
        namespace=config.get("namespace") or NAMESPACE,
        tls=config.get("tls"),
        api_key=config.get("api_key"),
        headers=config.get("rpc_metadata") or {},
        origin="environment",
    )


def _readable_environment() -> dict[str, str]:
    """Return the variables that are UTF-8; the SDK panics at any other, whatever its name."""
    found: dict[str, str] = {}
    for name, value in os.environb.items():
        try:
            found[name.decode()] = value.decode()
        except UnicodeDecodeError as error:
            if name.startswith(b"TEMPORAL_"):
                raise ValueError(f"{name.decode(errors='replace')} is not UTF-8") from error
    return found
