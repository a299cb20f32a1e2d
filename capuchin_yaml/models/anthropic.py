"""Claude, through Anthropic's own SDK with its retries off."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from capuchin_yaml.errors import ModelRejected, ModelUnavailable
from capuchin_yaml.messages import ModelReply, ModelRequest
from capuchin_yaml.models.adapter import OnText
from capuchin_yaml.models.anthropic_failures import (
    ADDRESS_VARIABLE,
    KEY_VARIABLE,
    failure_of,
)
from capuchin_yaml.models.anthropic_reply import PROVIDER, ReplyBuilder
from capuchin_yaml.models.anthropic_wire import request_body

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

_SDK = "anthropic.resources.messages"
_loaded = False
ADDRESS = "https://api.anthropic.com"
_NO_KEY = "no-key"
"""Sent to an address of the agent's own that takes none: the SDK sends no request without one."""
_CONNECT_TIMEOUT_S = 10.0
_READ_TIMEOUT_S = 180.0
"""Longest silence inside a stream; the provider sends pings far more often."""


class AnthropicModel:
    """Asks Anthropic's Messages API, always as a stream; the key is read at each call."""

    def __init__(
        self,
        *,
        read_timeout_s: float = _READ_TIMEOUT_S,
        base_url: str | None = None,
        key_variable: str | None = None,
    ) -> None:
        self._read_timeout_s = read_timeout_s
        self._base_url = base_url
        self._key_variable = key_variable
        self._connections: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """The model's answer; `ModelAdapter.reply` says what it raises."""
        await warm()
        import anthropic
        import httpx2

        key, address = self._key(), self._base_url or _address()
        body = request_body(request, provider=PROVIDER)
        try:
            return await self._stream(body, key, address, on_text)
        except (
            anthropic.AnthropicError,
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.StreamError,
            json.JSONDecodeError,
            UnicodeError,
        ) as error:
            failure = failure_of(
                error,
                address=_shown_address(address),
                secrets=_secrets(key, address),
                key_variable=self._key_variable or ("" if self._base_url else KEY_VARIABLE),
                address_name="model.base_url" if self._base_url else ADDRESS_VARIABLE,
            )
        # Why: raised out here, the failure carries no cause or context. Those go into history
        # with their text, and an error of the HTTP client may quote the header with the key.
        raise failure

    async def aclose(self) -> None:
        """Close the connections; the next reply opens new ones."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.aclose()

    async def _stream(
        self, body: Mapping[str, Any], key: str, address: str, on_text: OnText
    ) -> ModelReply:
        client = self._open(key, address)
        builder = ReplyBuilder(on_text)
        stream = await client.messages.create(**body, stream=True)
        async with stream:
            content_type = stream.response.headers.get("content-type", "")
            if not content_type.startswith("text/event-stream"):
                raise ModelUnavailable(
                    f"{PROVIDER}: {_shown_address(address)} answered with {content_type!r} "
                    f"instead of a stream; check "
                    + ("model.base_url" if self._base_url else f"{ADDRESS_VARIABLE} if it is set")
                )
            async for event in stream:
                # What a hostile or odd model wrote may not be what the SDK's types expect.
                builder.take(event.to_dict(warnings=False) if hasattr(event, "to_dict") else {})
        return builder.reply()

    def _open(self, key: str, address: str) -> AsyncAnthropic:
        """A client for one call, on connections that are kept for many.

        The key may change between two calls; setting up TLS for each would cost more than the SDK.
        """
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, Omit, Timeout

        loop = asyncio.get_running_loop()
        if self._connections is None or self._loop is not loop:
            timeout = Timeout(self._read_timeout_s, connect=_CONNECT_TIMEOUT_S)
            self._connections, self._loop = DefaultAsyncHttpxClient(timeout=timeout), loop
        headers: dict[str, Any] = {}
        if self._base_url is not None:
            # Why: the operator's own headers may hold a key, and the file chose this address.
            headers = {name: Omit() for name, _ in _custom_headers()}
        return AsyncAnthropic(
            api_key=key,
            base_url=address,
            max_retries=0,
            http_client=self._connections,
            default_headers=headers,
        )

    def _key(self) -> str:
        variable = self._key_variable
        if variable is None and self._base_url is not None:
            return _NO_KEY
        variable = variable or KEY_VARIABLE
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ModelRejected(
                f"{PROVIDER}: no key; set {variable}, or use the model 'rehearsal' without one"
            )
        if not key.isascii() or not key.isprintable():
            raise ModelRejected(f"{PROVIDER}: {variable} holds characters that no key has")
        return key


async def warm() -> None:
    """Load the SDK in a thread, since that takes seconds the first time."""
    global _loaded
    if not _loaded:
        await asyncio.to_thread(importlib.import_module, _SDK)
        _loaded = True


def _address() -> str:
    return os.environ.get(ADDRESS_VARIABLE, "").strip() or ADDRESS


def _shown_address(address: str) -> str:
    """The address without a name, password or query that stands in it."""
    parts = _parts(address)
    if parts is None or not parts.hostname:
        return "the address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _secrets(key: str, address: str) -> tuple[str, ...]:
    parts = _parts(address)
    return (
        "" if key == _NO_KEY else key,
        os.environ.get("ANTHROPIC_AUTH_TOKEN", ""),
        (parts and parts.password) or "",
        *(value for _, value in _custom_headers()),
    )


def _custom_headers() -> list[tuple[str, str]]:
    """Names and values, read as the SDK reads them."""
    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    pairs = (line.partition(":") for line in lines)
    return [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


def _parts(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None
