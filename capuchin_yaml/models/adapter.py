"""The seam between the engine and a language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from capuchin_yaml.messages import ModelReply, ModelRequest

OnText: TypeAlias = Callable[[str], None]
"""Takes the words of a reply as they arrive; joined they are the reply's text blocks, joined."""


class ModelAdapter(Protocol):
    """One language model that answers one request at a time, and keeps nothing between them."""

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """The model's answer to the transcript in `request`.

        Nothing is retried here: the caller retries, because it can wait durably.

        Raises:
            ModelRejected: the request will never be answered as it is.
            ModelUnavailable: the same request may be answered later.
        """
        ...
