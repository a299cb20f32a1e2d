"""One JSON document posted to a web address of the operator's, signed, with a bound on everything.

Redirects are not followed: where a question goes is the operator's to say, never a server's.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from capuchin_yaml.spec import JsonValue

MAX_ANSWER_BYTES = 64 * 1024


class NoAnswer(Exception):
    """There is no whole answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes


def post(
    url: str,
    document: Mapping[str, JsonValue],
    *,
    timeout_s: float,
    secret: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Post the document and return the answer; blocks for at most about `timeout_s`.

    Raises:
        NoAnswer: nobody answered in time, or the answer is too large.
    """
    deadline = time.monotonic() + timeout_s
    body = json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "capuchin-yaml",
        **(headers or {}),
        **(signed(body, secret) if secret is not None else {}),
    }
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else _plain
        link = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    except ValueError as error:
        raise NoAnswer(f"the address cannot be used: {error}") from None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        link.request("POST", target, body, sent)
        answer = link.getresponse()
        return Answer(answer.status, _read(answer, link, deadline))
    except (OSError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
        raise NoAnswer(f"no answer of {parts.hostname}: {said}") from None
    finally:
        link.close()


def signed(body: bytes, secret: bytes) -> dict[str, str]:
    """The headers that prove who posts this body, and when."""
    at = str(int(time.time()))
    digest = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Capuchin-Time": at, "X-Capuchin-Signature": f"sha256={digest}"}


_plain = http.client.HTTPConnection


def _read(
    answer: http.client.HTTPResponse, link: http.client.HTTPConnection, deadline: float
) -> bytes:
    """Read the body piece by piece, so that one that drips cannot hold the call."""
    body = b""
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("it took too long")
        if link.sock is not None:
            link.sock.settimeout(left_s)
        piece = answer.read1(8192)
        if not piece:
            return body
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise NoAnswer(f"the answer is over {MAX_ANSWER_BYTES // 1024} KB")
