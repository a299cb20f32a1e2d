"""Tokens that add up, in classes that never overlap. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from capuchin_yaml.events import UsageRecorded
from capuchin_yaml.messages import Usage


@dataclass(slots=True)
class TokenCount:
    """Tokens of many model calls together."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_tokens: int = 0

    @classmethod
    def of(cls, usage: Usage) -> TokenCount:
        """The same tokens as a count that can grow."""
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        return cls(usage.input_tokens, usage.output_tokens, cached)

    @property
    def total(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens + self.cache_tokens

    def record(self, event: UsageRecorded) -> None:
        """Add the tokens of one model call."""
        self.input_tokens += event.input_tokens
        self.output_tokens += event.output_tokens
        self.cache_tokens += event.cache_read_tokens + event.cache_write_tokens

    def add(self, other: TokenCount) -> None:
        """Add another count."""
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cache_tokens += other.cache_tokens
