"""Conversation ids: `<project>.<agent>-<6 characters>`, readable aloud and addressed by prefix."""

from __future__ import annotations

import re
import secrets

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Lower-case base32 without i, l, o and u, which are misread or make words."""
SUFFIX_CHARACTERS = 6

_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_SUFFIX = re.compile(rf"-[{ALPHABET}]{{{SUFFIX_CHARACTERS}}}")


def new_conversation_id(project: str, agent: str) -> str:
    """Return an id that is very likely unused; the server says so when it is not."""
    return f"{project}.{agent}-{_random(SUFFIX_CHARACTERS)}"


def new_request_id(kind: str) -> str:
    """Return an id for one request, such as `m-…` for a message; never the same twice."""
    return f"{kind}-{_random(20)}"


def short_id(project: str, conversation: str) -> str:
    """Return the id without its project, as lists show it and people type it."""
    return conversation.removeprefix(f"{project}.")


def full_id(project: str, address: str) -> str:
    """Return what `address` means in this project: the workflow id, or a prefix of one."""
    return address if address.startswith(f"{project}.") else f"{project}.{address}"


def agent_of(project: str, conversation: str) -> str:
    """Return the agent's name that the id carries."""
    return short_id(project, conversation)[: -SUFFIX_CHARACTERS - 1]


def is_address(text: str) -> bool:
    """Whether `text` can be a conversation's id, short or whole, or the beginning of one."""
    return _ADDRESS.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Whether `text` ends like a whole id, and not only like the beginning of one."""
    return _SUFFIX.fullmatch(text[-SUFFIX_CHARACTERS - 1 :]) is not None


def _random(characters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(characters))
