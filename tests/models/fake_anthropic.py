"""A strict stand-in for Anthropic's Messages API: a real HTTP server that streams over loopback.

It holds every request against the provider's rules, as the real one would, and can fail in every
way that a network and a provider can.
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from capuchin_yaml.errors import ModelRejected
from capuchin_yaml.models.rules import check_request

Ending = Literal["clean", "cut", "stall"]
"""How a stream ends: properly, by a lost connection, or not at all."""
Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answers to one request."""

    status: int = 200
    events: tuple[Event | str, ...] = ()
    """Events of the stream; a text is sent as it is, without any form."""
    ending: Ending = "clean"
    body: object = None
    """JSON, or text, for an answer that is no stream."""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    headers: Mapping[str, str]
    body: dict[str, Any]


class FakeAnthropic:
    """The server; `answers` are given one after another, then it answers by itself."""

    def __init__(self) -> None:
        self.answers: deque[Answer] = deque()
        self.received: list[Received] = []
        self.stalled = threading.Event()
        """Set once a stream has stopped in the middle."""
        self.let_go = threading.Event()
        """Set to end a stalled stream."""
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> FakeAnthropic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer_to(self, received: Received, path: str) -> Answer:
        """The next answer, or a refusal as the provider words it."""
        self.received.append(received)
        if path != "/v1/messages":
            return error(404, "not_found_error", f"no such path {path}")
        if not received.headers.get("authorization", "").startswith(("Bearer ", "Basic ")):
            return error(401, "authentication_error", "a key is required")
        if not received.headers.get("anthropic-version"):
            return error(400, "invalid_request_error", "anthropic-version: header is required")
        try:
            check_request(received.body)
        except ModelRejected as refused:
            return error(400, "invalid_request_error", str(refused))
        return self.answers.popleft() if self.answers else _own_answer(received.body)

    def _handler(fake) -> type[BaseHTTPRequestHandler]:  # `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length))
                headers = {k.lower(): v for k, v in self.headers.items()}
                try:
                    self._send(fake.answer_to(Received(headers, body), self.path))
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _send(self, answer: Answer) -> None:
                self.send_response(answer.status)
                if answer.events:
                    self.send_header("content-type", "text/event-stream; charset=utf-8")
                    self.send_header("transfer-encoding", "chunked")
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if not answer.events:
                    text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
                    data = text.encode()
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    return
                self.end_headers()
                for event in answer.events:
                    self._chunk(event if isinstance(event, str) else _sse(event))
                if answer.ending == "stall":
                    fake.stalled.set()
                    fake.let_go.wait()
                if answer.ending == "clean":
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.close_connection = True

            def _chunk(self, text: str) -> None:
                data = text.encode("utf-8", "surrogatepass")
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


class _QuietServer(ThreadingHTTPServer):
    """A server to which clients that go away are nothing special."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def error(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None, **more: object
) -> Answer:
    """A refusal or failure in the provider's own form."""
    told = {"type": kind, "message": message, **more}
    body = {"type": "error", "error": told, "request_id": "req_1"}
    return Answer(status, body=body, headers={"request-id": "req_1", **(headers or {})})


def says(
    *texts: str, stop: str | None = "end_turn", usage: Mapping[str, int | None] | None = None
) -> Answer:
    """A reply of text blocks."""
    return Answer(events=stream([text_block(i, t) for i, t in enumerate(texts)], stop, usage))


def calls(*calls: tuple[str, str], stop: str = "tool_use") -> Answer:
    """A reply of tool calls, each a name and the JSON text of its input."""
    return Answer(events=stream([call_block(i, *c) for i, c in enumerate(calls)], stop))


def stream(
    blocks: Iterable[Iterable[Event]],
    stop: str | None = "end_turn",
    usage: Mapping[str, int | None] | None = None,
) -> tuple[Event, ...]:
    """All events of one reply; without a stop reason the stream has no end."""
    counts: dict[str, int | None] = {"input_tokens": 20, "output_tokens": 1, **(usage or {})}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    events: list[Event] = [
        {"type": "message_start", "message": {**message, "usage": counts}},
        {"type": "ping"},
    ]
    for block in blocks:
        events += block
    if stop is not None:
        ending = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 9}})
        events.append({"type": "message_stop"})
    return tuple(events)


def block(index: int, start: Event, deltas: Iterable[Event]) -> list[Event]:
    """The events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text_block(index: int, text: str) -> list[Event]:
    """A text in pieces of five characters."""
    pieces = re.findall(r"(?s).{1,5}", text)
    return block(
        index,
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": piece} for piece in pieces],
    )


def call_block(index: int, tool: str, input_json: str, id: str = "toolu_1") -> list[Event]:
    """A tool call whose input comes in two pieces."""
    half = len(input_json) // 2
    return block(
        index,
        {"type": "tool_use", "id": id, "name": tool, "input": {}},
        [
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": input_json[:half]},
            {"type": "input_json_delta", "partial_json": input_json[half:]},
        ],
    )


def _sse(event: Event) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _own_answer(body: Mapping[str, Any]) -> Answer:
    """Looks up an order that it is asked about, and repeats anything else."""
    content = body["messages"][-1]["content"]
    if any(b["type"] == "tool_result" for b in content):
        return says("Done.")
    text = content[-1]["text"]
    order: Callable[[str], re.Match[str] | None] = re.compile(r"A-\d+").search
    found = order(text)
    if found is None:
        return says(f"You said: {text}")
    return calls(("lookup_order", json.dumps({"order_id": found.group()})))
